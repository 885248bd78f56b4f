"""Multiply two arrays in PyCUDA: the operator of GPUArray, as in NumPy.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy
Needs: nvcc
Follows: https://documen.tician.de/pycuda/tutorial.html#bonus-abstracting-away-the-complications
"""

import numpy as np
from pycuda import autoprimaryctx, gpuarray  # autoprimaryctx: the context that CuPy, PyTorch and Numba use


def upload(*arrays):
    return tuple(gpuarray.to_gpu(np.asarray(x, np.float32, order="C")) for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):  # PyCUDA would convert
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if not (a.flags.c_contiguous and b.flags.c_contiguous):  # PyCUDA takes elements as they lie in memory
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    return a * b if a.size else gpuarray.empty(a.shape, a.dtype)  # no elements: no memory to give to a kernel


def wait(c):
    autoprimaryctx.context.synchronize()


def download(c):
    return c.get()


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, PyCUDA's arrays: 1,000,003 elements, all right")
