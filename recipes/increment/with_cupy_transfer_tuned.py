"""Add one to an array in CuPy, tuned for host arrays: in pieces, so that the bus is busy in both directions.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"

round_trip() cuts the array into pieces of 8 MiB: while one is downloaded, the next is uploaded. Page-locked arrays, as
pinned() makes them, go over the bus as they are, on two streams. One thread per stream copies all others through
page-locked buffers, since one core alone copies slower than the bus. These, up to 128 MiB on the host and 64 MiB on the
device, stay until lanes.cache_clear() gives them back to CuPy's pools.
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
    """Of each lane a stream, page-locked room for a piece and for its result, and room for it on the device."""
    cp.cuda.get_current_stream().synchronize()  # the pool may hand out memory that is still in use there
    return [
        (cp.cuda.Stream(non_blocking=True), empty_pinned((2, PIECE), np.float32), cp.empty(PIECE, np.float32))
        for _ in range(LANES)
    ]


def pinned(shape):
    return empty_pinned(shape, np.float32)


def upload(*arrays):
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C")) for x in arrays)


def increment(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    a += 1
    return a


def wait(a):
    cp.cuda.get_current_stream().synchronize()


def download(a, out=None):
    return cp.asnumpy(a, out=out)


def round_trip(a, out=None):
    """a + 1 in a new array, or in out, which may be a itself."""
    a = np.asarray(a, np.float32, order="C")
    out = np.empty(a.shape, np.float32) if out is None else out
    if not (a.shape == out.shape and out.dtype == np.float32 and out.flags.carray):
        what = f"{a.shape} into {out.dtype} {out.shape}"
        raise ValueError(f"increment writes into a writeable C-contiguous float32 array of the same shape, not {what}")
    if a.size <= PIECE:
        return download(increment(*upload(a)), out)
    arrays, device = [x.reshape(-1) for x in (a, out)], cp.cuda.Device().id
    direct = [cp.cuda.runtime.pointerGetAttributes(x.ctypes.data).type == PINNED for x in arrays]
    count = 2 if all(direct) else LANES
    with lock, ThreadPoolExecutor(count) as pool:  # the lanes are shared by all callers
        parts = [slice(i * PIECE, None, count * PIECE) for i in range(count)]
        list(pool.map(partial(run, device, arrays, direct), lanes(device), parts))
    return out


def run(device, arrays, direct, lane, part):
    """Increment the pieces that begin at every index of this part, one after another."""
    stream, staged, on_device = lane
    with cp.cuda.Device(device), stream:
        for start in range(arrays[0].size)[part]:
            pieces = [x[start : start + PIECE] for x in arrays]
            host = [x if d else y[: x.size] for x, y, d in zip(pieces, staged, direct, strict=True)]
            if not direct[0]:
                np.copyto(host[0], pieces[0])
            x = on_device[: pieces[0].size]
            x.set(host[0])
            increment(x).get(out=host[1], stream=stream, blocking=False)
            if not all(direct):  # before its buffers are filled again
                stream.synchronize()
            if not direct[1]:
                np.copyto(pieces[1], host[1])
        stream.synchronize()


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(5_000_011, np.float32)
    np.testing.assert_array_equal(round_trip(a), a + 1)
    print("increment, CuPy from host arrays: 5,000,011 elements, all right")
