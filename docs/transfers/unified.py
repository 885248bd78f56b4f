"""Multiply two host arrays: unified memory, whose pages move when somebody touches them.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
"""

import ctypes

import cupy as cp
import numpy as np

PAGE = 1024  # elements in 4 KiB, the smallest page


def array(n):
    """A host array of float32 in unified memory, which lives as long as the array and its views."""
    memory = cp.cuda.malloc_managed(4 * n)
    buffer = (ctypes.c_float * n).from_address(memory.ptr)
    buffer.owner = memory
    return np.frombuffer(buffer, np.float32)


def on_device(x):
    """The same memory as a CuPy array."""
    memory = cp.cuda.UnownedMemory(x.ctypes.data, x.nbytes, owner=x)
    return cp.ndarray(x.shape, x.dtype, cp.cuda.MemoryPointer(memory, 0))


def touch(x):
    """Reads one element of every page, so that all pages come back now, and not when the host needs them."""
    return x[::PAGE].max()


def multiply(a, b, out):
    cp.multiply(on_device(a), on_device(b), out=on_device(out))
    cp.cuda.get_current_stream().synchronize()
    touch(out)


if __name__ == "__main__":
    a, b, out = (array(5_000_011) for _ in range(3))
    a[:], b[:] = np.random.default_rng(0).standard_normal((2, a.size), np.float32)
    multiply(a, b, out)
    np.testing.assert_array_equal(out, a * b)
    print("unified memory: 5,000,011 elements, all right")
