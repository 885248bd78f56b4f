// a += 1 in place for n elements, one thread per element. Grid: any with at least n threads.
extern "C" __global__ void increment(float *a, long long n)
{
    // blockIdx.x * blockDim.x would have 32 bits, and wrap at 2**32 elements.
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)  // the last block is rarely full
        a[i] += 1;
}
