// c = a * b, n elements, four a work-item: one load of 16 bytes brings four float32. Global size: n / 4 or more.
__kernel void multiply(__global const float *a, __global const float *b, __global float *c, const long n)
{
    const long i = 4 * (long)get_global_id(0);
    // float4 needs addresses that are multiples of 16: a sub-buffer may start elsewhere.
    if (i + 4 <= n && ((size_t)a | (size_t)b | (size_t)c) % 16 == 0) {
        *(__global float4 *)(c + i) = *(__global const float4 *)(a + i) * *(__global const float4 *)(b + i);
    } else {
        for (long j = i; j < i + 4 && j < n; ++j)
            c[j] = a[j] * b[j];
    }
}
