"""Right: from host to host in pieces, through buffers that are filled again and again, as recipes for GPUs do it.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from threading import Lock

import numpy as np

PIECE, LANES, lock = 2**20, 2, Lock()


class PageLocked(bytearray):
    """What stands for memory that a device can reach."""


@lru_cache
def lane(number):
    return np.empty((3, PIECE), np.float32)


def pinned(shape):
    return np.ndarray(shape, np.float32, PageLocked(4 * int(np.prod(shape)) or 1))


def is_pinned(x):
    return is_pinned(x.base) if isinstance(x, np.ndarray) else isinstance(x, PageLocked)


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return a * b


def wait(c):
    pass


def download(c):
    return c.copy()


def round_trip(a, b, out=None):
    a, b = (np.asarray(x, np.float32, order="C") for x in (a, b))
    out = np.empty(a.shape, np.float32) if out is None else out
    if not (a.shape == b.shape == out.shape and out.dtype == np.float32 and out.flags.carray):
        what = f"{a.shape} and {b.shape} into {out.dtype} {out.shape}"
        raise ValueError(f"multiply takes arrays of one shape, into a writeable C-contiguous float32 array, not {what}")
    arrays, direct = [x.reshape(-1) for x in (a, b, out)], [is_pinned(x) for x in (a, b, out)]
    with lock, ThreadPoolExecutor(LANES) as pool:
        list(pool.map(partial(run, arrays, direct), range(LANES)))
    return out


def run(arrays, direct, number):
    staged = lane(number)
    for start in range(number * PIECE, arrays[0].size, LANES * PIECE):
        pieces = [x[start : start + PIECE] for x in arrays]
        a, b, c = [x if d else y[: x.size] for x, y, d in zip(pieces, staged, direct, strict=True)]
        np.copyto(a, pieces[0])
        np.copyto(b, pieces[1])
        np.multiply(a, b, out=c)
        np.copyto(pieces[2], c)
