"""Norm of an array in PyOpenCL: two OpenCL C kernels, on a GPU of any vendor or on the CPU.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"
Follows: https://documen.tician.de/pyopencl/runtime_program.html
Follows: https://documen.tician.de/pyopencl/runtime_memory.html#mapping-memory-into-host-address-space

Calls from several threads must take turns: a kernel of OpenCL has one set of arguments for all of them.
"""

from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools

KERNEL = (Path(__file__).parents[2] / "kernels" / "norm.cl").read_text()
GROUPS, GROUP = 1024, 256  # at most this many work-groups; work-items per group as in the kernel

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))  # what a call frees, the next one takes
program = cl.Program(queue.context, KERNEL).build()
add_squares, root = cl.Kernel(program, "add_squares"), cl.Kernel(program, "root")  # once: program.root makes new ones


def pinned(shape):
    size, flags = int(np.prod(shape)), cl.map_flags.READ | cl.map_flags.WRITE
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR, 4 * (size or 1))
    memory, _ = cl.enqueue_map_buffer(queue, buffer, flags, 0, size or 1, np.float32)  # no bytes are an error
    return memory[:size].reshape(shape)


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float32, order="C")) for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    if not (x.flags.c_contiguous and x.offset == 0):
        raise ValueError("norm takes a C-contiguous array, as upload() makes it")
    if x.size == 0:
        return cl.array.zeros(queue, (), np.float32)
    groups = min(GROUPS, (x.size + GROUP - 1) // GROUP)
    partial = cl.array.empty(queue, groups, np.float32, allocator=pool)
    result = cl.array.empty(queue, (), np.float32, allocator=pool)
    add_squares(queue, (groups * GROUP,), (GROUP,), x.data, np.int64(x.size), partial.data)
    root(queue, (GROUP,), (GROUP,), partial.data, np.int64(groups), result.data)
    return result


def wait(norm):
    queue.finish()


def download(norm):
    return norm.get()


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print(f"norm, PyOpenCL on {device.name.strip()}: 1,000,003 elements, all right")
