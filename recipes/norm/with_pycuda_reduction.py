"""Norm of an array in PyCUDA: its ReductionKernel, which makes the kernels of two expressions.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy
Needs: nvcc
Follows: https://documen.tician.de/pycuda/array.html#module-pycuda.reduction

PyCUDA adds the last values of a block without synchronising its warp, whose threads need not run in step on GPUs since
Volta: compute-sanitizer's racecheck warns of it in subset_mean.
"""

import numpy as np
from pycuda import autoprimaryctx, cumath, gpuarray  # autoprimaryctx: the context that CuPy, PyTorch and Numba use
from pycuda.reduction import ReductionKernel
from pycuda.tools import DeviceMemoryPool

pool = DeviceMemoryPool()  # hands memory from call to call: cuMemFree would wait for the GPU
# The kernel computes the first i of a block in 32 bits: after 2**32 elements it would start again at the beginning.
sum_of_squares = ReductionKernel(
    np.float32, neutral="0", reduce_expr="a + b", map_expr="x[i] * x[i]", arguments="const float *x"
)


def upload(*arrays):
    return tuple(gpuarray.to_gpu(np.asarray(x, np.float32, order="C")) for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    if not x.flags.c_contiguous:
        raise ValueError("norm takes a C-contiguous array, as upload() makes it")
    if x.size > 2**32:
        raise ValueError(f"norm takes 2**32 elements at most, not {x.dtype} {x.shape}")
    if x.size == 0:
        return gpuarray.to_gpu(np.zeros((), np.float32))
    return cumath.sqrt(sum_of_squares(x, allocator=pool.allocate))


def wait(norm):
    autoprimaryctx.context.synchronize()


def download(norm):
    return norm.get()


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, PyCUDA's ReductionKernel: 1,000,003 elements, all right")
