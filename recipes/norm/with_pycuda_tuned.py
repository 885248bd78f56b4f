"""Norm of an array in PyCUDA, tuned: a CUDA C kernel with loads of 16 bytes, and no atomics.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy
Needs: nvcc

Each thread loads four elements at once, 16 bytes, and many of them one after the other, so that few sums are left to
add up. In small arrays, starting kernels is what takes time: here two are started, not three, since no sum need be set
to zero first. The file is over 60 lines because it says its arguments' types and takes its memory from a pool. On an
NVIDIA H200: 271 µs for 2**28 elements instead of 465 (with_pycuda_reduction.py).
"""

from pathlib import Path

import numpy as np
from pycuda import autoprimaryctx, gpuarray  # autoprimaryctx: the context that CuPy, PyTorch and Numba use
from pycuda.compiler import SourceModule
from pycuda.tools import DeviceMemoryPool

KERNEL = (Path(__file__).parents[2] / "kernels" / "norm_tuned.cu").read_text()
BLOCKS, THREADS = 4096, 256  # at most this many blocks: they fill any GPU; threads per block as in the kernel

module = SourceModule(KERNEL, no_extern_c=True)
add_squares, root = module.get_function("add_squares"), module.get_function("root")
add_squares.prepare("PqP")  # the types of the arguments, once: pointers and a 64-bit integer
root.prepare("PqP")
pool = DeviceMemoryPool()  # hands memory from call to call: cuMemFree would wait for the GPU


def upload(*arrays):
    return tuple(gpuarray.to_gpu(np.asarray(x, np.float32, order="C")) for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    if not x.flags.c_contiguous:
        raise ValueError("norm takes a C-contiguous array, as upload() makes it")
    if x.size == 0:  # PyCUDA has no address for it
        return gpuarray.to_gpu(np.zeros((), np.float32))
    blocks = min(BLOCKS, -(-x.size // (4 * THREADS)))
    partial = gpuarray.empty(blocks, np.float32, allocator=pool.allocate)
    result = gpuarray.empty((), np.float32, allocator=pool.allocate)
    add_squares.prepared_call((blocks, 1), (THREADS, 1, 1), x.gpudata, x.size, partial.gpudata)
    root.prepared_call((1, 1), (THREADS, 1, 1), partial.gpudata, blocks, result.gpudata)
    return result


def wait(norm):
    autoprimaryctx.context.synchronize()


def download(norm):
    return norm.get()


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, PyCUDA tuned: 1,000,003 elements, all right")
