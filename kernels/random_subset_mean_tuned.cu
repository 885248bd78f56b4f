// Sums over the subset of an array of normal(10, 1) samples that is never stored. Sample (i, j) is a function of the
// seed, i and j alone: columns 4 q + r and 4 q + r + 2 of row i are the two normals that the Box-Muller transform
// makes from Philox4x32-10 (Salmon et al., 2011) with the key seed and the counter (2 q + r, i). So samples that the
// mean leaves out need not be made, and every framework and every grid makes the same samples.
#define THREADS 128

// Two independent normal(0, 1) samples.
static __device__ double2 normals(unsigned long long pair, unsigned long long row, unsigned long long seed)
{
    unsigned c0 = pair, c1 = pair >> 32, c2 = row, c3 = row >> 32, k0 = seed, k1 = seed >> 32;
    for (int round = 0; round < 10; ++round) {
        const unsigned low0 = 0xD2511F53 * c0, high0 = __umulhi(0xD2511F53, c0);
        const unsigned low1 = 0xCD9E8D57 * c2, high1 = __umulhi(0xCD9E8D57, c2);
        c0 = high1 ^ c1 ^ k0, c1 = low1, c2 = high0 ^ c3 ^ k1, c3 = low0;
        k0 += 0x9E3779B9, k1 += 0xBB67AE85;
    }
    // u in (0, 1], as log(0) is infinite; v in [0, 2), half turns
    const double u = ((((unsigned long long)c0 << 32 | c1) >> 11) + 0.5) * 0x1p-53;
    const double v = (((unsigned long long)c2 << 32 | c3) >> 11) * 0x1p-52;

    // The library's functions branch for arguments that do not occur here. Taylor series do not, and four pairs of
    // samples side by side load each coefficient once.
    // u = (1 + f) * 2**exponent with 1 + f from sqrt(1/2), whose bits these are, to sqrt(2); 1 + f = (1 + s) / (1 - s)
    const long long bits = __double_as_longlong(u);
    const int exponent = (int)((bits - 0x3FE6A09E667F3BCD) >> 52);
    const double f = __longlong_as_double(bits - ((long long)exponent << 52)) - 1;
    // 1 / (2 + f) and 1 / sqrt(t) in float32, then refined by two terms of their series: right to float64's last bits
    double inverse = __fdividef(1, (float)(2 + f));
    double error = 1 - (2 + f) * inverse;
    const double s = f * (inverse + inverse * (error + error * error)), z = s * s;
    double p = 2. / 21;  // 2 atanh(s) / s - 2 for z < 0.0295, cut off where the next term is below 2**-54 of the whole
    p = p * z + 2. / 19, p = p * z + 2. / 17, p = p * z + 2. / 15, p = p * z + 2. / 13, p = p * z + 2. / 11;
    p = p * z + 2. / 9, p = p * z + 2. / 7, p = p * z + 2. / 5, p = p * z + 2. / 3;
    const double t = -2 * (exponent * 0.69314718055994531 + (f - s * (f - z * p))) + 1e-37;  // 1e-37 is for u = 1
    inverse = rsqrtf((float)t);
    error = 1 - t * inverse * inverse;
    const double radius = t * inverse + t * inverse * error * (0.5 + 0.375 * error);

    const int quarter = (int)(2 * v + 0.5);  // the nearest one
    const double x = 3.14159265358979324 * (v - 0.5 * quarter), y = x * x;  // an eighth of a turn from it, or less
    double a = 1 / 355687428096000., b = 1 / 20922789888000.;  // 1/17! and 1/16!: sin(x) / x and cos(x) for y < 0.617
    a = a * y - 1 / 1307674368000., a = a * y + 1 / 6227020800., a = a * y - 1 / 39916800., a = a * y + 1 / 362880.;
    a = a * y - 1 / 5040., a = a * y + 1 / 120., a = a * y - 1 / 6.;
    b = b * y - 1 / 87178291200., b = b * y + 1 / 479001600., b = b * y - 1 / 3628800., b = b * y + 1 / 40320.;
    b = b * y - 1 / 720., b = b * y + 1 / 24., b = b * y - 1 / 2.;
    const double sine = x + x * (y * a), cosine = 1 + y * b;
    const double first = quarter & 1 ? -sine : cosine, second = quarter & 1 ? cosine : sine;
    const double signed_radius = quarter & 2 ? -radius : radius;
    return make_double2(signed_radius * first, signed_radius * second);
}

// The sum of x over the block's threads. Only thread 0 gets it.
static __device__ double sum_of_block(double x)
{
    __shared__ double sums[THREADS / 32];
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_down_sync(~0u, x, step);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x < THREADS / 32 ? sums[threadIdx.x] : 0;
    for (int step = THREADS / 64; step > 0; step /= 2)
        x += __shfl_down_sync(~0u, x, step);
    return x;
}

// partial[block] = the block's share of the sum of x[::2, ::2] + 1 - 11 over the rows from first (even) to end: a
// GPU's part of them, or all. Rows go to blocks, pairs of columns to threads (few rows keep few blocks busy).
extern "C" __global__ void add_subset(long long first, long long end, long long columns, unsigned long long seed,
                                      double *partial)
{
    double sum = 0;
    const long long step = 4 * THREADS;
    for (long long row = first + 2LL * blockIdx.x; row < end; row += 2LL * gridDim.x) {
        long long column = 4 * threadIdx.x;
        for (; column + 3 * step + 2 < columns; column += 4 * step)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const double2 z = normals((column + i * step) / 2, row, seed);
                sum += z.x + z.y;
            }
        for (; column < columns; column += step) {
            const double2 z = normals(column / 2, row, seed);
            sum += column + 2 < columns ? z.x + z.y : z.x;
        }
    }
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

// *result = 11 + sum(partial) / n. One block.
extern "C" __global__ void mean(const double *partial, long long blocks, long long n, double *result)
{
    double sum = 0;
    for (long long i = threadIdx.x; i < blocks; i += THREADS)
        sum += partial[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        *result = 11 + sum / n;
}
