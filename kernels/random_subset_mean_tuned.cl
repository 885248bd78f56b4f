// Sums over the subset of an array of normal(10, 1) samples that is never stored. Sample (i, j) is a function of the
// seed, i and j alone: columns 4 q + r and 4 q + r + 2 of row i are the two normals that the Box-Muller transform
// makes from Philox4x32-10 (Salmon et al., 2011) with the key seed and the counter (2 q + r, i). So samples that the
// mean leaves out need not be made, and every framework and every grid makes the same samples.
#if __OPENCL_C_VERSION__ < 120
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define GROUP 128

// Two independent normal(0, 1) samples for each of four pairs of columns. There is no branch and no call: those in the
// library's log, sincos and sqrt keep a CPU from doing four in one instruction, and a GPU from doing them side by side.
// The polynomials are Taylor series, cut off where the next term is below 2**-54 of the whole.
void normals(const ulong4 pair, const ulong row, const ulong seed, double4 *z0, double4 *z1)
{
    const ulong low = 0xFFFFFFFF;
    ulong4 c0 = pair & low, c1 = pair >> 32, c2 = row & low, c3 = row >> 32;
    ulong k0 = seed & low, k1 = seed >> 32;
    for (int round = 0; round < 10; ++round) {
        const ulong4 product0 = 0xD2511F53UL * c0, product1 = 0xCD9E8D57UL * c2;
        c0 = product1 >> 32 ^ c1 ^ k0, c1 = product1 & low, c2 = product0 >> 32 ^ c3 ^ k1, c3 = product0 & low;
        k0 = (k0 + 0x9E3779B9) & low, k1 = (k1 + 0xBB67AE85) & low;
    }
    const double4 u = (convert_double4((c0 << 32 | c1) >> 11) + 0.5) * 0x1p-53;  // in (0, 1]: log(0) is infinite
    const double4 v = convert_double4((c2 << 32 | c3) >> 11) * 0x1p-52;          // in [0, 2), half turns

    // u = (1 + f) 2**exponent with 1 + f from sqrt(1/2), whose bits these are, to sqrt(2). log(1 + f) = 2 atanh(s).
    // 1 / (2 + f) and 1 / sqrt(t) are computed in float, then refined by two terms of their series: right to the last
    // bits of a double.
    const long4 exponent = (as_long4(u) - 0x3FE6A09E667F3BCD) >> 52;
    const double4 f = as_double4(as_long4(u) - (exponent << 52)) - 1;
    double4 inverse = convert_double4(1 / convert_float4(2 + f)), error = 1 - (2 + f) * inverse;
    const double4 s = f * (inverse + inverse * (error + error * error)), r = s * s;
    const double4 p = r * (2.0 / 3 + r * (2.0 / 5 + r * (2.0 / 7 + r * (2.0 / 9 + r * (2.0 / 11 + r * (2.0 / 13
                      + r * (2.0 / 15 + r * (2.0 / 17 + r * (2.0 / 19 + r * (2.0 / 21))))))))));
    const double4 t = -2 * (convert_double4(exponent) * M_LN2 + (f - s * (f - p))) + 1e-37;  // not 0 if u is 1
    inverse = convert_double4(rsqrt(convert_float4(t))), error = 1 - t * inverse * inverse;
    const double4 radius = t * inverse + t * inverse * error * (0.5 + 0.375 * error);

    // x: an eighth of a turn, or less, from a whole number of quarters.
    const double4 quarter = rint(2 * v), x = M_PI * (v - 0.5 * quarter), y = x * x;
    const double4 sine = x - x * (y * (1.0 / 6 - y * (1.0 / 120 - y * (1.0 / 5040 - y * (1.0 / 362880
                         - y * (1.0 / 39916800 - y * (1.0 / 6227020800 - y * (1.0 / 1307674368000
                         - y * (1.0 / 355687428096000)))))))));
    const double4 cosine = 1 - y * (1.0 / 2 - y * (1.0 / 24 - y * (1.0 / 720 - y * (1.0 / 40320 - y * (1.0 / 3628800
                           - y * (1.0 / 479001600 - y * (1.0 / 87178291200 - y * (1.0 / 20922789888000))))))));
    // One quarter swaps them. The sign is the highest bit: of the cosine in quarters 1 and 2, of the sine in 2 and 3.
    const long4 turn = convert_long4(quarter), swap = -(turn & 1);
    *z0 = as_double4(as_long4(radius * select(cosine, sine, swap)) ^ (turn + 1 & 2) << 62);
    *z1 = as_double4(as_long4(radius * select(sine, cosine, swap)) ^ (turn & 2) << 62);
}

// The sum over the work-group. Only work-item 0 gets it.
double group_sum(double sum, __local double *sums)
{
    const int i = get_local_id(0);
    sums[i] = sum;
    for (int half_way = GROUP / 2; half_way; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < half_way)
            sums[i] += sums[i + half_way];
    }
    return sums[0];
}

// partial[group] = the group's share of the sum of x[::2, ::2] + 1 - 11. Rows go to groups, pairs of columns to
// work-items, four at a time.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void add_subset(const long rows, const long columns, const ulong seed, __global double *partial)
{
    __local double sums[GROUP];
    double4 sum = 0, z0, z1;
    for (long row = 2 * get_group_id(0); row < rows; row += 2 * get_num_groups(0))
        for (long first = 4 * get_local_id(0); first < columns; first += 16 * GROUP) {
            const long4 column = first + (long4)(0, 4 * GROUP, 8 * GROUP, 12 * GROUP);
            normals(as_ulong4(column >> 1), row, seed, &z0, &z1);
            sum += select((double4)0, z0, column < columns) + select((double4)0, z1, column + 2 < columns);
        }
    sum.x = group_sum(sum.x + sum.y + sum.z + sum.w, sums);
    if (get_local_id(0) == 0)
        partial[get_group_id(0)] = sum.x;
}

// *result = 11 + sum(partial) / n. One work-group.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void mean(__global const double *partial, const long groups, const long n, __global double *result)
{
    __local double sums[GROUP];
    double sum = 0;
    for (long i = get_local_id(0); i < groups; i += GROUP)
        sum += partial[i];
    sum = group_sum(sum, sums);
    if (get_local_id(0) == 0)
        *result = 11 + sum / n;
}
