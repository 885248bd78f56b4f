// The norm of n float32: add_squares adds up each block's squares in shared memory, and then that sum to *total, which
// is 0 at first; root makes the answer of it. Grid of add_squares: any with at least n threads, in blocks of THREADS
// threads. root: one thread.
#define THREADS 256

extern "C" __global__ void add_squares(const float *x, long long n, double *total)
{
    __shared__ float sums[THREADS];
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;  // THREADS * blockIdx.x would have 32 bits
    sums[threadIdx.x] = i < n ? x[i] * x[i] : 0;  // the last block is rarely full
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        atomicAdd(total, (double)sums[0]);  // a float32 would lose what the last of a million blocks add
}

// *norm = √*total
extern "C" __global__ void root(const double *total, float *norm)
{
    *norm = (float)sqrt(*total);
}
