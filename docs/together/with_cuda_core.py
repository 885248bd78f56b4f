"""Memory of cuda.core's for other libraries, and their arrays in cuda.core, in a stream that each call names.

Framework: cuda.core
Runs on: NVIDIA GPU
Install: pip install "cuda-core[cu13]"
Environment: every
Follows: https://nvidia.github.io/cuda-python/cuda-core/latest/interoperability.html
Follows: https://nvidia.github.io/cuda-python/cuda-core/latest/generated/cuda.core.utils.StridedMemoryView.html

cuda.core has no arrays: a StridedMemoryView is memory, its own or another library's, with a shape and a dtype. It has
DLPack; who reads only the CUDA array interface gets it from the class here.
"""

import numpy as np
from cuda.core import Buffer, Device, LaunchConfig, Program, launch
from cuda.core.utils import StridedMemoryView

KERNEL = """
extern "C" __global__ void add_one(const float *x, float *out, long long n)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = x[i] + 1;
}
"""

device = Device()
device.set_current()
stream = device.create_stream()
kernel = Program(KERNEL, "c++").compile("cubin").get_kernel("add_one")


class HandedOut:
    def __init__(self, view):
        self.view = view
        self.__cuda_array_interface__ = {
            "shape": view.shape,
            "typestr": view.dtype.str,
            "data": (view.ptr, view.readonly),
            "strides": None,  # C-contiguous
            "stream": int(stream.handle),
            "version": 3,
        }

    def __dlpack__(self, **about):
        return self.view.__dlpack__(**about)

    def __dlpack_device__(self):
        return self.view.__dlpack_device__()


def empty(shape):
    buffer = device.allocate(4 * shape[0], stream=stream)
    return StridedMemoryView.from_buffer(buffer, shape, dtype=np.dtype(np.float32))


def from_host(values):
    view = empty(values.shape)
    host = Buffer.from_handle(values.ctypes.data, values.nbytes, owner=values)
    view.exporting_obj.copy_from(host, stream=stream)
    stream.sync()
    return view


def to_host(x):
    values = np.empty(x.shape, np.float32)
    host = Buffer.from_handle(values.ctypes.data, values.nbytes, owner=values)
    Buffer.from_handle(x.ptr, values.nbytes, owner=x).copy_to(host, stream=stream)
    stream.sync()
    return values


def hand_out(x):
    return HandedOut(x)


def from_dlpack(x):
    return StridedMemoryView.from_dlpack(x, stream_ptr=int(stream.handle))


def from_cuda_array_interface(x):
    return StridedMemoryView.from_cuda_array_interface(x, stream_ptr=int(stream.handle))


def add_one(x, out=None):
    out = empty(x.shape) if out is None else out
    config = LaunchConfig(grid=(x.size + 255) // 256, block=256)
    launch(stream, config, kernel, x.ptr, out.ptr, np.int64(x.size))
    return out


def wait(x):
    stream.sync()


def address(x):
    return x.ptr


if __name__ == "__main__":
    x = from_host(np.arange(1_000, dtype=np.float32))
    y = from_dlpack(hand_out(x))
    add_one(y, out=y)
    assert address(x) == address(y) and (to_host(x) == np.arange(1, 1_001)).all()
    print("cuda.core: 1,000 elements handed out and taken, all right")
