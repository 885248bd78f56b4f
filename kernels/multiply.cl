// c = a * b, n elements. One work-item an element; the global size is n rounded up to whole work-groups.
__kernel void multiply(__global const float *a, __global const float *b, __global float *c, const long n)
{
    long i = get_global_id(0);
    if (i < n)  // the last work-group is rarely full
        c[i] = a[i] * b[i];
}
