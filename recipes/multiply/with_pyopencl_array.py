"""Multiply two arrays in PyOpenCL: the operator of pyopencl.array, as in NumPy.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"
Follows: https://documen.tician.de/pyopencl/array.html

Calls from several threads must take turns: a kernel of OpenCL has one set of arguments for all of them.
"""

import numpy as np
import pyopencl as cl
import pyopencl.array

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float32, order="C")) for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):  # PyOpenCL would convert
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if not (a.flags.c_contiguous and b.flags.c_contiguous):  # PyOpenCL takes elements as they lie in memory
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    return a * b


def wait(c):
    queue.finish()


def download(c):
    return c.get()


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print(f"multiply, PyOpenCL's arrays on {device.name.strip()}: 1,000,003 elements, all right")
