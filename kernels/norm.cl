// The norm of n float32: add_squares makes one sum per work-group, and root the answer of them. There are no atomics,
// so that the same array gives the same answer every time. Work-groups of GROUP work-items: for add_squares any number,
// with one element of partial for each; for root one.
#define GROUP 256

// The sum over the work-group. Only work-item 0 gets it.
float group_sum(float sum, __local float *sums)
{
    const int i = get_local_id(0);
    sums[i] = sum;
    for (int half_way = GROUP / 2; half_way; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < half_way)
            sums[i] += sums[i + half_way];
    }
    return i == 0 ? sums[0] : 0;
}

// partial[group] = the group's share of the sum of squares.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void add_squares(__global const float *x, const long n, __global float *partial)
{
    __local float sums[GROUP];
    float sum = 0;
    for (long i = get_global_id(0); i < n; i += get_global_size(0))
        sum += x[i] * x[i];
    sum = group_sum(sum, sums);
    if (get_local_id(0) == 0)
        partial[get_group_id(0)] = sum;
}

// *norm = √sum(partial)
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void root(__global const float *partial, const long groups, __global float *norm)
{
    __local float sums[GROUP];
    float sum = 0;
    for (long i = get_local_id(0); i < groups; i += GROUP)
        sum += partial[i];
    sum = group_sum(sum, sums);
    if (get_local_id(0) == 0)
        *norm = sqrt(sum);
}
