// mean(x[::2, ::2] + 1) of a C-contiguous float64 array: add_subset makes one sum per block, and mean the answer.
// There are no atomics, so that the same array gives the same answer every time. Blocks of THREADS threads: for
// add_subset any number, with one element of partial for each; for mean one.
#define THREADS 256

// The sum of x over the block's threads, within a warp by shuffles, which need no barrier. Only thread 0 gets it.
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

// partial[block] = the block's share of sum(x[::2, ::2]): rows are shared out among blocks, columns among threads
// (an array of few rows keeps few blocks busy).
extern "C" __global__ void add_subset(const double *x, long long rows, long long columns, double *partial)
{
    double sum = 0;
    for (long long row = 2LL * blockIdx.x; row < rows; row += 2LL * gridDim.x)
        for (long long column = 2 * threadIdx.x; column < columns; column += 2 * THREADS)
            sum += x[row * columns + column];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

// *result = sum(partial) / n + 1: one addition instead of one per element.
extern "C" __global__ void mean(const double *partial, long long blocks, long long n, double *result)
{
    double sum = 0;
    for (long long i = threadIdx.x; i < blocks; i += THREADS)
        sum += partial[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        *result = sum / n + 1;
}
