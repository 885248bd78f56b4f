"""Multiply two arrays in CuPy, tuned for host arrays: in pieces, so that the bus is busy in both directions.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Math: float32, denormals are zero (CuPy compiles its kernels with -ftz=true)

round_trip() cuts the arrays into pieces of 8 MiB: while one is downloaded, the next is uploaded. Page-locked arrays, as
pinned() makes them, go over the bus as they are, on two streams. One thread per stream copies all others through
buffers, of up to 192 MiB on each side, which stay until lanes.cache_clear() gives them back to CuPy's pools.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from os import sched_getaffinity
from threading import Lock

import cupy as cp
import numpy as np
from cupyx import empty_pinned

PIECE, LANES = 2**21, min(8, max(2, len(sched_getaffinity(0))))  # elements; more lanes are not faster
PINNED = 1  # cudaMemoryTypeHost
lock = Lock()


@lru_cache
def lanes(device):
    """Of each lane a stream, and room for a piece of every array: page-locked, and on the device."""
    cp.cuda.get_current_stream().synchronize()  # the pool may hand out memory that is still in use there
    shape = (3, PIECE)
    return [
        (cp.cuda.Stream(non_blocking=True), empty_pinned(shape, np.float32), cp.empty(shape, np.float32))
        for _ in range(LANES)
    ]


def pinned(shape):
    return empty_pinned(shape, np.float32)


def upload(*arrays):
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C")) for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return cp.multiply(a, b)


def wait(c):
    cp.cuda.get_current_stream().synchronize()


def download(c, out=None):
    return cp.asnumpy(c, out=out)


def round_trip(a, b, out=None):
    a, b = (np.asarray(x, np.float32, order="C") for x in (a, b))
    out = np.empty(a.shape, np.float32) if out is None else out
    if not (a.shape == b.shape == out.shape and out.dtype == np.float32 and out.flags.carray):
        what = f"{a.shape} and {b.shape} into {out.dtype} {out.shape}"
        raise ValueError(f"multiply takes arrays of one shape, into a writeable C-contiguous float32 array, not {what}")
    if a.size <= PIECE:
        return download(multiply(*upload(a, b)), out)
    arrays, device = [x.reshape(-1) for x in (a, b, out)], cp.cuda.Device().id
    direct = [cp.cuda.runtime.pointerGetAttributes(x.ctypes.data).type == PINNED for x in arrays]
    count = 2 if all(direct) else LANES
    with lock, ThreadPoolExecutor(count) as pool:  # the lanes are shared by all callers
        parts = [slice(i * PIECE, None, count * PIECE) for i in range(count)]
        list(pool.map(partial(run, device, arrays, direct), lanes(device), parts))
    return out


def run(device, arrays, direct, lane, part):
    """Multiply the pieces that begin at every index of this part, one after another."""
    stream, staged, on_device = lane
    with cp.cuda.Device(device), stream:
        for start in range(arrays[0].size)[part]:
            pieces = [x[start : start + PIECE] for x in arrays]
            host = [x if d else y[: x.size] for x, y, d in zip(pieces, staged, direct, strict=True)]
            a, b, out = on_device[:, : pieces[0].size]
            for i, x in enumerate((a, b)):
                if not direct[i]:
                    np.copyto(host[i], pieces[i])
                x.set(host[i])
            cp.multiply(a, b, out=out).get(out=host[2], stream=stream, blocking=False)
            if not all(direct):  # before its buffers are filled again
                stream.synchronize()
            if not direct[2]:
                np.copyto(pieces[2], host[2])
        stream.synchronize()


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 5_000_011), np.float32)
    np.testing.assert_array_equal(round_trip(a, b), a * b)
    print("multiply, CuPy from host arrays: 5,000,011 elements, all right")
