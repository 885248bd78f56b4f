"""Numba's device arrays for other libraries, and their arrays in Numba, in a stream that each call names.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" "numpy<2.5"
Environment: every
Follows: https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html

A kernel also takes an array with DLPack as it is, without from_cuda_array_interface, and asks it again at each launch.
"""

import numpy as np
from numba import cuda

stream = cuda.stream()


@cuda.jit
def kernel(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] + np.float32(1)


def from_host(values):
    return cuda.to_device(values, stream=stream)


def to_host(x):
    values = x.copy_to_host(stream=stream)
    stream.synchronize()
    return values


def hand_out(x):
    return x


def from_cuda_array_interface(x):
    return cuda.as_cuda_array(x)


def add_one(x, out=None):
    out = cuda.device_array_like(x, stream=stream) if out is None else out
    kernel[(x.size + 255) // 256, 256, stream](x, out)
    return out


def wait(x):
    stream.synchronize()


def address(x):
    return x.__cuda_array_interface__["data"][0]


if __name__ == "__main__":
    x = from_host(np.arange(1_000, dtype=np.float32))
    y = from_cuda_array_interface(hand_out(x))
    add_one(y, out=y)
    assert address(x) == address(y) and (to_host(x) == np.arange(1, 1_001)).all()
    print("Numba: 1,000 elements handed out and taken, all right")
