"""CuPy's arrays for other libraries, and theirs in CuPy, in CuPy's current stream.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Environment: every
Follows: https://docs.cupy.dev/en/stable/user_guide/interoperability.html
"""

import cupy as cp
import numpy as np


def from_host(values):
    return cp.array(values)


def to_host(x):
    return cp.asnumpy(x)


def hand_out(x):
    return x


def from_dlpack(x):
    return cp.from_dlpack(x)


def from_cuda_array_interface(x):
    return cp.asarray(x)


def add_one(x, out=None):
    return cp.add(x, np.float32(1), out=out)


def wait(x):
    cp.cuda.get_current_stream().synchronize()


def address(x):
    return x.data.ptr


if __name__ == "__main__":
    x = from_host(np.arange(1_000, dtype=np.float32))
    y = from_dlpack(hand_out(x))
    add_one(y, out=y)
    assert address(x) == address(y) and (to_host(x) == np.arange(1, 1_001)).all()
    print("CuPy: 1,000 elements handed out and taken, all right")
