"""Mean of every other row and column, plus one, in numba-cuda-mlir: two kernels in Python.

Framework: numba-cuda-mlir
Runs on: NVIDIA GPU
Install: pip install "numba-cuda-mlir[cu13]"
Environment: numba_mlir
Follows: https://nvidia.github.io/numba-cuda-mlir/latest/user/examples.html
Follows: https://nvidia.github.io/numba-cuda-mlir/latest/user/memory.html#pinned-memory

Only the import and the name differ from the recipe in Numba, whose successor this is. For new code, its documentation
recommends the arrays of CuPy or PyTorch.
"""

import numpy as np
from numba_cuda_mlir import cuda

BLOCKS = 1024  # at most
THREADS = 256  # per block


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


def pinned(shape):
    size = int(np.prod(shape))
    return cuda.pinned_array(size or 1, np.float64)[:size].reshape(shape)  # no bytes are an error


def upload(*arrays):
    # Flat, then in shape: numba-cuda-mlir refuses the stride, 0 or less, that NumPy may give an axis of one element.
    return tuple(cuda.to_device(np.asarray(x, np.float64).ravel().reshape(np.shape(x))) for x in arrays)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    count = ((x.shape[0] + 1) // 2) * ((x.shape[1] + 1) // 2)
    if count == 0:
        return cuda.to_device(np.array([np.nan]))
    blocks = min(BLOCKS, (x.shape[0] + 1) // 2)
    partial = cuda.to_device(np.zeros(blocks))
    result = cuda.device_array(1, np.float64)
    add_subset[blocks, THREADS](x, 0, 0, partial)
    mean_of_sums[1, THREADS](partial, count, result)
    return result


def wait(mean):
    cuda.synchronize()


def download(mean):
    return float(mean.copy_to_host()[0])


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, numba-cuda-mlir: 333 × 1,001 elements, all right")
