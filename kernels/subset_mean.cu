// mean(x[::2, ::2] + 1) of a C-contiguous float64 array, whole or in chunks: add_subset adds to one sum per block, and
// mean makes the answer from them. There are no atomics, so that the same array gives the same answer every time.
// Blocks of THREADS threads: for add_subset any number, with one element of partial for each, at first 0; for mean one.
#define THREADS 256

// The sum of x over the block's threads. Only thread 0 gets it.
static __device__ double sum_of_block(double x)
{
    __shared__ double sums[THREADS];
    sums[threadIdx.x] = x;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    return sums[0];
}

// partial[block] += sum(x[first_row::2, first_column::2] + 1): rows are shared out among blocks, columns among threads.
extern "C" __global__ void add_subset(const double *x, long long rows, long long columns, long long first_row,
                                      long long first_column, double *partial)
{
    double sum = 0;
    for (long long row = first_row + 2LL * blockIdx.x; row < rows; row += 2LL * gridDim.x)
        for (long long column = first_column + 2 * threadIdx.x; column < columns; column += 2 * THREADS)
            sum += x[row * columns + column] + 1;
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        partial[blockIdx.x] += sum;
}

// *result = sum(partial) / n; NaN if n is 0.
extern "C" __global__ void mean(const double *partial, long long blocks, long long n, double *result)
{
    double sum = 0;
    for (long long i = threadIdx.x; i < blocks; i += THREADS)
        sum += partial[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        *result = sum / n;
}
