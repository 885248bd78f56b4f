// a += 1 in place, n elements. One thread an element; grid: any, as long as it has n threads or more.
extern "C" __global__ void increment(float *a, long long n)
{
    // blockIdx.x * blockDim.x would be 32 bits wide, and wrap at 2**32 elements.
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)  // the last block is rarely full
        a[i] += 1;
}
