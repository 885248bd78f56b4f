// mean(x[::2, ::2] + 1) of a C-contiguous float64 array, whole or in chunks: add_subset adds to one sum a block, and mean
// makes the answer of those. There are no atomics, so that the same array gives the same answer every time.
// Blocks of THREADS threads; grid of add_subset: any, with an element of partial for each block; of mean: one block.
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

// partial[block] += sum(x[first_row::2, first_column::2] + 1), each block its share. partial begins as zeros.
extern "C" __global__ void add_subset(const double *x, long long rows, long long columns, long long first_row,
                                      long long first_column, double *partial)
{
    const long long down = (rows - first_row + 1) / 2, across = (columns - first_column + 1) / 2;
    if (down < 1 || across < 1)
        return;  // every thread does: none is left waiting at __syncthreads

    // The thread's elements are i, i + step, i + 2 * step, ... of the subset, row by row. Row and column are kept, not i: a
    // 64-bit division an element takes longer than reading it.
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x, step = (long long)gridDim.x * THREADS;
    const long long step_down = step / across, step_across = step % across;
    long long row = i / across, column = i % across;
    double sum = 0;
    while (row < down) {
        sum += x[(first_row + 2 * row) * columns + first_column + 2 * column] + 1;
        row += step_down;
        column += step_across;
        if (column >= across) {
            column -= across;
            ++row;
        }
    }
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        partial[blockIdx.x] += sum;
}

// *result = sum(partial) / n; NaN where n is 0.
extern "C" __global__ void mean(const double *partial, long long blocks, long long n, double *result)
{
    double sum = 0;
    for (long long i = threadIdx.x; i < blocks; i += THREADS)
        sum += partial[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        *result = sum / n;
}
