"""PyCUDA's arrays for other libraries, and theirs in PyCUDA, in a stream that each call names.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy
Environment: every
Needs: nvcc
Follows: https://documen.tician.de/pycuda/array.html
Follows: https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html

PyCUDA has no function that makes its own array of another library's: put one around the address.
"""

import numpy as np
from pycuda import autoprimaryctx, driver, gpuarray  # autoprimaryctx: the context that the other libraries use
from pycuda.elementwise import ElementwiseKernel

stream = driver.Stream()
kernel = ElementwiseKernel("const float *x, float *out", "out[i] = x[i] + 1", "add_one")


def from_host(values):
    return gpuarray.to_gpu(values)


def to_host(x):
    values = x.get_async(stream)
    stream.synchronize()
    return values


def hand_out(x):
    return x


def from_cuda_array_interface(x):
    about = x.__cuda_array_interface__
    shape, dtype = about["shape"], np.dtype(about["typestr"])
    if about.get("strides") not in (None, (dtype.itemsize,)):
        raise ValueError(f"takes an array without gaps, not one of shape {shape} with strides {about['strides']}")
    # base keeps x alive. Nobody waits for the stream that about["stream"] may name.
    return gpuarray.GPUArray(shape, dtype, base=x, gpudata=about["data"][0])


def add_one(x, out=None):
    out = gpuarray.empty_like(x) if out is None else out
    kernel(x, out, stream=stream)
    return out


def wait(x):
    stream.synchronize()


def address(x):
    return int(x.gpudata)


if __name__ == "__main__":
    x = from_host(np.arange(1_000, dtype=np.float32))
    y = from_cuda_array_interface(hand_out(x))
    add_one(y, out=y)
    assert address(x) == address(y) and (to_host(x) == np.arange(1, 1_001)).all()
    print(f"PyCUDA on {autoprimaryctx.device.name()}: 1,000 elements handed out and taken, all right")
