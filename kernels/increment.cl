// a += 1 in place for n elements, one work-item per element. Global size: n, rounded up to whole work-groups.
__kernel void increment(__global float *a, const long n)
{
    long i = get_global_id(0);
    if (i < n)  // the last work-group is rarely full
        a[i] += 1;
}
