// c = a @ b: a is m x k, b is k x n, C-contiguous, k <= MOST_K. Fast if c has at most as many tiles of ROWS x COLUMNS
// as the GPU has multiprocessors. At 200 x 200 x 200 there are 8 million multiplications to do, a quarter of a
// microsecond for an H200, and everything else is waiting. So each block waits for memory once: it fetches all that
// its tile needs, 20 rows of a and 16 columns of b, at once. And no thread adds up 200 products one after another:
// GROUPS groups of 16 threads share k among them, each thread has 5 x 4 sums, and at the end the sums of the groups
// are added.
// Blocks of THREADS threads; grid: one-dimensional, one block per tile of c, row by row.
#define ROWS 20
#define COLUMNS 16
#define GROUPS 14
#define MOST_K 256
#define THREADS (16 * GROUPS)

// Copies 16 bytes from global to shared memory, bypassing registers: a thread can have any number of these in flight.
static __device__ void bring(float *to, const float *from)
{
#if __CUDA_ARCH__ >= 800
    const unsigned address = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
#else
    *(float4 *)to = *(const float4 *)from;
#endif
}

static __device__ bool aligned(const void *p) { return (size_t)p % 16 == 0; }  // a slice may start anywhere

extern "C" __global__ void __launch_bounds__(THREADS)
matmul(const float *__restrict__ a, const float *__restrict__ b, float *c, int m, int k, int n)
{
    __shared__ float4 memory[(ROWS + COLUMNS) * MOST_K / 4];
    const int padded = (k + 3) / 4 * 4;  // zeros up to a multiple of 4: they add nothing
    float *a_rows = (float *)memory, *b_columns = a_rows + ROWS * padded, *sums = (float *)memory;
    const int t = threadIdx.x, across = (n + COLUMNS - 1) / COLUMNS;
    const int first_row = blockIdx.x / across * ROWS, first_column = blockIdx.x % across * COLUMNS;

    // Beyond the last row or column, the last one is read again: those sums are not stored.
    if (k % 4 == 0 && aligned(a)) {  // whole rows: they are adjacent in a, and in shared memory too
        const float *from = a + (long long)first_row * k;
        const int last = min(ROWS, m - first_row) * k - 4;
        for (int i = 4 * t; i < ROWS * k; i += 4 * THREADS)
            bring(a_rows + i, from + min(i, last));
    } else {
        for (int i = t; i < ROWS * padded; i += THREADS) {
            const int row = min(first_row + i / padded, m - 1), column = i % padded;
            a_rows[i] = column < k ? a[(long long)row * k + column] : 0;
        }
    }
    if (n % 4 == 0 && aligned(b)) {
        const int column = t % 4 * 4;
        const float *from = b + min(first_column + column, n - 4);
        for (int row = t / 4; row < padded; row += THREADS / 4)
            if (row < k)
                bring(b_columns + row * COLUMNS + column, from + (long long)row * n);
            else
                *(float4 *)(b_columns + row * COLUMNS + column) = make_float4(0, 0, 0, 0);
    } else {
        for (int i = t; i < padded * COLUMNS; i += THREADS) {
            const int row = i / COLUMNS, column = min(first_column + i % COLUMNS, n - 1);
            b_columns[i] = row < k ? b[(long long)row * n + column] : 0;
        }
    }
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();

    const int group = t / 16, y = t % 16 / 4 * 5, x = t % 4 * 4;  // the thread's 5 x 4 of the tile
    float sum[5][4] = {};
    for (int i = 4 * group; i < padded; i += 4 * GROUPS) {
        float4 left[5], right[4];
        for (int row = 0; row < 5; ++row)
            left[row] = *(float4 *)(a_rows + (y + row) * padded + i);
        for (int row = 0; row < 4; ++row)
            right[row] = *(float4 *)(b_columns + (i + row) * COLUMNS + x);
        for (int row = 0; row < 5; ++row)
            for (int column = 0; column < 4; ++column)
                sum[row][column] += left[row].x * (&right[0].x)[column] + left[row].y * (&right[1].x)[column]
                                  + left[row].z * (&right[2].x)[column] + left[row].w * (&right[3].x)[column];
    }
    __syncthreads();  // no thread needs a and b any more: the groups' sums take their place
    for (int row = 0; row < 5; ++row)
        *(float4 *)(sums + (group * ROWS + y + row) * COLUMNS + x) = *(float4 *)sum[row];
    __syncthreads();
    for (int i = 2 * t; i < ROWS * COLUMNS; i += 2 * THREADS) {
        float2 total = *(float2 *)(sums + i);
        for (int other = 1; other < GROUPS; ++other) {
            const float2 more = *(float2 *)(sums + other * ROWS * COLUMNS + i);
            total.x += more.x, total.y += more.y;
        }
        const int row = first_row + i / COLUMNS, column = first_column + i % COLUMNS;
        float *to = c + (long long)row * n + column;
        if (row < m && column + 1 < n && (size_t)to % 8 == 0)
            *(float2 *)to = total;
        else if (row < m && column < n) {
            to[0] = total.x;
            if (column + 1 < n)
                to[1] = total.y;
        }
    }
}

// Brings size_a floats of a, and then size_b floats of b, to the GPU, one per thread: each of them crosses the bus once,
// from the host's page-locked memory, which kernels reach.
extern "C" __global__ void fetch(const float *a, const float *b, float *to, int size_a, int size_b)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size_a + size_b)
        to[i] = i < size_a ? a[i] : b[i - size_a];
}
