"""Norm of an array in PyOpenCL, tuned: an OpenCL C kernel that reads 16 bytes at once, on a GPU or on the CPU.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"

Calls from several threads must take turns: a kernel of OpenCL has one set of arguments for all of them.

Each work-item loads four elements at once, 16 bytes, which keeps more loads in flight. With small arrays the time goes
into Python: the kernels know their arguments' types beforehand. The file is over 60 lines because it finds its device.
On an NVIDIA H200: 272 µs for 2**28 elements instead of 495 (with_pyopencl.py).
"""

from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools

KERNEL = (Path(__file__).parents[2] / "kernels" / "norm_tuned.cl").read_text()
GROUPS, GROUP = 1024, 256  # at most this many work-groups; work-items per group as in the kernel

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))  # what a call frees, the next one takes
program = cl.Program(queue.context, KERNEL).build()
add_squares, root = cl.Kernel(program, "add_squares"), cl.Kernel(program, "root")  # once: program.root makes new ones
add_squares.set_scalar_arg_dtypes([None, np.int64, None])  # else each call finds out what it got
root.set_scalar_arg_dtypes([None, np.int64, None])
number = cl.array.empty(queue, (), np.float32)  # for empty_like, which takes less time than empty


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float32, order="C")) for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    if not (x.flags.c_contiguous and x.offset == 0):
        raise ValueError("norm takes a C-contiguous array, as upload() makes it")
    if x.size == 0:
        return cl.array.zeros(queue, (), np.float32)
    groups = min(GROUPS, -(-x.size // (4 * GROUP)))
    partial = pool.allocate(4 * groups)
    result = cl.array.empty_like(number, allocator=pool)
    add_squares(queue, (groups * GROUP,), (GROUP,), x.base_data, x.size, partial)
    root(queue, (GROUP,), (GROUP,), partial, groups, result.base_data)
    return result


def wait(norm):
    queue.finish()


def download(norm):
    return norm.get()


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print(f"norm, PyOpenCL tuned on {device.name.strip()}: 1,000,003 elements, all right")
