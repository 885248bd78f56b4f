"""Wrong: download() copies into the same host array each time.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"
"""

from functools import cache

import numpy as np
import pyopencl as cl
import pyopencl.array

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])
queue = cl.CommandQueue(cl.Context([device]))
SOURCE = """
kernel void multiply(global const float *a, global const float *b, global float *c, long n) {
    long i = get_global_id(0);
    if (i < n)
        c[i] = a[i] * b[i];
}
"""
kernel = cl.Kernel(cl.Program(queue.context, SOURCE).build(), "multiply")


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float32, order="C")) for x in arrays)


@cache
def landing(size):
    return np.empty(size, np.float32)


def multiply(a, b):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    out = cl.array.empty(queue, a.shape, a.dtype)
    if not all(x.flags.c_contiguous and x.offset == 0 for x in (a, b)):
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    if a.size:
        kernel(queue, (a.size,), None, a.data, b.data, out.data, np.int64(a.size))
    return out


def wait(c):
    queue.finish()


def download(c):
    host = landing(c.size).reshape(c.shape)
    return c.get(ary=host) if c.size else host
