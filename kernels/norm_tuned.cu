// The norm of n float32: add_squares makes one sum per block, and root the answer of them. There are no atomics, so
// that the same array gives the same answer every time. Blocks of THREADS threads: for add_squares any number, with one
// element of partial for each; for root one.
#define THREADS 256

// The sum of x over the block's threads, within a warp by shuffles, which need no barrier. Only thread 0 gets it.
static __device__ float sum_of_block(float x)
{
    __shared__ float sums[THREADS / 32];
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

// partial[block] = the block's share of the sum of squares: each thread takes four neighbours at once, 16 bytes, and
// then those that are as much further as the whole grid takes.
extern "C" __global__ void add_squares(const float *x, long long n, float *partial)
{
    const long long thread = (long long)blockIdx.x * THREADS + threadIdx.x, threads = (long long)gridDim.x * THREADS;
    // A load of 16 bytes needs an address that is a multiple of 16, and a slice such as x[1:] may start elsewhere.
    const long long fours = (size_t)x % 16 == 0 ? n / 4 : 0;
    float sum = 0;
    for (long long i = thread; i < fours; i += threads) {
        const float4 y = ((const float4 *)x)[i];
        sum += (y.x * y.x + y.y * y.y) + (y.z * y.z + y.w * y.w);
    }
    for (long long i = 4 * fours + thread; i < n; i += threads)
        sum += x[i] * x[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

// *norm = √sum(partial)
extern "C" __global__ void root(const float *partial, long long blocks, float *norm)
{
    float sum = 0;
    for (long long i = threadIdx.x; i < blocks; i += THREADS)
        sum += partial[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        *norm = sqrtf(sum);
}
