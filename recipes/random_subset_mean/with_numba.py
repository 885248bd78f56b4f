"""Mean of a subset of random samples in Numba: its xoroshiro128+ generator, chunk by chunk, and two kernels.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" "numpy<2.5"
Follows: https://nvidia.github.io/numba-cuda/user/random.html
Math: float64, but xoroshiro128p_normal_float64 makes each sample of two float32 numbers
"""

from operator import index

import numpy as np
from numba import cuda
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_normal_float64

BLOCKS = 256  # at most: each thread has a generator, which the CPU starts, 65,536 of them in 12 ms
THREADS = 256


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


@cuda.jit
def fill_normal(states, x):
    thread = cuda.grid(1)
    for i in range(thread, x.size, cuda.gridsize(1)):
        x[i] = 10 + xoroshiro128p_normal_float64(states, thread)


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
    blocks = min(BLOCKS, (min(chunk, rows) + 1) // 2)
    # np.uint64: after a seed that fits an int64, Numba refuses plain ones from 2**63 on.
    states = create_xoroshiro128p_states(blocks * THREADS, np.uint64(seed))
    partial = cuda.to_device(np.zeros(blocks))
    result = cuda.device_array(1, np.float64)
    for row in range(0, rows, chunk):
        for column in range(0, columns, chunk):
            shape = min(chunk, rows - row), min(chunk, columns - column)
            x = samples[: shape[0] * shape[1]]
            fill_normal[blocks, THREADS](states, x)
            add_subset[blocks, THREADS](x.reshape(shape), row % 2, column % 2, partial)
    mean_of_sums[1, THREADS](partial, count, result)
    return result


def wait(mean):
    cuda.synchronize()


def download(mean):
    return float(mean.copy_to_host()[0])


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Numba: 4,000 × 4,000 samples, all right")
