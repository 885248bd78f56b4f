"""Multiply two arrays in PyOpenCL, tuned: an OpenCL C kernel that reads 16 bytes at once, on GPU or CPU.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"

Calls from several threads must take turns: a kernel of OpenCL has one set of arguments for all of them.

Each work-item loads four elements at once, 16 bytes, which keeps more loads in flight. With small arrays the time goes
into Python: the kernel knows its arguments' types beforehand, and memory comes from a pool. On an NVIDIA H200: 4,370
GB/s instead of 3,490 (with_pyopencl.py). prepared() sets the arguments of a kernel of its own once, and from then on
only launches it. That function is why the file is longer than its neighbour.
"""

from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools

KERNEL = (Path(__file__).parents[2] / "kernels" / "multiply_tuned.cl").read_text()
GROUP = 256  # work-items per work-group, four elements each

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
program = cl.Program(queue.context, KERNEL).build()
kernel = cl.Kernel(program, "multiply")  # once: every program.multiply is a new one
kernel.set_scalar_arg_dtypes([None, None, None, np.int64])  # or every call finds out what it was given
pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))  # the next array takes what the last one freed


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float32, order="C"), allocator=pool) for x in arrays)


def output_for(a, b, out):
    out = cl.array.empty_like(a, allocator=pool) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    contiguous = a.flags.c_contiguous and b.flags.c_contiguous and out.flags.c_contiguous
    if not contiguous or a.offset or b.offset or out.offset:
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    return out


def work_items(size):
    return -(-size // (4 * GROUP)) * GROUP


def multiply(a, b, out=None):
    out = output_for(a, b, out)
    if a.size:  # a launch of no work-items is an error
        # base_data: data would look at the offset again.
        kernel(queue, (work_items(a.size),), (GROUP,), a.base_data, b.base_data, out.base_data, a.size)
    return out


def wait(c):
    queue.finish()


def download(c):
    return c.get()


def prepared(a, b, out=None):
    """Return a function without arguments: each call multiplies what a and b then hold, and returns the same out."""
    out = output_for(a, b, out)
    if not a.size:
        return lambda: out
    own = cl.Kernel(program, "multiply")  # multiply() sets the arguments of the other one
    own.set_args(a.base_data, b.base_data, out.base_data, np.int64(a.size))
    size = (work_items(a.size),)

    def launch():
        cl.enqueue_nd_range_kernel(queue, own, size, (GROUP,))
        return out

    launch.arrays = a, b  # a kernel does not keep the memory that it is given
    return launch


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print(f"multiply, PyOpenCL on {device.name.strip()}: 1,000,003 elements, all right")
