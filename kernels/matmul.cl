// c = a @ b: M×K times K×N, row by row. A work-group of TILE × TILE makes one tile of c: it takes a tile of a and one of
// b into local memory at a time, so that each number is read from global memory once a tile, not once an element.
// The groups are numbered along one dimension: the tiles of c, row by row.
#define TILE 16

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void matmul(__global const float *a, __global const float *b, __global float *c, const long M, const long K, const long N)
{
    __local float a_tile[TILE][TILE], b_tile[TILE][TILE];
    const int x = get_local_id(0), y = get_local_id(1);  // neighbours in x read neighbours in memory
    const long tiles = (N + TILE - 1) / TILE;  // in a row of tiles
    const long row = (long)get_group_id(0) / tiles * TILE + y, column = (long)get_group_id(0) % tiles * TILE + x;
    float sum = 0;
    for (long k = 0; k < K; k += TILE) {
        // Outside the matrices the tiles are zero, and add nothing.
        a_tile[y][x] = row < M && k + x < K ? a[row * K + k + x] : 0;
        b_tile[y][x] = k + y < K && column < N ? b[(k + y) * N + column] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < TILE; i++)
            sum += a_tile[y][i] * b_tile[i][x];
        barrier(CLK_LOCAL_MEM_FENCE);  // before the next tiles overwrite these
    }
    if (row < M && column < N)
        c[row * N + column] = sum;
}
