"""Multiply two host arrays: ordinary arrays, which several threads copy through small page-locked buffers.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import cupy as cp
import cupyx
import numpy as np

PIECE = 2**21  # elements, 8 MiB
THREADS = min(8, len(os.sched_getaffinity(0)))


def lane():
    """What a thread needs for one piece of each array: a stream, page-locked memory, and memory on the GPU."""
    shape = (3, PIECE)
    return cp.cuda.Stream(non_blocking=True), cupyx.empty_pinned(shape, np.float32), cp.empty(shape, np.float32)


lanes = [lane() for _ in range(THREADS)]
cp.cuda.get_current_stream().synchronize()


def work(arrays, number):
    """The pieces of one thread. NumPy and CuPy let the other threads run while they copy or wait."""
    a, b, out = arrays
    stream, page_locked, on_device = lanes[number]
    with on_device.device, stream:
        for start in range(number * PIECE, a.size, THREADS * PIECE):
            piece = slice(start, start + PIECE)
            n = a[piece].size
            staged_a, staged_b, staged_out = page_locked[:, :n]
            x, y, z = on_device[:, :n]
            np.copyto(staged_a, a[piece])
            x.set(staged_a)
            np.copyto(staged_b, b[piece])  # while a's piece is on its way
            y.set(staged_b)
            cp.multiply(x, y, out=z).get(out=staged_out, blocking=False)
            stream.synchronize()
            np.copyto(out[piece], staged_out)


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
