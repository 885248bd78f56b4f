// Four generators of random numbers. Each takes a loop of its own.
__device__ unsigned int advanced(int generator, unsigned int x, int steps)
{
    if (generator == 0)
        for (int i = 0; i < steps; i++)
            x = x * 1664525u + 1013904223u;
    else if (generator == 1)
        for (int i = 0; i < steps; i++)
            x = (x >> 1) ^ (-(x & 1u) & 0xA3000000u);
    else if (generator == 2)
        for (int i = 0; i < steps; i++) {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
        }
    else
        for (int i = 0; i < steps; i++)
            x = (x << 7 | x >> 25) * 5u + 0xE6546B64u;
    return x;
}

// Element i belongs to generator i % 4. Thread i takes it, so that each warp has all four.
extern "C" __global__ void mixed(const unsigned int *x, unsigned int *out, int n, int steps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = advanced(i % 4, x[i], steps);
}

// The first quarter of the threads takes the elements of generator 0, and so on. n is a multiple of 4.
extern "C" __global__ void sorted(const unsigned int *x, unsigned int *out, int n, int steps)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x, quarter = n / 4;
    if (thread < n) {
        const int i = thread % quarter * 4 + thread / quarter;
        out[i] = advanced(i % 4, x[i], steps);
    }
}
