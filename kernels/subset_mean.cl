// mean(x[::2, ::2] + 1) of a C-contiguous float64 array, whole or in chunks: add_subset adds to one sum per work-group,
// and mean makes the answer from them. There are no atomics, so that the same array gives the same answer every time.
// Work-groups of GROUP work-items: for add_subset any number, with one element of partial for each, initially 0;
// for mean one.
#if __OPENCL_C_VERSION__ < 120
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define GROUP 256

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

// partial[group] += the group's share of the sum of x[first_row::2, first_column::2] + 1.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void add_subset(__global const double *x, const long rows, const long columns, const long first_row,
                const long first_column, __global double *partial)
{
    __local double sums[GROUP];
    const long subset_rows = (rows - first_row + 1) / 2, subset_columns = (columns - first_column + 1) / 2;
    if (subset_columns == 0)
        return;
    // A work-item's next element of the subset is as many elements further as there are work-items. Dividing that into
    // rows and columns once, here, saves a division per element.
    const long items = get_global_size(0), step_rows = items / subset_columns, step_columns = items % subset_columns;
    long row = get_global_id(0) / subset_columns, column = get_global_id(0) % subset_columns;
    double sum = 0;
    while (row < subset_rows) {
        sum += x[(first_row + 2 * row) * columns + first_column + 2 * column] + 1;
        row += step_rows;
        column += step_columns;
        if (column >= subset_columns) {
            column -= subset_columns;
            row++;
        }
    }
    sum = group_sum(sum, sums);
    if (get_local_id(0) == 0)
        partial[get_group_id(0)] += sum;
}

// *result = sum(partial) / n; NaN if n is 0.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void mean(__global const double *partial, const long groups, const long n, __global double *result)
{
    __local double sums[GROUP];
    double sum = 0;
    for (long i = get_local_id(0); i < groups; i += GROUP)
        sum += partial[i];
    sum = group_sum(sum, sums);
    if (get_local_id(0) == 0)
        *result = sum / n;
}
