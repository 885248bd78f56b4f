"""Mean of a subset of random samples in numba-cuda-mlir, tuned: one kernel makes and adds them, in registers.

Framework: numba-cuda-mlir
Runs on: NVIDIA GPU
Install: pip install "numba-cuda-mlir[cu13]"
Environment: numba_mlir
Math: float64, but the square root is refined from a float32 one, right to about one rounding

Only the samples of the subset are made, by Philox, written out here, as the library's generator makes others; none is
stored. On an NVIDIA H200: 13.0 ms for 100,000² instead of 128 (with_numba_mlir.py).
"""

import math
from operator import index

import numpy as np
from numba_cuda_mlir import cuda

BLOCKS, THREADS = 2**16, 128  # at most; below that, one block per row: the last to end leave little of the GPU idle
# An np.uint64 and an int would make a float: constants of Philox4x32-10 (Salmon et al., 2011) as np.uint64.
M0, M1, STEP0, STEP1, LOW = map(np.uint64, (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85, 2**32 - 1))


@cuda.jit(device=True)
def sum_of_pair(column, columns, row, seed):
    # Two normal(0, 1) samples: of this column, a multiple of 4, and of column + 2, if there is one.
    pair, row = np.uint64(column >> 1), np.uint64(row)
    c0, c1, c2, c3, k0, k1 = pair & LOW, pair >> 32, row & LOW, row >> 32, seed & LOW, seed >> 32
    for _ in range(10):
        product0, product1 = M0 * c0, M1 * c2
        c0, c1, c2, c3 = product1 >> 32 ^ c1 ^ k0, product1 & LOW, product0 >> 32 ^ c3 ^ k1, product0 & LOW
        k0, k1 = k0 + STEP0 & LOW, k1 + STEP1 & LOW
    u = (np.float64((c0 << 32 | c1) >> 11) + 0.5) * 2.0**-53  # in (0, 1]: log(0) is no number
    sine, cosine = cuda.libdevice.sincospi(np.float64((c2 << 32 | c3) >> 11) * 2.0**-52)  # of [0, 2) half turns
    t = -2 * math.log(u) + 1e-37  # which changes nothing, except where u is 1
    inverse = np.float64(cuda.libdevice.rsqrtf(np.float32(t)))  # of sqrt(t), and then two terms more of its series
    error = 1 - t * inverse * inverse
    radius = t * inverse + t * inverse * error * (0.5 + 0.375 * error)
    return radius * cosine + (radius * sine if column + 2 < columns else 0.0)


@cuda.jit(device=True)
def sum_of_block(x):  # over its threads; only thread 0 gets it
    sums = cuda.shared.array(THREADS, np.float64)
    sums[cuda.threadIdx.x] = x
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        for i in range(1, THREADS):
            x += sums[i]
    return x


@cuda.jit
def add_subset(rows, columns, seed, partial):  # rows are shared out among blocks, pairs of columns among threads
    total = 0.0
    for row in range(2 * cuda.blockIdx.x, rows, 2 * cuda.gridDim.x):
        for column in range(4 * cuda.threadIdx.x, columns, 4 * THREADS):
            total += sum_of_pair(column, columns, row, seed)
    total = sum_of_block(total)
    if cuda.threadIdx.x == 0:
        partial[cuda.blockIdx.x] = total  # no atomics: the same answer every time


@cuda.jit
def mean_of_sums(partial, count, result):
    total = 0.0
    for i in range(cuda.threadIdx.x, partial.size, THREADS):
        total += partial[i]
    total = sum_of_block(total)
    if cuda.threadIdx.x == 0:
        result[0] = 11 + total / count


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:  # chunk is not used, as nothing is stored
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    if count == 0:
        return cuda.to_device(np.array([np.nan]))
    partial, result = (cuda.device_array(n, np.float64) for n in (min(BLOCKS, (rows + 1) // 2), 1))
    add_subset[partial.size, THREADS](rows, columns, np.uint64(seed), partial)
    mean_of_sums[1, THREADS](partial, count, result)
    return result


def wait(mean):
    cuda.synchronize()


def download(mean):
    return float(mean.copy_to_host()[0])


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, numba-cuda-mlir tuned: 4,000 × 4,000 samples, all right")
