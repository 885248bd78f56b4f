// c = a * b for n elements, four per work-item: one load of 16 bytes brings four float32.
// Global size: at least n / 4.
__kernel void multiply(__global const float *a, __global const float *b, __global float *c, const long n)
{
    const long i = 4 * (long)get_global_id(0);
    // A float4 needs an address that is a multiple of 16, and a sub-buffer may start elsewhere.
    if (i + 4 <= n && ((size_t)a | (size_t)b | (size_t)c) % 16 == 0) {
        *(__global float4 *)(c + i) = *(__global const float4 *)(a + i) * *(__global const float4 *)(b + i);
    } else {
        for (long j = i; j < i + 4 && j < n; ++j)
            c[j] = a[j] * b[j];
    }
}
