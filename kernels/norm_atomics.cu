// The norm of n float32, by atomic additions alone: add_squares adds each square to *total, which is 0 at first, and
// root makes the answer of it. Grid of add_squares: any with at least n threads. root: one thread.
extern "C" __global__ void add_squares(const float *x, long long n, double *total)
{
    // blockIdx.x * blockDim.x would have 32 bits, and wrap at 2**32 elements.
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)  // the last block is rarely full
        atomicAdd(total, (double)x[i] * x[i]);  // a float32 would stop growing when it is 2**24 times a square
}

// *norm = √*total
extern "C" __global__ void root(const double *total, float *norm)
{
    *norm = (float)sqrt(*total);
}
