"""Add one to an array in place in PyOpenCL: an OpenCL C kernel, on a GPU of any vendor or on the CPU.

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

KERNEL = (Path(__file__).parents[2] / "kernels" / "increment.cl").read_text()
GROUP = 256  # work-items per work-group

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
kernel = cl.Kernel(cl.Program(queue.context, KERNEL).build(), "increment")  # once: every program.increment is a new one


def pinned(shape):
    size, flags = int(np.prod(shape)), cl.map_flags.READ | cl.map_flags.WRITE
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR, 4 * (size or 1))
    memory, _ = cl.enqueue_map_buffer(queue, buffer, flags, 0, size or 1, np.float32)  # no bytes are an error
    return memory[:size].reshape(shape)


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float32, order="C")) for x in arrays)


def increment(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    if not (a.flags.c_contiguous and a.offset == 0):
        raise ValueError("increment takes a C-contiguous array, as upload() makes it")
    if a.size:  # a launch of no work-items is an error
        work_items = (a.size + GROUP - 1) // GROUP * GROUP
        kernel(queue, (work_items,), (GROUP,), a.data, np.int64(a.size))
    return a


def wait(a):
    queue.finish()


def download(a, out=None):
    if out is not None and not (out.shape == a.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {a.shape}, not {out.dtype} {out.shape}")
    return a.get(ary=out)


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print(f"increment, PyOpenCL on {device.name.strip()}: 1,000,003 elements, all right")
