"""Multiply two host arrays: unified memory, whose pages are sent ahead.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]" "cuda-bindings>=13,<14"
"""

import ctypes

import cupy as cp
import numpy as np
from cuda.bindings import runtime

HOST = runtime.cudaMemLocation()
HOST.type = runtime.cudaMemLocationType.cudaMemLocationTypeHost


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


def to_device(x, stream):
    cp.cuda.runtime.memPrefetchAsync(x.ctypes.data, x.nbytes, cp.cuda.Device().id, stream.ptr)


def to_host(x, stream):
    """With CUDA 13, CuPy's own memPrefetchAsync sends pages to a GPU only."""
    (error,) = runtime.cudaMemPrefetchAsync(x.ctypes.data, x.nbytes, HOST, 0, stream.ptr)
    if error:
        raise RuntimeError(f"cudaMemPrefetchAsync: {error.name}")


def multiply(a, b, out):
    stream = cp.cuda.get_current_stream()
    for x in (a, b, out):  # out as well: the driver cannot know that nobody reads its old contents
        to_device(x, stream)
    cp.multiply(on_device(a), on_device(b), out=on_device(out))
    to_host(out, stream)
    stream.synchronize()


if __name__ == "__main__":
    a, b, out = (array(5_000_011) for _ in range(3))
    a[:], b[:] = np.random.default_rng(0).standard_normal((2, a.size), np.float32)
    multiply(a, b, out)
    np.testing.assert_array_equal(out, a * b)
    print("unified memory, sent ahead: 5,000,011 elements, all right")
