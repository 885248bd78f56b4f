"""Multiply two host arrays: page-locked arrays, each copied as a whole.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
"""

import cupy as cp
import cupyx
import numpy as np


def array(n):
    """A host array of float32 that the GPU can reach by itself: the system may not move or swap its pages."""
    return cupyx.empty_pinned(n, np.float32)


def multiply(a, b, out):
    x, y = cp.empty(a.shape, a.dtype), cp.empty(b.shape, b.dtype)
    x.set(a)
    y.set(b)
    cp.multiply(x, y, out=x).get(out=out)


if __name__ == "__main__":
    a, b, out = (array(5_000_011) for _ in range(3))
    a[:], b[:] = np.random.default_rng(0).standard_normal((2, a.size), np.float32)
    multiply(a, b, out)
    np.testing.assert_array_equal(out, a * b)
    print("page-locked arrays: 5,000,011 elements, all right")
