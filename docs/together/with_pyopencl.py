"""PyOpenCL's arrays for other libraries, and theirs in PyOpenCL: copies, through NumPy's arrays.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"
Environment: every
Follows: https://documen.tician.de/pyopencl/array.html

An OpenCL buffer has no address that CUDA could use, and PyOpenCL's arrays have neither DLPack nor the CUDA array
interface.
"""

import numpy as np
import pyopencl as cl
import pyopencl.array
from pyopencl.elementwise import ElementwiseKernel

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
kernel = ElementwiseKernel(queue.context, "const float *x, float *out", "out[i] = x[i] + 1", "add_one")


def from_host(values):
    return cl.array.to_device(queue, values)


def to_host(x):
    return x.get()


def add_one(x, out=None):
    out = cl.array.empty_like(x) if out is None else out
    kernel(x, out)
    return out


def wait(x):
    queue.finish()


if __name__ == "__main__":
    x = from_host(np.arange(1_000, dtype=np.float32))
    y = from_host(to_host(x))
    assert (to_host(add_one(y)) == np.arange(1, 1_001)).all()
    print(f"PyOpenCL on {device.name.strip()}: 1,000 elements copied out and in, all right")
