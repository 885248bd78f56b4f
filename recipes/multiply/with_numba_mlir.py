"""Multiply two arrays in numba-cuda-mlir: a kernel in Python, compiled at its first launch.

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
def kernel(a, b, c):
    i = cuda.blockIdx.x * THREADS + cuda.threadIdx.x  # 64-bit; cuda.grid(1) wraps at 2**31
    if i < c.size:  # the last block is rarely full
        c[i] = a[i] * b[i]


def pinned(shape):
    size = int(np.prod(shape))
    return cuda.pinned_array(size or 1, np.float32)[:size].reshape(shape)  # no bytes are an error


def upload(*arrays):
    # Flat, then in shape: numba-cuda-mlir refuses the stride, 0 or less, that NumPy may give an axis of one element.
    return tuple(cuda.to_device(np.asarray(x, np.float32).ravel().reshape(np.shape(x))) for x in arrays)


def multiply(a, b, out=None):
    out = cuda.device_array(a.shape, a.dtype) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    if not all(x.is_c_contiguous() for x in (a, b, out)):
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    if a.size:  # a grid of no blocks is an error
        blocks = (a.size + THREADS - 1) // THREADS
        # The kernel is for one axis. ravel() only makes a view, but that takes time.
        kernel[blocks, THREADS](*(x if x.ndim == 1 else x.ravel() for x in (a, b, out)))
    return out


def wait(c):
    cuda.synchronize()


def download(c, out=None):
    if out is not None and not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    return c.copy_to_host(out)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, numba-cuda-mlir: 1,000,003 elements, all right")
