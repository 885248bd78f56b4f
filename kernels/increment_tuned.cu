// a += 1 in place for n elements, four per thread: one load of 16 bytes brings four float32.
// Grid: any with at least n / 4 threads.
extern "C" __global__ void increment(float *a, long long n)
{
    const long long i = 4 * ((long long)blockIdx.x * blockDim.x + threadIdx.x);
    // A load of 16 bytes needs an address that is a multiple of 16, and a slice such as a[1:] may start elsewhere.
    if (i + 4 <= n && (size_t)a % 16 == 0) {
        float4 x = *(float4 *)(a + i);
        x.x += 1, x.y += 1, x.z += 1, x.w += 1;
        *(float4 *)(a + i) = x;
    } else {
        for (long long j = i; j < i + 4 && j < n; ++j)
            a[j] += 1;
    }
}
