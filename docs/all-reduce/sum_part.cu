// Adds up one GPU's part of all arrays, and writes the sums into every array: the addresses of the others are those of
// other GPUs' memory, which NVLink or the bus reads and writes. No other GPU touches this part.
// first, end: the part, in vectors of four elements. rest: elements after all vectors, fewer than four, which the last GPU
// adds up as well.
extern "C" __global__ void sum_part(float* const* arrays, int count, long long first, long long end, int rest)
{
    const long long step = (long long)gridDim.x * blockDim.x;
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (long long i = first + thread; i < end; i += step) {
        float4 sum = ((const float4*)arrays[0])[i];
        for (int k = 1; k < count; k++) {
            const float4 x = ((const float4*)arrays[k])[i];
            sum.x += x.x;
            sum.y += x.y;
            sum.z += x.z;
            sum.w += x.w;
        }
        for (int k = 0; k < count; k++)
            ((float4*)arrays[k])[i] = sum;
    }
    if (thread < rest) {
        const long long i = 4 * end + thread;
        float sum = arrays[0][i];
        for (int k = 1; k < count; k++)
            sum += arrays[k][i];
        for (int k = 0; k < count; k++)
            arrays[k][i] = sum;
    }
}
