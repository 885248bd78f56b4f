// Normal(10, 1) samples into a chunk of rows x columns, C-contiguous, that begins at (first_row, first_column) of an
// array. A sample is a function of the seed and of its place in the array alone, whatever the chunks: the Box-Muller
// transform of the Philox4x32-10 block (Salmon et al., 2011) with the key seed and the counter (column, row).
// Grid: any; each thread makes every so many samples.
extern "C" __global__ void fill_normal(double *x, long long rows, long long columns, long long first_row,
                                       long long first_column, unsigned long long seed)
{
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < rows * columns; i += step) {
        const unsigned long long row = first_row + i / columns, column = first_column + i % columns;
        unsigned c0 = column, c1 = column >> 32, c2 = row, c3 = row >> 32, k0 = seed, k1 = seed >> 32;
        for (int round = 0; round < 10; ++round) {
            const unsigned low0 = 0xD2511F53 * c0, high0 = __umulhi(0xD2511F53, c0);
            const unsigned low1 = 0xCD9E8D57 * c2, high1 = __umulhi(0xCD9E8D57, c2);
            c0 = high1 ^ c1 ^ k0, c1 = low1, c2 = high0 ^ c3 ^ k1, c3 = low0;
            k0 += 0x9E3779B9, k1 += 0xBB67AE85;
        }
        // u in (0, 1], as log(0) is infinite; v in [0, 2), half turns
        const double u = ((((unsigned long long)c0 << 32 | c1) >> 11) + 0.5) * 0x1p-53;
        const double v = (((unsigned long long)c2 << 32 | c3) >> 11) * 0x1p-52;
        x[i] = 10 + sqrt(-2 * log(u)) * cospi(v);
    }
}
