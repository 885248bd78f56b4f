"""Add one to an array in place in PyCUDA: a CUDA C kernel, compiled by nvcc when the file runs.

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

KERNEL = (Path(__file__).parents[2] / "kernels" / "increment.cu").read_text()
THREADS = 256  # per block; a multiple of the 32 of a warp

kernel = SourceModule(KERNEL, no_extern_c=True).get_function("increment")
kernel.prepare("Pq")  # the types of the arguments, once: a pointer and a 64-bit integer


def pinned(shape):
    # PyCUDA frees it in the thread that imported this file. Dropped in another, it stays, with a warning.
    size = int(np.prod(shape))
    return driver.pagelocked_empty(size or 1, np.float32)[:size].reshape(shape)  # no bytes are an error


def upload(*arrays):
    return tuple(gpuarray.to_gpu(np.asarray(x, np.float32, order="C")) for x in arrays)


def increment(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    if not a.flags.c_contiguous:
        raise ValueError("increment takes a C-contiguous array, as upload() makes it")
    if a.size:  # a grid of no blocks is an error
        blocks = (a.size + THREADS - 1) // THREADS
        kernel.prepared_call((blocks, 1), (THREADS, 1, 1), a.gpudata, a.size)
    return a


def wait(a):
    autoprimaryctx.context.synchronize()


def download(a, out=None):
    if out is not None and not (out.shape == a.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {a.shape}, not {out.dtype} {out.shape}")
    return a.get(out)


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print("increment, PyCUDA: 1,000,003 elements, all right")
