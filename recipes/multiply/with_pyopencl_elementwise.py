"""Multiply two arrays in PyOpenCL: ElementwiseKernel, which writes the loop around one line of C.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"
Follows: https://documen.tician.de/pyopencl/algorithm.html#module-pyopencl.elementwise

Calls from several threads must take turns: a kernel of OpenCL has one set of arguments for all of them.
"""

import numpy as np
import pyopencl as cl
import pyopencl.array
from pyopencl.elementwise import ElementwiseKernel

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
kernel = ElementwiseKernel(queue.context, "const float *a, const float *b, float *c", "c[i] = a[i] * b[i]", "multiply")


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
        kernel(a, b, out, queue=queue)
    return out


def wait(c):
    queue.finish()


def download(c):
    return c.get()


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print(f"multiply, PyOpenCL on {device.name.strip()}: 1,000,003 elements, all right")
