"""Mean of a subset of random samples in PyCUDA, tuned: made in registers and added there, nothing is stored.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy
Needs: nvcc
Math: float64, but the logarithm, sine and cosine are polynomials of our own, right to about one rounding

Sample (i, j) is a function of the seed, i and j alone (Philox), so only the samples of the subset are made, and none is
stored. What is left is instructions: the library's log, sqrt and sincospi branch for arguments that do not occur here,
Taylor series do not. On an NVIDIA H200: 100,000² in 9.5 ms instead of 221 (with_pycuda.py).
"""

from operator import index
from pathlib import Path

import numpy as np
from pycuda import autoprimaryctx, gpuarray  # the first: the context that CuPy, PyTorch and Numba use too
from pycuda.compiler import SourceModule
from pycuda.tools import DeviceMemoryPool

KERNEL = (Path(__file__).parents[2] / "kernels" / "random_subset_mean_tuned.cu").read_text()
BLOCKS, THREADS = 2**16, 128  # at most; below that, one block per row: the last to end leave little of the GPU idle

module = SourceModule(KERNEL, no_extern_c=True)
add_subset, mean = module.get_function("add_subset"), module.get_function("mean")
add_subset.prepare("qqqQP")  # the arguments' types, once: 64-bit integers and a pointer
mean.prepare("PqqP")
pool = DeviceMemoryPool()  # hands memory from call to call: cuMemFree would wait for the GPU


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:  # chunk is not used, as nothing is stored
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    if count == 0:
        return gpuarray.to_gpu(np.array(np.nan))
    blocks = min(BLOCKS, (rows + 1) // 2)
    partial = gpuarray.empty(blocks, np.float64, allocator=pool.allocate)
    result = gpuarray.empty((), np.float64, allocator=pool.allocate)
    add_subset.prepared_call((blocks, 1), (THREADS, 1, 1), 0, rows, columns, seed, partial.gpudata)
    mean.prepared_call((1, 1), (THREADS, 1, 1), partial.gpudata, blocks, count, result.gpudata)
    return result


def wait(mean):
    autoprimaryctx.context.synchronize()


def download(mean):
    return float(mean.get())


if __name__ == "__main__":
    result = download(random_subset_mean(4_000, 4_000))
    assert abs(result - 11) < 6 / 2_000, result  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, PyCUDA tuned: 4,000 × 4,000 samples, all right")
