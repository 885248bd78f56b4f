"""Norm of an array in PyCUDA: two CUDA C kernels, compiled by nvcc when the file runs.

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
from pycuda.tools import DeviceMemoryPool

KERNEL = (Path(__file__).parents[2] / "kernels" / "norm.cu").read_text()
THREADS = 256  # per block; as in the kernel

module = SourceModule(KERNEL, no_extern_c=True)
add_squares, root = module.get_function("add_squares"), module.get_function("root")
add_squares.prepare("PqP")  # the types of the arguments, once: pointers and a 64-bit integer
root.prepare("PP")
pool = DeviceMemoryPool()  # hands memory from call to call: cuMemFree would wait for the GPU


def pinned(shape):
    # PyCUDA frees it in the thread that imported this file. Dropped in another, it stays, with a warning.
    size = int(np.prod(shape))
    return driver.pagelocked_empty(size or 1, np.float32)[:size].reshape(shape)  # no bytes are an error


def upload(*arrays):
    return tuple(gpuarray.to_gpu(np.asarray(x, np.float32, order="C")) for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    if not x.flags.c_contiguous:
        raise ValueError("norm takes a C-contiguous array, as upload() makes it")
    total = gpuarray.empty((), np.float64, allocator=pool.allocate)
    result = gpuarray.empty((), np.float32, allocator=pool.allocate)
    driver.memset_d8(total.gpudata, 0, total.nbytes)
    if x.size:  # a grid of no blocks is an error
        blocks = (x.size + THREADS - 1) // THREADS
        add_squares.prepared_call((blocks, 1), (THREADS, 1, 1), x.gpudata, x.size, total.gpudata)
    root.prepared_call((1, 1), (1, 1, 1), total.gpudata, result.gpudata)
    return result


def wait(norm):
    autoprimaryctx.context.synchronize()


def download(norm):
    return norm.get()


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, PyCUDA: 1,000,003 elements, all right")
