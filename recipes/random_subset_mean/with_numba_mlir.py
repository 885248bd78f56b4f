"""Mean of a subset of random samples in numba-cuda-mlir: Philox in a kernel, chunk by chunk, and two more kernels.

Framework: numba-cuda-mlir
Runs on: NVIDIA GPU
Install: pip install "numba-cuda-mlir[cu13]"
Environment: numba_mlir
Follows: https://nvidia.github.io/numba-cuda-mlir/latest/user/kernels.html
Follows: https://nvidia.github.io/numba-cuda-mlir/latest/user/random.html

Its xoroshiro128+ generator is deprecated, and no kernel of version 0.5 can call it. So this recipe has a generator of
its own, Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3"): a sample is a function of the
seed and of its place alone.
"""

import math
from operator import index

import numpy as np
from numba_cuda_mlir import cuda

BLOCKS = 1024  # at most
THREADS = 256  # per block

# With a plain integer, Numba would make a float64 of a uint64.
WORD, HALF, LOST = np.uint64(2**32 - 1), np.uint64(32), np.uint64(11)  # a float64 has 53 bits: 11 of 64 are lost
FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


@cuda.jit(device=True)
def sum_of_block(x):  # over its threads; only thread 0 gets it
    sums = cuda.shared.array(THREADS, np.float64)
    thread = cuda.threadIdx.x
    sums[thread] = x
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if thread < half:
            sums[thread] += sums[thread + half]
        half //= 2
    return sums[0]


@cuda.jit
def add_subset(x, first_row, first_column, partial):  # rows are shared out among blocks, columns among threads
    total = 0.0
    for row in range(first_row + 2 * cuda.blockIdx.x, x.shape[0], 2 * cuda.gridDim.x):
        for column in range(first_column + 2 * cuda.threadIdx.x, x.shape[1], 2 * THREADS):
            total += x[row, column] + 1
    total = sum_of_block(total)
    if cuda.threadIdx.x == 0:
        partial[cuda.blockIdx.x] += total  # no atomics: the same answer every time


@cuda.jit
def mean_of_sums(partial, count, result):
    total = 0.0
    for i in range(cuda.threadIdx.x, partial.size, THREADS):
        total += partial[i]
    total = sum_of_block(total)
    if cuda.threadIdx.x == 0:
        result[0] = total / count


@cuda.jit(device=True)
def normal(row, column, seed):  # Box and Muller make it of the four words of Philox
    c0, c1, c2, c3 = column & WORD, column >> HALF, row & WORD, row >> HALF
    k0, k1 = seed & WORD, seed >> HALF
    for _ in range(10):
        product, other = FACTORS[0] * c0, FACTORS[1] * c2
        c0, c1, c2, c3 = (other >> HALF) ^ c1 ^ k0, other & WORD, (product >> HALF) ^ c3 ^ k1, product & WORD
        k0, k1 = (k0 + STEPS[0]) & WORD, (k1 + STEPS[1]) & WORD
    u = ((c0 << HALF | c1) >> LOST) * 2.0**-53 + 2.0**-54  # above 0, of which there is no logarithm
    turn = ((c2 << HALF | c3) >> LOST) * 2.0**-53
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * turn)


@cuda.jit
def fill_normal(x, first_row, first_column, seed):  # rows are shared out among blocks, columns among threads
    for row in range(cuda.blockIdx.x, x.shape[0], cuda.gridDim.x):
        for column in range(cuda.threadIdx.x, x.shape[1], THREADS):
            x[row, column] = 10 + normal(np.uint64(first_row + row), np.uint64(first_column + column), seed)


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    if count == 0:
        return cuda.to_device(np.array([np.nan]))
    samples = cuda.device_array(min(chunk, rows) * min(chunk, columns), np.float64)
    blocks = min(BLOCKS, min(chunk, rows))
    partial = cuda.to_device(np.zeros(blocks))
    result = cuda.device_array(1, np.float64)
    for row in range(0, rows, chunk):
        for column in range(0, columns, chunk):
            shape = min(chunk, rows - row), min(chunk, columns - column)
            x = samples[: shape[0] * shape[1]].reshape(shape)
            fill_normal[blocks, THREADS](x, row, column, np.uint64(seed))
            add_subset[blocks, THREADS](x, row % 2, column % 2, partial)
    mean_of_sums[1, THREADS](partial, count, result)
    return result


def wait(mean):
    cuda.synchronize()


def download(mean):
    return float(mean.copy_to_host()[0])


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, numba-cuda-mlir: 4,000 × 4,000 samples, all right")
