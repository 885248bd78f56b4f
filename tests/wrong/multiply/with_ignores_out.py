"""Wrong: out is not written; the result is another array.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"
"""

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


def multiply(a, b, out=None):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if out is not None and (out.shape != a.shape or out.dtype != a.dtype):
        raise ValueError(f"multiply writes into float32 of one shape, not {out.dtype} {out.shape}")
    if not all(x.flags.c_contiguous and x.offset == 0 for x in (a, b, a if out is None else out)):
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    c = cl.array.empty(queue, a.shape, a.dtype)
    if a.size:
        kernel(queue, (a.size,), None, a.data, b.data, c.data, np.int64(a.size))
    return c


def wait(c):
    queue.finish()


def download(c):
    return c.get()
