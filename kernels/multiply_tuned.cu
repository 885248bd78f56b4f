// c = a * b for n elements, four per thread: one load of 16 bytes brings four float32.
// Grid: any with at least n / 4 threads.
extern "C" __global__ void multiply(const float *a, const float *b, float *c, long long n)
{
    const long long i = 4 * ((long long)blockIdx.x * blockDim.x + threadIdx.x);
    // A load of 16 bytes needs an address that is a multiple of 16, and a slice such as a[1:] may start elsewhere.
    if (i + 4 <= n && ((size_t)a | (size_t)b | (size_t)c) % 16 == 0) {
        const float4 x = *(const float4 *)(a + i), y = *(const float4 *)(b + i);
        *(float4 *)(c + i) = make_float4(x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w);
    } else {
        for (long long j = i; j < i + 4 && j < n; ++j)
            c[j] = a[j] * b[j];
    }
}
