// c = a @ b: a is m x k, b is k x n, C-contiguous. A work-group of TILE x TILE work-items makes one tile of c, one
// work-item per element. It reads a and b in tiles too, so that each element comes from memory once per group, not once
// per work-item. The groups are numbered along one dimension: one per tile of c, row by row.
#define TILE 16

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void matmul(__global const float *a, __global const float *b, __global float *c, const long m, const long k,
            const long n)
{
    __local float a_tile[TILE][TILE], b_tile[TILE][TILE];
    const int x = get_local_id(0), y = get_local_id(1);
    const long tiles_across = (n + TILE - 1) / TILE, group = get_group_id(0);
    const long row = group / tiles_across * TILE + y, column = group % tiles_across * TILE + x;

    float sum = 0;
    for (long start = 0; start < k; start += TILE) {
        // Zeros outside a and b add nothing. No work-item may return early: all of them fill the tiles.
        a_tile[y][x] = row < m && start + x < k ? a[row * k + start + x] : 0;
        b_tile[y][x] = start + y < k && column < n ? b[(start + y) * n + column] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);  // both tiles are full
        for (int i = 0; i < TILE; ++i)
            sum += a_tile[y][i] * b_tile[i][x];
        barrier(CLK_LOCAL_MEM_FENCE);  // no work-item needs them any more
    }
    if (row < m && column < n)
        c[row * n + column] = sum;
}
