"""Launch a kernel of 1, 4 or 16 arguments in PyOpenCL.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"
Follows: https://documen.tician.de/pyopencl/runtime_program.html
"""

from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
program = cl.Program(queue.context, Path(__file__).with_name("add_one.cl").read_text()).build()
kernels = {n: cl.Kernel(program, f"add_{n}") for n in (1, 4, 16)}


def zeros(n):
    return tuple(cl.array.to_device(queue, np.zeros(1, np.float32)) for _ in range(n))


def add_one(arrays):
    kernels[len(arrays)](queue, (1,), (1,), *(x.data for x in arrays))
    return arrays


def prepared(arrays):
    kernel = cl.Kernel(program, f"add_{len(arrays)}")  # of its own: add_one() sets the arguments of the other one
    kernel.set_args(*(x.data for x in arrays))

    def replay():
        cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
        return arrays

    return replay


def wait(arrays):
    queue.finish()


def download(arrays):
    return [x.get()[0] for x in arrays]


if __name__ == "__main__":
    arrays = add_one(zeros(4))
    arrays = prepared(arrays)()
    assert download(arrays) == [2, 2, 2, 2]
    print(f"PyOpenCL on {device.name.strip()}: 4 arguments, all right")
