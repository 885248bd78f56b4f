"""Multiply two arrays in PyOpenCL: an OpenCL C kernel, on a GPU of any vendor or on the CPU.

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

KERNEL = (Path(__file__).parents[2] / "kernels" / "multiply.cl").read_text()
GROUP = 256  # work-items per work-group

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
kernel = cl.Kernel(cl.Program(queue.context, KERNEL).build(), "multiply")  # once: every program.multiply is a new one


def pinned(shape):
    size, flags = int(np.prod(shape)), cl.map_flags.READ | cl.map_flags.WRITE
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR, 4 * (size or 1))
    memory, _ = cl.enqueue_map_buffer(queue, buffer, flags, 0, size or 1, np.float32)  # no bytes are an error
    return memory[:size].reshape(shape)


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float32, order="C")) for x in arrays)


def multiply(a, b, out=None):
    out = cl.array.empty(queue, a.shape, a.dtype) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    if not all(x.flags.c_contiguous and x.offset == 0 for x in (a, b, out)):
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    if a.size:  # a launch of no work-items is an error
        work_items = (a.size + GROUP - 1) // GROUP * GROUP
        kernel(queue, (work_items,), (GROUP,), a.data, b.data, out.data, np.int64(a.size))
    return out


def wait(c):
    queue.finish()


def download(c, out=None):
    if out is not None and not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    return c.get(ary=out)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print(f"multiply, PyOpenCL on {device.name.strip()}: 1,000,003 elements, all right")
