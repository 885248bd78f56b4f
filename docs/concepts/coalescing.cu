// Adds up each row of an array, one thread a row. Neighbouring threads read elements that are a whole row apart.
extern "C" __global__ void rows_side_by_side(const float *x, int rows, int columns, float *sums)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0;
    for (int column = 0; column < columns; column++)
        sum += x[(long long)row * columns + column];
    sums[row] = sum;
}

// The same sums of the same numbers, where the array is stored column by column. Neighbouring threads read neighbours.
extern "C" __global__ void columns_side_by_side(const float *x, int rows, int columns, float *sums)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0;
    for (int column = 0; column < columns; column++)
        sum += x[(long long)column * rows + row];
    sums[row] = sum;
}
