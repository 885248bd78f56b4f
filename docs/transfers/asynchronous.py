"""Multiply two host arrays: page-locked arrays, everything in one stream, and one wait at the end.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
"""

import cupy as cp
import cupyx
import numpy as np

stream = cp.cuda.Stream(non_blocking=True)


def array(n):
    return cupyx.empty_pinned(n, np.float32)


def begin(a, b, out):
    """Returns at once. Until the stream is synchronised, the three arrays belong to the GPU."""
    with stream:
        x, y = cp.empty(a.shape, a.dtype), cp.empty(b.shape, b.dtype)
        x.set(a)
        y.set(b)
        cp.multiply(x, y, out=x).get(out=out, blocking=False)
        # x and y go back to the pool here. It hands them out again in this stream only, after the work above.


def multiply(a, b, out):
    begin(a, b, out)
    stream.synchronize()


if __name__ == "__main__":
    a, b, out = (array(5_000_011) for _ in range(3))
    a[:], b[:] = np.random.default_rng(0).standard_normal((2, a.size), np.float32)
    begin(a, b, out)
    expected = a * b  # this thread is free, but must not change the arrays
    stream.synchronize()
    np.testing.assert_array_equal(out, expected)
    print("one wait at the end: 5,000,011 elements, all right")
