// a += 1 in place, n elements, four a work-item: one load of 16 bytes brings four float32. Global size: n / 4 or more.
__kernel void increment(__global float *a, const long n)
{
    const long i = 4 * (long)get_global_id(0);
    // float4 needs addresses that are multiples of 16: a sub-buffer may start elsewhere.
    if (i + 4 <= n && (size_t)a % 16 == 0) {
        *(__global float4 *)(a + i) += 1;
    } else {
        for (long j = i; j < i + 4 && j < n; ++j)
            a[j] += 1;
    }
}
