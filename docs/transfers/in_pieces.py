"""Multiply two host arrays: page-locked arrays, piece by piece in one stream.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
"""

import cupy as cp
import cupyx
import numpy as np

PIECE = 2**22  # elements, 16 MiB
stream = cp.cuda.Stream(non_blocking=True)


def array(n):
    return cupyx.empty_pinned(n, np.float32)


def multiply(a, b, out):
    with stream:
        room = cp.empty((2, min(PIECE, a.size)), np.float32)  # all that the GPU has to hold
        for start in range(0, a.size, PIECE):
            piece = slice(start, start + PIECE)
            n = a[piece].size
            x, y = room[:, :n]
            x.set(a[piece])  # in the stream's order: after the piece before has left x
            y.set(b[piece])
            cp.multiply(x, y, out=x).get(out=out[piece], blocking=False)
        stream.synchronize()


if __name__ == "__main__":
    a, b, out = (array(9_000_011) for _ in range(3))
    a[:], b[:] = np.random.default_rng(0).standard_normal((2, a.size), np.float32)
    multiply(a, b, out)
    np.testing.assert_array_equal(out, a * b)
    print("in pieces: 9,000,011 elements, all right")
