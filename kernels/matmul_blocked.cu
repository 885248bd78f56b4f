// c = a @ b: a is m x k, b is k x n, C-contiguous. This is the step between matmul.cu and a fast kernel. In matmul.cu a
// thread computes one element of c, and for every multiply-add it reads two floats from shared memory: it spends its
// time reading. Here a thread computes EACH x EACH elements. For every step in k it reads EACH floats of a and EACH of
// b into registers, and multiplies each by each: 8 + 8 reads for 8 * 8 multiply-adds, or 1/4 read per multiply-add
// instead of 2. The tiles are larger too: a block reads 64 + 64 floats from global memory for 64 * 64 multiply-adds,
// which is 1/32 read per multiply-add; with the 16 x 16 tiles of matmul.cu it is 1/8.
// Blocks of THREADS threads; grid: one-dimensional, one block per tile of c, row by row.
#define TILE 64
#define DEPTH 8  // how much of k is in shared memory at a time
#define EACH 8
#define SIDE (TILE / EACH)
#define THREADS (SIDE * SIDE)

extern "C" __global__ void __launch_bounds__(THREADS)
matmul(const float *a, const float *b, float *c, long long m, long long k, long long n)
{
    __shared__ float a_tile[TILE][DEPTH], b_tile[DEPTH][TILE];
    const int t = threadIdx.x, x = t % SIDE, y = t / SIDE;
    const long long tiles_across = (n + TILE - 1) / TILE;
    const long long row = blockIdx.x / tiles_across * TILE, column = blockIdx.x % tiles_across * TILE;

    float sum[EACH][EACH] = {};
    for (long long start = 0; start < k; start += DEPTH) {
        // Each thread loads 8 elements of both tiles. Zeros outside a and b add nothing.
        for (int i = t; i < TILE * DEPTH; i += THREADS) {
            const int a_row = i / DEPTH, a_column = i % DEPTH, b_row = i / TILE, b_column = i % TILE;
            const bool in_a = row + a_row < m && start + a_column < k;
            const bool in_b = start + b_row < k && column + b_column < n;
            a_tile[a_row][a_column] = in_a ? a[(row + a_row) * k + start + a_column] : 0;
            b_tile[b_row][b_column] = in_b ? b[(start + b_row) * n + column + b_column] : 0;
        }
        __syncthreads();  // both tiles are full
        for (int i = 0; i < DEPTH; ++i) {
            float from_a[EACH], from_b[EACH];  // in registers: all loops over them have a fixed length
            // A thread takes every SIDE-th column, so that neighbouring threads read and write neighbouring columns.
            for (int j = 0; j < EACH; ++j) {
                from_a[j] = a_tile[y + j * SIDE][i];
                from_b[j] = b_tile[i][x + j * SIDE];
            }
            for (int p = 0; p < EACH; ++p)
                for (int q = 0; q < EACH; ++q)
                    sum[p][q] += from_a[p] * from_b[q];
        }
        __syncthreads();  // no thread needs them any more
    }
    for (int p = 0; p < EACH; ++p)
        for (int q = 0; q < EACH; ++q)
            if (row + y + p * SIDE < m && column + x + q * SIDE < n)
                c[(row + y + p * SIDE) * n + column + x + q * SIDE] = sum[p][q];
}
