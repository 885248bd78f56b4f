// c = a @ b: a is m x k, b is k x n, C-contiguous. A block of TILE x TILE threads makes one tile of c, one thread per
// element. It reads a and b in tiles too, so that each element comes from memory once per block, not once per thread.
// Grid: one-dimensional (gridDim.y is limited to 65,535), one block per tile of c, row by row.
#define TILE 16

extern "C" __global__ void matmul(const float *a, const float *b, float *c, long long m, long long k, long long n)
{
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const long long tiles_across = (n + TILE - 1) / TILE;
    const long long row = blockIdx.x / tiles_across * TILE + y, column = blockIdx.x % tiles_across * TILE + x;

    float sum = 0;
    for (long long start = 0; start < k; start += TILE) {
        // Zeros outside a and b add nothing. No thread may return early: all of them fill the tiles.
        a_tile[y][x] = row < m && start + x < k ? a[row * k + start + x] : 0;
        b_tile[y][x] = start + y < k && column < n ? b[(start + y) * n + column] : 0;
        __syncthreads();  // both tiles are full
        for (int i = 0; i < TILE; ++i)
            sum += a_tile[y][i] * b_tile[i][x];
        __syncthreads();  // no thread needs them any more
    }
    if (row < m && column < n)
        c[row * n + column] = sum;
}
