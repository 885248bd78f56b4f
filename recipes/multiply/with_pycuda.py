"""Multiply two arrays in PyCUDA: a CUDA C kernel, compiled by nvcc when the file runs.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy
Needs: nvcc
Follows: https://documen.tician.de/pycuda/tutorial.html
Follows: https://documen.tician.de/pycuda/driver.html#pagelocked-host-memory
"""

from pathlib import Path

import numpy as np
from pycuda import autoprimaryctx, driver, gpuarray  # autoprimaryctx: the context that CuPy, PyTorch and Numba use
from pycuda.compiler import SourceModule

KERNEL = (Path(__file__).parents[2] / "kernels" / "multiply.cu").read_text()
THREADS = 256  # per block; a multiple of the 32 of a warp

kernel = SourceModule(KERNEL, no_extern_c=True).get_function("multiply")
kernel.prepare("PPPq")  # the types of the arguments, once: three pointers and a 64-bit integer


def pinned(shape):
    # PyCUDA frees it in the thread that imported this file. Dropped in another, it stays, with a warning.
    size = int(np.prod(shape))
    return driver.pagelocked_empty(size or 1, np.float32)[:size].reshape(shape)  # no bytes are an error


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
    if a.size:  # a grid of no blocks is an error
        blocks = (a.size + THREADS - 1) // THREADS
        kernel.prepared_call((blocks, 1), (THREADS, 1, 1), a.gpudata, b.gpudata, out.gpudata, a.size)
    return out


def wait(c):
    autoprimaryctx.context.synchronize()


def download(c, out=None):
    if out is not None and not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    return c.get(out)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, PyCUDA: 1,000,003 elements, all right")
