"""Add one to an array in place in numba-cuda-mlir: a kernel in Python, compiled at its first launch.

Framework: numba-cuda-mlir
Runs on: NVIDIA GPU
Install: pip install "numba-cuda-mlir[cu13]"
Environment: numba_mlir
Follows: https://nvidia.github.io/numba-cuda-mlir/latest/user/kernels.html
Follows: https://nvidia.github.io/numba-cuda-mlir/latest/user/memory.html#pinned-memory

Only the import, the name and how a thread finds its element differ from the recipe in Numba, whose successor this is.
For new code, its documentation recommends the arrays of CuPy or PyTorch.
"""

import numpy as np
from numba_cuda_mlir import cuda

THREADS = 256  # per block; a multiple of the 32 of a warp


@cuda.jit
def kernel(a):
    i = cuda.blockIdx.x * THREADS + cuda.threadIdx.x  # 64-bit; cuda.grid(1) wraps at 2**31
    if i < a.size:  # the last block is rarely full
        a[i] += np.float32(1)  # numba-cuda-mlir would add a plain 1 in float64


def pinned(shape):
    size = int(np.prod(shape))
    return cuda.pinned_array(size or 1, np.float32)[:size].reshape(shape)  # no bytes are an error


def upload(*arrays):
    # Flat, then in shape: numba-cuda-mlir refuses the stride, 0 or less, that NumPy may give an axis of one element.
    return tuple(cuda.to_device(np.asarray(x, np.float32).ravel().reshape(np.shape(x))) for x in arrays)


def increment(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    if not a.is_c_contiguous():
        raise ValueError("increment takes a C-contiguous array, as upload() makes it")
    if a.size:  # a grid of no blocks is an error
        blocks = (a.size + THREADS - 1) // THREADS
        kernel[blocks, THREADS](a if a.ndim == 1 else a.ravel())  # ravel() only makes a view, but takes time
    return a


def wait(a):
    cuda.synchronize()


def download(a, out=None):
    if out is not None and not (out.shape == a.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {a.shape}, not {out.dtype} {out.shape}")
    return a.copy_to_host(out)


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print("increment, numba-cuda-mlir: 1,000,003 elements, all right")
