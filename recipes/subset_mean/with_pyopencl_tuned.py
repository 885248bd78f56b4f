"""Mean of every other row and column, plus one, in PyOpenCL, tuned: two OpenCL C kernels, on a GPU or on the CPU.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"

Calls from several threads must take turns: a kernel of OpenCL has one set of arguments for all of them.

A work-item has eight loads on their way before it needs the first. In small arrays, starting kernels is what takes
time: here two are started, not three, since the sums need not be set to zero first, and the kernels know their
arguments' types beforehand. On an NVIDIA H200, the device takes 26 µs for 4,000² instead of 31 (with_pyopencl.py). The
file is over 60 lines because it finds its device, says its arguments' types and shares a row among as many work-items
as it needs.
"""

from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools

KERNEL = (Path(__file__).parents[2] / "kernels" / "subset_mean_tuned.cl").read_text()
GROUP = 256  # as in the kernel

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
devices = [device for device in devices if "cl_khr_fp64" in device.extensions]  # some have no float64
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))  # what a call frees, the next one takes
program = cl.Program(queue.context, KERNEL).build()
add_subset, mean = (
    cl.Kernel(program, "add_subset"),
    cl.Kernel(program, "mean"),
)  # once: program.mean makes one per call
add_subset.set_scalar_arg_dtypes([None, np.int64, np.int64, np.int32, None])  # else each call finds out what it got
mean.set_scalar_arg_dtypes([None, np.int64, np.int64, None])
groups = 4 * device.max_compute_units  # so few that all run at once: 4 × 256 work-items × 8 loads are enough
number = cl.array.empty(queue, (), np.float64)  # for empty_like, which takes less time than empty


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float64, order="C")) for x in arrays)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if x.offset or not x.flags.c_contiguous:
        raise ValueError("subset_mean takes a C-contiguous array, as upload() makes it")
    if x.size == 0:
        return cl.array.to_device(queue, np.array(np.nan))
    rows, columns = x.shape
    subset_rows, subset_columns = (rows + 1) // 2, (columns + 1) // 2
    # A row is read by 2**bits work-items: one for eight of its elements, but no more than a work-group, or than there
    # are for each row.
    most = max(GROUP, groups * GROUP // subset_rows)
    bits = min(((subset_columns - 1) // 8).bit_length(), most.bit_length() - 1)
    partial = pool.allocate(groups * 8)
    result = cl.array.empty_like(number, allocator=pool)
    add_subset(queue, (groups * GROUP,), (GROUP,), x.base_data, rows, columns, bits, partial)
    mean(queue, (GROUP,), (GROUP,), partial, groups, subset_rows * subset_columns, result.base_data)
    return result


def wait(mean):
    queue.finish()


def download(mean):
    return float(mean.get())


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    result = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(result, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print(f"subset_mean, PyOpenCL on {device.name.strip()}: 333 × 1,001 elements, all right")
