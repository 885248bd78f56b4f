// mean(x[::2, ::2] + 1) of a C-contiguous float64 array: add_subset makes one sum per work-group, and mean the
// answer from them. There are no atomics, so that the same array gives the same answer every time.
// Work-groups of GROUP work-items: for add_subset any number, with one element of partial for each; for mean one.
#if __OPENCL_C_VERSION__ < 120
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define GROUP 256
#define LOADS 8

// The sum over the work-group. Only work-item 0 gets it.
double group_sum(double sum, __local double *sums)
{
    const int i = get_local_id(0);
    sums[i] = sum;
    for (int half_way = GROUP / 2; half_way; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < half_way)
            sums[i] += sums[i + half_way];
    }
    return sums[0];
}

// partial[group] = the group's share of the sum of x[::2, ::2]. Each team of 2**bits work-items takes a row, then
// the row that is as many rows further as there are teams, and so on.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void add_subset(__global const double *x, const long rows, const long columns, const int bits,
                __global double *partial)
{
    __local double sums[GROUP];
    const long items = get_global_size(0), item = get_global_id(0), team = item >> bits, teams = items >> bits;
    const long first = 2 * (item & ((1L << bits) - 1)), step = 2L << bits;
    double sum = 0;
    // Work-items left over, too few for a team, have nothing to do.
    for (long row = team < teams ? 2 * team : rows; row < rows; row += 2 * teams) {
        __global const double *elements = x + row * columns;
        for (long column = first; column < columns; column += LOADS * step) {
            double values[LOADS];  // all in flight before the first is needed
#pragma unroll
            for (int i = 0; i < LOADS; ++i)
                values[i] = column + i * step < columns ? elements[column + i * step] : 0;
#pragma unroll
            for (int i = 1; i < LOADS; ++i)
                values[0] += values[i];
            sum += values[0];
        }
    }
    sum = group_sum(sum, sums);
    if (get_local_id(0) == 0)
        partial[get_group_id(0)] = sum;
}

// *result = (sum(partial) + n) / n: the + 1 of all n elements at once.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void mean(__global const double *partial, const long groups, const long n, __global double *result)
{
    __local double sums[GROUP];
    double sum = 0;
    for (long i = get_local_id(0); i < groups; i += GROUP)
        sum += partial[i];
    sum = group_sum(sum, sums);
    if (get_local_id(0) == 0)
        *result = (sum + n) / n;
}
