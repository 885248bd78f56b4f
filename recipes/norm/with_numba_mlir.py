"""Norm of an array in numba-cuda-mlir: two kernels in Python.

Framework: numba-cuda-mlir
Runs on: NVIDIA GPU
Install: pip install "numba-cuda-mlir[cu13]"
Environment: numba_mlir
Follows: https://nvidia.github.io/numba-cuda-mlir/latest/user/examples.html
Follows: https://nvidia.github.io/numba-cuda-mlir/latest/user/memory.html#pinned-memory

But for the import and the name, the recipe in Numba, whose successor this is, differs in one line: there, cuda.grid()
and cuda.gridsize() have 64 bits. For new code, the documentation recommends the arrays of CuPy or PyTorch.
"""

import math

import numpy as np
from numba_cuda_mlir import cuda

BLOCKS = 1024  # at most
THREADS = 256  # per block


@cuda.jit(device=True)
def sum_of_block(x):  # over its threads; only thread 0 gets it
    sums = cuda.shared.array(THREADS, np.float32)
    thread = cuda.threadIdx.x
    sums[thread] = x
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if thread < half:
            sums[thread] += sums[thread + half]
        half //= 2
    return sums[0] if thread == 0 else np.float32(0)


@cuda.jit
def add_squares(x, partial):
    total = np.float32(0)  # numba-cuda-mlir would add to a plain 0 in float64
    # i needs 64 bits, which cuda.grid(1) and cuda.gridsize(1) do not have here
    for i in range(cuda.blockIdx.x * THREADS + cuda.threadIdx.x, x.size, cuda.gridDim.x * THREADS):
        total += x[i] * x[i]
    total = sum_of_block(total)
    if cuda.threadIdx.x == 0:
        partial[cuda.blockIdx.x] = total  # no atomics: the same answer every time


@cuda.jit
def root(partial, norm):
    total = np.float32(0)
    for i in range(cuda.threadIdx.x, partial.size, THREADS):
        total += partial[i]
    total = sum_of_block(total)
    if cuda.threadIdx.x == 0:
        norm[0] = math.sqrt(total)


def pinned(shape):
    size = int(np.prod(shape))
    return cuda.pinned_array(size or 1, np.float32)[:size].reshape(shape)  # no bytes are an error


def upload(*arrays):
    # Flat, then in shape: numba-cuda-mlir refuses the stride, 0 or less, that NumPy may give an axis of one element.
    return tuple(cuda.to_device(np.asarray(x, np.float32).ravel().reshape(np.shape(x))) for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    if not x.is_c_contiguous():
        raise ValueError("norm takes a C-contiguous array, as upload() makes it")
    if x.size == 0:  # a grid of no blocks is an error
        return cuda.to_device(np.zeros(1, np.float32))
    blocks = min(BLOCKS, (x.size + THREADS - 1) // THREADS)
    partial = cuda.device_array(blocks, np.float32)
    result = cuda.device_array(1, np.float32)
    add_squares[blocks, THREADS](x if x.ndim == 1 else x.ravel(), partial)  # ravel() takes longer than a launch
    root[1, THREADS](partial, result)
    return result


def wait(norm):
    cuda.synchronize()


def download(norm):
    return norm.copy_to_host()[0]


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, numba-cuda-mlir: 1,000,003 elements, all right")
