"""Multiply two arrays in PyCUDA: ElementwiseKernel, which writes the kernel around one line of CUDA C.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy
Needs: nvcc
Follows: https://documen.tician.de/pycuda/array.html#module-pycuda.elementwise
"""

import numpy as np
from pycuda import autoprimaryctx, gpuarray  # autoprimaryctx: the context that CuPy, PyTorch and Numba use
from pycuda.elementwise import ElementwiseKernel

kernel = ElementwiseKernel("const float *a, const float *b, float *c", "c[i] = a[i] * b[i]", "multiply")


def upload(*arrays):
    return tuple(gpuarray.to_gpu(np.asarray(x, np.float32, order="C")) for x in arrays)


def multiply(a, b, out=None):
    out = gpuarray.empty(a.shape, a.dtype) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    if not all(x.flags.c_contiguous for x in (a, b, out)):
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    if a.size:  # an array of no elements has no memory to point to
        kernel(a, b, out)
    return out


def wait(c):
    autoprimaryctx.context.synchronize()


def download(c):
    return c.get()


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, PyCUDA ElementwiseKernel: 1,000,003 elements, all right")
