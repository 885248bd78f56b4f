// c = a @ b: a is m x k, b is k x n, C-contiguous. Two kernels: matmul_small for a c of few elements and a k of at most
// 256, matmul_large for the rest. Both take work-groups of 256 work-items, numbered along one dimension: one group per
// tile of c, row by row.

// The four elements from x on. The row has only left more: those beyond are zero, and are not read.
// wide: every row starts at a multiple of 16 bytes and has a multiple of four columns, so that one load reads four.
float4 four(__global const float *x, const long left, const bool wide)
{
    float4 value = 0;
    if (left > 0) {
        if (wide) {
            value = *(__global const float4 *)x;
        } else {
            value.x = x[0];
            if (left > 1)
                value.y = x[1];
            if (left > 2)
                value.z = x[2];
            if (left > 3)
                value.w = x[3];
        }
    }
    return value;
}

void put_four(__global float *x, const long left, const bool wide, const float4 value)
{
    if (left > 0) {
        if (wide) {
            *(__global float4 *)x = value;
        } else {
            x[0] = value.x;
            if (left > 1)
                x[1] = value.y;
            if (left > 2)
                x[2] = value.z;
            if (left > 3)
                x[3] = value.w;
        }
    }
}

bool is_wide(__global const float *x, const long columns)
{
    return (size_t)x % 16 == 0 && columns % 4 == 0;
}

// ---- matmul_small: 20 x 16 tiles of c, so that a c of 200 x 200 has 130 tiles for the 132 compute units of an H200.
// All of k is in local memory at once: one wait for memory, one barrier. The work-items are 16 teams of 4 x 4, each
// work-item with 5 x 4 sums; each team takes a sixteenth of k, and the teams' sums are added at the end.
#define HEIGHT 20
#define WIDTH 16
#define MOST_K 256

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void matmul_small(__global const float *a, __global const float *b, __global float *c, const long m, const long k,
                  const long n)
{
    // Local memory has 32 banks of 4 bytes. Rows of a_tile are 8 floats longer than needed, and rows of b_tile 4, so
    // that what 32 neighbours read at once lies in 32 different banks: 5 * 264 % 32 = 8, 4 * 20 % 32 = 16.
    __local float4 a_tile[HEIGHT][MOST_K / 4 + 2], b_tile[MOST_K][WIDTH / 4 + 1];
    const int item = get_local_id(0);
    const long across = (n + WIDTH - 1) / WIDTH, group = get_group_id(0);
    const long row = group / across * HEIGHT, column = group % across * WIDTH;
    const bool a_wide = is_wide(a, k), b_wide = is_wide(b, n), c_wide = is_wide(c, n);

    const long a_x = item % 64 * 4, b_x = column + item % 4 * 4;
    float4 from_a[HEIGHT / 4], from_b[MOST_K / 64];  // all loads are in flight before the first is needed
#pragma unroll
    for (int i = 0; i < HEIGHT / 4; ++i) {
        const long y = row + 4 * i + item / 64;
        from_a[i] = four(a + y * k + a_x, y < m ? k - a_x : 0, a_wide);
    }
#pragma unroll
    for (int i = 0; i < MOST_K / 64; ++i) {
        const long y = 64 * i + item / 4;
        from_b[i] = four(b + y * n + b_x, y < k ? n - b_x : 0, b_wide);
    }
#pragma unroll
    for (int i = 0; i < HEIGHT / 4; ++i)
        a_tile[4 * i + item / 64][item % 64] = from_a[i];
#pragma unroll
    for (int i = 0; i < MOST_K / 64; ++i)
        b_tile[64 * i + item / 4][item % 4] = from_b[i];
    barrier(CLK_LOCAL_MEM_FENCE);

    const int team = item / 16, y = item % 16 / 4 * 5, x = item % 4;
    float4 sum[5];
#pragma unroll
    for (int j = 0; j < 5; ++j)
        sum[j] = 0;
    for (int i = 4 * team; i < k; i += 64) {  // in b's rows; both tiles are zero from k on
        const float4 b0 = b_tile[i][x], b1 = b_tile[i + 1][x], b2 = b_tile[i + 2][x], b3 = b_tile[i + 3][x];
#pragma unroll
        for (int j = 0; j < 5; ++j) {
            const float4 from = a_tile[y + j][i / 4];
            sum[j] += from.x * b0;
            sum[j] += from.y * b1;
            sum[j] += from.z * b2;
            sum[j] += from.w * b3;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // no work-item needs a_tile any more: the teams' sums take its place

    __local float4 *sums = &a_tile[0][0];
#pragma unroll
    for (int j = 0; j < 5; ++j)
        sums[team * (HEIGHT * WIDTH / 4) + (y + j) * (WIDTH / 4) + x] = sum[j];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < HEIGHT * WIDTH / 4) {
        float4 total = sums[item];
#pragma unroll
        for (int i = 1; i < 16; ++i)
            total += sums[i * (HEIGHT * WIDTH / 4) + item];
        const long to = row + item / 4;
        put_four(c + to * n + b_x, to < m ? n - b_x : 0, c_wide, total);
    }
}

// ---- matmul_large: TILE x TILE tiles of c, TILE / 16 x TILE / 16 sums per work-item, in blocks of 4 x 4. From local
// memory a work-item reads 2 * TILE / 16 floats for TILE / 16 * TILE / 16 products. TILE is 128 if c has enough tiles
// for every compute unit, and 64 if it does not.
#ifndef TILE
#define TILE 128
#endif
#define BLOCKS (TILE / 64)
#define DEPTH (1024 / TILE)  // of k per step: each work-item loads four elements of a and four of b

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void matmul_large(__global const float *a, __global const float *b, __global float *c, const long m, const long k,
                  const long n)
{
    // Two of each: while one is read, the next is filled, and one barrier per step is enough. a_tile is transposed,
    // with four more floats per row, so that neighbours that write to different rows use different banks.
    __local float4 a_tile[2][DEPTH][TILE / 4 + 1], b_tile[2][DEPTH][TILE / 4];
    const int item = get_local_id(0);
    const long across = (n + TILE - 1) / TILE, group = get_group_id(0);
    const long row = group / across * TILE, column = group % across * TILE;
    const bool a_wide = is_wide(a, k), b_wide = is_wide(b, n), c_wide = is_wide(c, n);

    // What this work-item loads: four neighbours in a row of a, four in a row of b.
    const int a_y = item / (DEPTH / 4), a_x = item % (DEPTH / 4) * 4;
    const int b_y = item / (TILE / 4), b_x = item % (TILE / 4);
    __global const float *from_a = a + (row + a_y) * k + a_x, *from_b = b + b_y * n + column + 4 * b_x;
    long a_left = row + a_y < m ? k - a_x : 0, b_rows = k - b_y;
    const long b_left = n - column - 4 * b_x;

    // What it computes: 32 neighbours have 4 x 8 blocks, whose 4 + 8 float4 are read without bank conflicts. Eight such
    // groups make the tile, four down and two across.
    const int y = item / 64 * (TILE / 16) + item % 32 / 8, x = item / 32 % 2 * (TILE / 8) + item % 8;
    float4 sum[4 * BLOCKS][BLOCKS];
#pragma unroll
    for (int i = 0; i < 4 * BLOCKS; ++i)
#pragma unroll
        for (int j = 0; j < BLOCKS; ++j)
            sum[i][j] = 0;

    int now = 0;
    float4 next_a = four(from_a, a_left, a_wide), next_b = four(from_b, b_rows > 0 ? b_left : 0, b_wide);
    for (long start = 0; start < k; start += DEPTH) {
        __local float *to = (__local float *)a_tile[now][a_x] + a_y;
        to[0] = next_a.x;
        to[TILE + 4] = next_a.y;
        to[2 * (TILE + 4)] = next_a.z;
        to[3 * (TILE + 4)] = next_a.w;
        b_tile[now][b_y][b_x] = next_b;
        barrier(CLK_LOCAL_MEM_FENCE);

        // Load for the next step while this one is computed; zeros after the last.
        from_a += DEPTH;
        from_b += DEPTH * n;
        a_left -= DEPTH;
        b_rows -= DEPTH;
        next_a = four(from_a, a_left, a_wide);
        next_b = four(from_b, b_rows > 0 ? b_left : 0, b_wide);
#pragma unroll
        for (int i = 0; i < DEPTH; ++i) {
            float4 a_part[BLOCKS], b_part[BLOCKS];
#pragma unroll
            for (int j = 0; j < BLOCKS; ++j) {
                a_part[j] = a_tile[now][i][y + 4 * j];
                b_part[j] = b_tile[now][i][x + 8 * j];
            }
#pragma unroll
            for (int p = 0; p < BLOCKS; ++p)
#pragma unroll
                for (int q = 0; q < BLOCKS; ++q) {
                    sum[4 * p][q] += a_part[p].x * b_part[q];
                    sum[4 * p + 1][q] += a_part[p].y * b_part[q];
                    sum[4 * p + 2][q] += a_part[p].z * b_part[q];
                    sum[4 * p + 3][q] += a_part[p].w * b_part[q];
                }
        }
        now = 1 - now;
    }
#pragma unroll
    for (int i = 0; i < 4 * BLOCKS; ++i) {
        const long to = row + 4 * (y + i / 4 * 4) + i % 4;
#pragma unroll
        for (int j = 0; j < BLOCKS; ++j) {
            const long at = column + 4 * (x + 8 * j);
            put_four(c + to * n + at, to < m ? n - at : 0, c_wide, sum[i][j]);
        }
    }
}
