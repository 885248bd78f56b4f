// a += 1 in place, n elements. One work-item an element; the global size is n rounded up to whole work-groups.
__kernel void increment(__global float *a, const long n)
{
    long i = get_global_id(0);
    if (i < n)  // the last work-group is rarely full
        a[i] += 1;
}
