"""Multiply two host arrays: page-locked arrays, in pieces that take turns in two streams.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
"""

import cupy as cp
import cupyx
import numpy as np

PIECE = 2**22  # elements, 16 MiB
streams = [cp.cuda.Stream(non_blocking=True) for _ in range(2)]


def array(n):
    return cupyx.empty_pinned(n, np.float32)


def multiply(a, b, out):
    rooms = []
    for stream in streams:
        with stream:
            rooms.append(cp.empty((2, PIECE), np.float32))  # from this stream's part of the pool
    for number, start in enumerate(range(0, a.size, PIECE)):
        piece = slice(start, start + PIECE)
        n = a[piece].size
        x, y = rooms[number % 2][:, :n]
        with streams[number % 2]:  # while one downloads its piece, the other uploads the next
            x.set(a[piece])
            y.set(b[piece])
            cp.multiply(x, y, out=x).get(out=out[piece], blocking=False)
    for stream in streams:
        stream.synchronize()


if __name__ == "__main__":
    a, b, out = (array(9_000_011) for _ in range(3))
    a[:], b[:] = np.random.default_rng(0).standard_normal((2, a.size), np.float32)
    multiply(a, b, out)
    np.testing.assert_array_equal(out, a * b)
    print("both ways at once: 9,000,011 elements, all right")
