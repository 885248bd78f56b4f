// Latency. Each element holds the address of the next one, so that one thread has one load under way at a time. It goes
// on where the launch before it has stopped. __ldg may find it in L1, __ldcg passes L1 by.
extern "C" __global__ void chase_through_l1(unsigned long long *state, int steps)
{
    unsigned long long at = *state;
    for (int i = 0; i < steps; i++)
        at = __ldg((const unsigned long long *)at);
    *state = at;
}

extern "C" __global__ void chase_past_l1(unsigned long long *state, int steps)
{
    unsigned long long at = *state;
    for (int i = 0; i < steps; i++)
        at = __ldcg((const unsigned long long *)at);
    *state = at;
}

// The same in shared memory, by offsets in bytes: ring[i / 4] holds the one that comes after i.
extern "C" __global__ void chase_in_shared(const unsigned int *offsets, unsigned int *state, int steps)
{
    __shared__ unsigned int ring[256];
    for (int i = 0; i < 256; i++)
        ring[i] = offsets[i];
    unsigned int at = *state;
    for (int i = 0; i < steps; i++)
        at = *(const unsigned int *)((const char *)ring + at);
    *state = at;
}

// Bandwidth. Each block reads a stretch of `each` vectors for each of its threads, from the 2**k vectors of x; the mask
// is 2**k - 1, and what lies beyond the end is the beginning again. __ldcg passes L1 by, and __launch_bounds__ keeps
// the registers few enough for eight blocks on a multiprocessor.
extern "C" __global__ void __launch_bounds__(256, 8) read_past_l1(const float4 *x, unsigned int mask, int each,
                                                                  float *sums)
{
    const unsigned int first = blockIdx.x * blockDim.x * each + threadIdx.x;
    float sum = 0;
    #pragma unroll 4
    for (int k = 0; k < each; k++) {
        const float4 v = __ldcg(&x[(first + k * blockDim.x) & mask]);
        sum += v.x + v.y + v.z + v.w;
    }
    sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Each thread reads `each` vectors of 1,024 in shared memory, always `stride` further: a stride that the compiler does
// not know keeps it from reading once what comes again.
extern "C" __global__ void __launch_bounds__(256, 8) read_shared(const float4 *x, unsigned int stride, int each,
                                                                 float *sums)
{
    __shared__ float4 tile[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x)
        tile[i] = x[i];
    __syncthreads();
    float sum = 0;
    #pragma unroll 4
    for (int k = 0; k < each; k++) {
        const float4 v = tile[(threadIdx.x + k * stride) & 1023];
        sum += v.x + v.y + v.z + v.w;
    }
    sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
