"""Wrong: arrays are taken as they lie in memory, whatever their strides.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"
"""

from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array

KERNEL = (Path(__file__).parents[3] / "kernels" / "multiply.cl").read_text()
GROUP = 256  # work-items a work-group

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
kernel = cl.Kernel(cl.Program(queue.context, KERNEL).build(), "multiply")  # once: program.multiply makes one a call


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float32, order="C")) for x in arrays)


def multiply(a, b, out=None):
    out = cl.array.empty(queue, a.shape, a.dtype) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    if a.size:  # a launch of no work-items is an error
        work_items = (a.size + GROUP - 1) // GROUP * GROUP
        kernel(queue, (work_items,), (GROUP,), a.data, b.data, out.data, np.int64(a.size))
    return out


def wait(c):
    queue.finish()


def download(c):
    return c.get()
