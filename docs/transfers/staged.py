"""Multiply two host arrays: ordinary arrays, which several threads copy through small page-locked buffers.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import cupy as cp
import cupyx
import numpy as np

PIECE = 2**20  # elements, 4 MiB
THREADS = 12


def on_device(x):
    """Page-locked memory as a CuPy array."""
    memory = cp.cuda.UnownedMemory(x.ctypes.data, x.nbytes, owner=x)
    return cp.ndarray(x.shape, x.dtype, cp.cuda.MemoryPointer(memory, 0))


def lane():
    """What a thread needs: a stream, and room for a piece of each array, as NumPy and as a kernel sees it."""
    room = cupyx.empty_pinned((3, PIECE), np.float32)
    return cp.cuda.Stream(non_blocking=True), room, on_device(room)


lanes = [lane() for _ in range(THREADS)]


def work(arrays, number):
    """The pieces of one thread. NumPy and CuPy let the other threads run while they copy or wait."""
    a, b, out = arrays
    stream, room, same_room = lanes[number]
    with same_room.device, stream:
        for start in range(number * PIECE, a.size, THREADS * PIECE):
            piece = slice(start, start + PIECE)
            n = a[piece].size
            np.copyto(room[0, :n], a[piece])
            np.copyto(room[1, :n], b[piece])
            x, y, z = same_room[:, :n]
            cp.multiply(x, y, out=z)  # over the bus, in both directions
            stream.synchronize()
            np.copyto(out[piece], room[2, :n])


def multiply(a, b, out):
    """The lanes are shared: call this from one thread at a time."""
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(partial(work, (a, b, out)), range(THREADS)))


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 20_000_011), np.float32)
    out = np.empty_like(a)
    multiply(a, b, out)
    np.testing.assert_array_equal(out, a * b)
    print("staged: 20,000,011 elements, all right")
