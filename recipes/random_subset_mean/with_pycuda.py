"""Mean of a subset of random samples in PyCUDA: curandom's XORWOW generator, chunk by chunk, and two kernels.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy
Needs: nvcc
Follows: https://documen.tician.de/pycuda/array.html
"""

from operator import index
from pathlib import Path

import numpy as np
from pycuda import autoprimaryctx, driver, gpuarray  # the first: the context that CuPy, PyTorch and Numba use too
from pycuda.compiler import SourceModule
from pycuda.curandom import XORWOWRandomNumberGenerator
from pycuda.tools import DeviceMemoryPool

KERNEL = (Path(__file__).parents[2] / "kernels" / "subset_mean.cu").read_text()
BLOCKS, THREADS = 1024, 256  # blocks; threads per block as in the kernel

module = SourceModule(KERNEL, no_extern_c=True)
add_subset, mean = module.get_function("add_subset"), module.get_function("mean")
add_subset.prepare("PqqqqP")  # the arguments' types, once: pointers and 64-bit integers
mean.prepare("PqqP")
pool = DeviceMemoryPool()  # hands memory from call to call: cuMemFree would wait for the GPU


def seeds(n, seed=0):
    return gpuarray.to_gpu(np.random.default_rng(seed).integers(2**31, size=n, dtype=np.int32), pool.allocate)


generator = XORWOWRandomNumberGenerator(seeds)  # once: it calls nvcc. A call starts it again, with its own seeds
restart = generator.module.get_function("prepare").prepare("PnPn")


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    if count == 0:
        return gpuarray.to_gpu(np.array(np.nan))
    grid, block = (generator.block_count, 1), (generator.generators_per_block, 1, 1)
    started = seeds(grid[0] * block[0], seed)
    restart.prepared_call(grid, block, generator.state, started.size, started.gpudata, 0)
    samples = gpuarray.empty(min(chunk, rows) * min(chunk, columns), np.float64, allocator=pool.allocate)
    partial = gpuarray.empty(BLOCKS, np.float64, allocator=pool.allocate)
    result = gpuarray.empty((), np.float64, allocator=pool.allocate)
    driver.memset_d8(partial.gpudata, 0, partial.nbytes)
    for row in range(0, rows, chunk):
        for column in range(0, columns, chunk):
            shape = min(chunk, rows - row), min(chunk, columns - column)
            x = samples[: shape[0] * shape[1]]
            generator.fill_normal(x)
            x += 10
            first = row % 2, column % 2
            add_subset.prepared_call((BLOCKS, 1), (THREADS, 1, 1), x.gpudata, *shape, *first, partial.gpudata)
    mean.prepared_call((1, 1), (THREADS, 1, 1), partial.gpudata, BLOCKS, count, result.gpudata)
    return result


def wait(mean):
    autoprimaryctx.context.synchronize()


def download(mean):
    return float(mean.get())


if __name__ == "__main__":
    result = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(result - 11) < 6 / 2_000, result  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, PyCUDA: 4,000 × 4,000 samples, all right")
