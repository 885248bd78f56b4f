// a += 1 in place for n elements, four per work-item: one load of 16 bytes brings four float32.
// Global size: at least n / 4.
__kernel void increment(__global float *a, const long n)
{
    const long i = 4 * (long)get_global_id(0);
    // A float4 needs an address that is a multiple of 16, and a sub-buffer may start elsewhere.
    if (i + 4 <= n && (size_t)a % 16 == 0) {
        *(__global float4 *)(a + i) += 1;
    } else {
        for (long j = i; j < i + 4 && j < n; ++j)
            a[j] += 1;
    }
}
