"""Add one to an array in place in PyOpenCL, tuned: an OpenCL C kernel that reads 16 bytes at once, on GPU or CPU.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"

Calls from several threads must take turns: a kernel of OpenCL has one set of arguments for all of them.

Each work-item loads four elements at once, 16 bytes, which keeps more loads in flight. With small arrays the time goes
into Python: the kernel knows its arguments' types beforehand, and memory comes from a pool. On an NVIDIA H200: 4,260
GB/s instead of 2,770 (with_pyopencl.py). prepared() sets the arguments of a kernel of its own once, and from then on
only launches it. That function is why the file is longer than its neighbour.
"""

from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools

KERNEL = (Path(__file__).parents[2] / "kernels" / "increment_tuned.cl").read_text()
GROUP = 256  # work-items per work-group, four elements each

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
program = cl.Program(queue.context, KERNEL).build()
kernel = cl.Kernel(program, "increment")  # once: every program.increment is a new one
kernel.set_scalar_arg_dtypes([None, np.int64])  # or every call finds out what it was given
pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))  # the next array takes what the last one freed


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float32, order="C"), allocator=pool) for x in arrays)


def validate(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    if a.offset or not a.flags.c_contiguous:
        raise ValueError("increment takes a C-contiguous array, as upload() makes it")


def work_items(size):
    return -(-size // (4 * GROUP)) * GROUP


def increment(a):
    validate(a)
    if a.size:  # a launch of no work-items is an error
        kernel(queue, (work_items(a.size),), (GROUP,), a.base_data, a.size)  # data would look at the offset again
    return a


def wait(a):
    queue.finish()


def download(a):
    return a.get()


def prepared(a):
    """Return a function without arguments: each call adds one to what a then holds, and returns a."""
    validate(a)
    if not a.size:
        return lambda: a
    own = cl.Kernel(program, "increment")  # increment() sets the arguments of the other one
    own.set_args(a.base_data, np.int64(a.size))
    size = (work_items(a.size),)

    def launch():
        cl.enqueue_nd_range_kernel(queue, own, size, (GROUP,))
        return a

    return launch


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print(f"increment, PyOpenCL on {device.name.strip()}: 1,000,003 elements, all right")
