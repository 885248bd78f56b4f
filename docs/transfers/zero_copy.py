"""Multiply two host arrays: a kernel reads and writes page-locked arrays where they are.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
"""

import cupy as cp
import cupyx
import numpy as np


def array(n):
    return cupyx.empty_pinned(n, np.float32)


def on_device(x):
    """The same page-locked memory as a CuPy array: page-locked memory has one address for the host and the GPU."""
    memory = cp.cuda.UnownedMemory(x.ctypes.data, x.nbytes, owner=x)
    return cp.ndarray(x.shape, x.dtype, cp.cuda.MemoryPointer(memory, 0))


def multiply(a, b, out):
    cp.multiply(on_device(a), on_device(b), out=on_device(out))
    cp.cuda.get_current_stream().synchronize()


if __name__ == "__main__":
    a, b, out = (array(5_000_011) for _ in range(3))
    a[:], b[:] = np.random.default_rng(0).standard_normal((2, a.size), np.float32)
    multiply(a, b, out)
    np.testing.assert_array_equal(out, a * b)
    print("zero-copy: 5,000,011 elements, all right")
