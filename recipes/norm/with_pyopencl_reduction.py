"""Norm of an array in PyOpenCL: its ReductionKernel, which makes the kernels of two expressions.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]" mako
Follows: https://documen.tician.de/pyopencl/algorithm.html#sums-and-counts-reduce

Calls from several threads must take turns: a kernel of OpenCL has one set of arguments for all of them.
"""

import mako  # noqa: F401 - with which ReductionKernel writes its kernels; installing PyOpenCL does not install it
import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.clmath
import pyopencl.tools
from pyopencl.reduction import ReductionKernel

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))  # what a call frees, the next one takes
sum_of_squares = ReductionKernel(
    queue.context,
    np.float32,
    neutral="0",
    reduce_expr="a + b",
    map_expr="x[i] * x[i]",
    arguments="__global const float *x",
)


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float32, order="C")) for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    if not (x.flags.c_contiguous and x.offset == 0):
        raise ValueError("norm takes a C-contiguous array, as upload() makes it")
    if x.size == 0:
        return cl.array.zeros(queue, (), np.float32)
    return cl.clmath.sqrt(sum_of_squares(x, allocator=pool))


def wait(norm):
    queue.finish()


def download(norm):
    return norm.get()


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print(f"norm, PyOpenCL's ReductionKernel on {device.name.strip()}: 1,000,003 elements, all right")
