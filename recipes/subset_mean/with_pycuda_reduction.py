"""Mean of every other row and column, plus one, in PyCUDA: its ReductionKernel, which makes the kernels of two
expressions.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy
Needs: nvcc
Follows: https://documen.tician.de/pycuda/array.html#module-pycuda.reduction

PyCUDA adds the last values of a block without synchronising its warp, whose threads need not run in step on GPUs since
Volta: compute-sanitizer's racecheck warns of it. No result of this recipe was wrong in any of our checks.
"""

import numpy as np
from pycuda import autoprimaryctx, gpuarray  # the first: the context that CuPy, PyTorch and Numba use too
from pycuda.reduction import ReductionKernel
from pycuda.tools import DeviceMemoryPool

pool = DeviceMemoryPool()  # hands memory from call to call: cuMemFree would wait for the GPU
sum_of_subset = ReductionKernel(
    np.float64,
    neutral="0",
    reduce_expr="a + b",
    # i, the number of an element of the subset, is a size_t, but the kernel computes the first i of a block in 32 bits:
    # after 2**32 elements it would start again with those at the beginning.
    map_expr="x[2 * (i / subset_columns) * columns + 2 * (i % subset_columns)] + 1",
    arguments="const double *x, const long columns, const long subset_columns",
)


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
    subset_columns = (columns + 1) // 2
    count = ((rows + 1) // 2) * subset_columns
    if count > 2**32:
        raise ValueError(f"subset_mean takes a subset of 2**32 elements at most, not that of {x.dtype} {x.shape}")
    # i ends where the array does: this one starts where x does, and is as long as the subset.
    return sum_of_subset(x.ravel()[:count], columns, subset_columns, allocator=pool.allocate) / count


def wait(mean):
    autoprimaryctx.context.synchronize()


def download(mean):
    return float(mean.get())


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, PyCUDA's ReductionKernel: 333 × 1,001 elements, all right")
