"""Multiply two matrices in CuPy, tuned for host arrays: in pieces, so that transfers take place during the work.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Math: float32, TF32 off (CuPy's default; the environment's CUPY_TF32=1 turns it on)

First b goes up, then a in pieces of up to 8 MiB: while one is multiplied, another is uploaded, and the product of a
third one is downloaded. Page-locked arrays, as pinned() makes them, go as they are; threads copy others through 64 MiB
of page-locked memory. Freed memory stays in CuPy's pools, for the next call, until their free_all_blocks().
"""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import cycle

import cupy as cp
import numpy as np
from cupyx import empty_pinned

PIECE, LANES, THREADS = 2**21, 4, 8  # elements; pieces that are under way at the same time; threads that copy


@lru_cache
def lanes(device):  # always the same streams, because CuPy keeps memory for each
    return [cp.cuda.Stream(non_blocking=True) for _ in range(LANES)]


def pinned(shape):
    return empty_pinned(shape, np.float32)


def is_pinned(x):  # no more than the memory that CuPy made
    return is_pinned(x.base) if isinstance(x, np.ndarray) else isinstance(x, cp.cuda.PinnedMemoryPointer)


def upload(*arrays):
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C")) for x in arrays)


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return cp.matmul(a, b)


def wait(c):
    cp.cuda.get_current_stream().synchronize()


def download(c, out=None):
    return cp.asnumpy(c, out=out)


def round_trip(a, b, out=None):
    a, b = (np.require(x, np.float32, "CAE") for x in (a, b))  # C-contiguous, aligned
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]
    out = np.empty((len(a), b.shape[1]), np.float32) if right and out is None else out
    right = right and out.shape == (len(a), b.shape[1]) and out.dtype == np.float32 and out.flags.carray
    if not right or np.may_share_memory(a, out) or np.may_share_memory(b, out):
        what = f"{a.shape} and {b.shape}" + ("" if out is None else f" into {out.dtype} {out.shape}")
        raise ValueError(f"matmul takes M×K and K×N, and a C-contiguous float32 M×N apart from them, not {what}")
    if a.size <= PIECE or not b.size or max(b.shape) > PIECE:
        return download(matmul(*upload(a, b)), out)
    direct, rows, under_way = (is_pinned(a), is_pinned(out)), PIECE // max(b.shape), []
    rooms, streams = pinned((LANES, 2, 0 if all(direct) else PIECE)), lanes(cp.cuda.Device().id)
    with ThreadPoolExecutor(THREADS) as pool:  # which starts no thread for page-locked arrays
        try:
            factor = cp.empty(b.shape, np.float32)
            factor.set(b)
            wait(factor)  # all lanes need it
            for start, stream, room in zip(range(0, len(a), rows), cycle(streams), cycle(rooms), strict=False):
                if len(under_way) == LANES:  # this lane's piece, before its room is used again
                    copy(*under_way.pop(0))
                part = a[start : start + rows], out[start : start + rows]
                given, result = (x if direct[i] else room[i, : x.size].reshape(x.shape) for i, x in enumerate(part))
                copy(pool, stream, given, part[0])
                with stream:  # memory that is freed is given to what comes later on this stream
                    x = cp.empty(given.shape, np.float32)
                    x.set(given)
                    cp.matmul(x, factor).get(out=result, blocking=False)
                under_way.append((pool, stream, part[1], result))
            for each in under_way:
                copy(*each)
        finally:  # after Ctrl-C, too
            for stream in streams:
                stream.synchronize()
    return out


def copy(pool, stream, to, source):  # when the stream is idle, with all threads
    stream.synchronize()
    if to is not source:
        list(pool.map(np.copyto, *(np.array_split(x.reshape(-1), THREADS) for x in (to, source))))


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 2_003, 2_003), np.float32)
    np.testing.assert_allclose(round_trip(a, b), a.astype(np.float64) @ b, rtol=0, atol=1e-3)
    print("matmul, CuPy from host arrays: 2,003×2,003×2,003, all right")
