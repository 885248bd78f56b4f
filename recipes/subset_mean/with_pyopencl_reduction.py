"""Mean of every other row and column, plus one, in PyOpenCL: its ReductionKernel, which makes the kernels of two
expressions.

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
import pyopencl.tools
from pyopencl.reduction import ReductionKernel

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
devices = [device for device in devices if "cl_khr_fp64" in device.extensions]  # some have no float64
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))  # what a call frees, the next one takes
sum_of_subset = ReductionKernel(
    queue.context,
    np.float64,
    neutral="0",
    reduce_expr="a + b",
    # i is the number of an element of the subset, a long as the arguments are: 64 bits on every device.
    map_expr="x[2 * (i / subset_columns) * columns + 2 * (i % subset_columns)] + 1",
    arguments="__global const double *x, const long columns, const long subset_columns",
)


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float64, order="C")) for x in arrays)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if not x.flags.c_contiguous:
        raise ValueError("subset_mean takes a C-contiguous array, as upload() makes it")
    if x.size == 0:
        return cl.array.to_device(queue, np.array(np.nan))
    rows, columns = x.shape
    subset_columns = (columns + 1) // 2
    count = ((rows + 1) // 2) * subset_columns
    return sum_of_subset(x, columns, subset_columns, range=slice(count), allocator=pool) / count


def wait(mean):
    queue.finish()


def download(mean):
    return float(mean.get())


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print(f"subset_mean, PyOpenCL's ReductionKernel on {device.name.strip()}: 333 × 1,001 elements, all right")
