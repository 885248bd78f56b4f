// The norm of n float32: add_squares adds up each block's squares, within a warp by shuffles, which need no barrier,
// and then that sum to *total, which is 0 at first; root makes the answer of it. Grid of add_squares: any with at least
// n threads, in blocks of THREADS threads. root: one thread.
#define THREADS 256

extern "C" __global__ void add_squares(const float *x, long long n, double *total)
{
    __shared__ float sums[THREADS / 32];
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;  // THREADS * blockIdx.x would have 32 bits
    float sum = i < n ? x[i] * x[i] : 0;  // the last block is rarely full
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = threadIdx.x < THREADS / 32 ? sums[threadIdx.x] : 0;
    for (int step = THREADS / 64; step > 0; step /= 2)
        sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x == 0)
        atomicAdd(total, (double)sum);  // a float32 would lose what the last of a million blocks add
}

// *norm = √*total
extern "C" __global__ void root(const double *total, float *norm)
{
    *norm = (float)sqrt(*total);
}
