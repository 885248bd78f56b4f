"""Multiply two host arrays: ordinary arrays that are page-locked for the call, in pieces in two streams.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
"""

from contextlib import ExitStack, contextmanager

import cupy as cp
import numpy as np

PIECE = 2**22  # elements, 16 MiB
streams = [cp.cuda.Stream(non_blocking=True) for _ in range(2)]


@contextmanager
def registered(x):
    """Page-locks the memory of an array that exists. No other array may have a part of the same pages registered."""
    cp.cuda.runtime.hostRegister(x.ctypes.data, x.nbytes, 0)
    try:
        yield
    finally:
        for stream in streams:  # before the pages may move again, also after an error
            stream.synchronize()
        cp.cuda.runtime.hostUnregister(x.ctypes.data)


def multiply(a, b, out):
    rooms = []
    for stream in streams:
        with stream:
            rooms.append(cp.empty((2, PIECE), np.float32))
    with ExitStack() as stack:
        for each in (a, b, out):
            stack.enter_context(registered(each))
        for number, start in enumerate(range(0, a.size, PIECE)):
            piece = slice(start, start + PIECE)
            n = a[piece].size
            x, y = rooms[number % 2][:, :n]
            with streams[number % 2]:
                x.set(a[piece])
                y.set(b[piece])
                cp.multiply(x, y, out=x).get(out=out[piece], blocking=False)


if __name__ == "__main__":
    a, b = (np.random.default_rng(seed).standard_normal(9_000_011, np.float32) for seed in range(2))
    out = np.empty_like(a)
    multiply(a, b, out)
    np.testing.assert_array_equal(out, a * b)
    print("registered: 9,000,011 elements, all right")
