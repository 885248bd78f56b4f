"""Multiply two host arrays: ordinary arrays, each copied as a whole.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
"""

import cupy as cp
import numpy as np


def multiply(a, b, out):
    x, y = cp.empty(a.shape, a.dtype), cp.empty(b.shape, b.dtype)
    x.set(a)  # this thread waits while the driver copies a through buffers of its own
    y.set(b)
    cp.multiply(x, y, out=x).get(out=out)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 5_000_011), np.float32)
    out = np.empty_like(a)
    multiply(a, b, out)
    np.testing.assert_array_equal(out, a * b)
    print("ordinary arrays: 5,000,011 elements, all right")
