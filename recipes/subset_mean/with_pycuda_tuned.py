"""Mean of every other row and column, plus one, in PyCUDA, tuned: every byte is read once, nothing else.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy
Needs: nvcc

In large arrays with_pycuda.py is as fast as the memory. In small ones, starting kernels is what takes time: here two
are started, not three, since the sums need not be set to zero first. On an NVIDIA H200, the device takes 22.6 µs for
4,000² instead of 25.0 (with_pycuda.py). The file is over 60 lines because it says its arguments' types and takes its
memory from a pool.
"""

from pathlib import Path

import numpy as np
from pycuda import autoprimaryctx, gpuarray  # the first: the context that CuPy, PyTorch and Numba use too
from pycuda.compiler import SourceModule
from pycuda.tools import DeviceMemoryPool

KERNEL = (Path(__file__).parents[2] / "kernels" / "subset_mean_tuned.cu").read_text()
BLOCKS, THREADS = 4096, 256  # at most this many blocks: they fill any GPU; threads per block as in the kernel

module = SourceModule(KERNEL, no_extern_c=True)
add_subset, mean = module.get_function("add_subset"), module.get_function("mean")
add_subset.prepare("PqqP")  # the arguments' types, once: pointers and 64-bit integers
mean.prepare("PqqP")
pool = DeviceMemoryPool()  # hands memory from call to call: cuMemFree would wait for the GPU


def upload(*arrays):
    return tuple(gpuarray.to_gpu(np.asarray(x, np.float64, order="C")) for x in arrays)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if not x.flags.c_contiguous:
        raise ValueError("subset_mean takes a C-contiguous array, as upload() makes it")
    if x.size == 0:
        return gpuarray.to_gpu(np.array(np.nan))
    rows, columns = x.shape
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    blocks = min(BLOCKS, (rows + 1) // 2)
    partial = gpuarray.empty(blocks, np.float64, allocator=pool.allocate)
    result = gpuarray.empty((), np.float64, allocator=pool.allocate)
    add_subset.prepared_call((blocks, 1), (THREADS, 1, 1), x.gpudata, rows, columns, partial.gpudata)
    mean.prepared_call((1, 1), (THREADS, 1, 1), partial.gpudata, blocks, count, result.gpudata)
    return result


def wait(mean):
    autoprimaryctx.context.synchronize()


def download(mean):
    return float(mean.get())


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    result = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(result, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, PyCUDA tuned: 333 × 1,001 elements, all right")
