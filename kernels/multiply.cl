// c = a * b for n elements, one work-item per element. Global size: n, rounded up to whole work-groups.
__kernel void multiply(__global const float *a, __global const float *b, __global float *c, const long n)
{
    long i = get_global_id(0);
    if (i < n)  // the last work-group is rarely full
        c[i] = a[i] * b[i];
}
