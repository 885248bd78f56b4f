"""Add one to an array in place in PyCUDA: the operator of GPUArray, as in NumPy.

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


def increment(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    if not a.flags.c_contiguous:
        raise ValueError("increment takes a C-contiguous array, as upload() makes it")
    if a.size:  # no elements: no memory to give to a kernel
        a += 1
    return a


def wait(a):
    autoprimaryctx.context.synchronize()


def download(a):
    return a.get()


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print("increment, PyCUDA's arrays: 1,000,003 elements, all right")
