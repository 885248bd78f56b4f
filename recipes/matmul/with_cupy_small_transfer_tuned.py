"""Multiply two small matrices in CuPy, tuned for host arrays: kernels read them and write the product over the bus.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Math: float32, TF32 off (CuPy's default; the environment's CUPY_TF32=1 turns it on)

One kernel fetches both factors from page-locked memory, another writes the product into such memory. Arrays that
pinned() made are used as they are; others are copied while the launch is under way. Up to eight results stay where the
GPU wrote them. For K up to 256, and at most one tile of 20 × 16 per multiprocessor; others go the usual way. Buffers,
of 4 MiB on each side, stay until desk.cache_clear().
"""

from functools import lru_cache
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

import cupy as cp
import numpy as np
from cupyx import empty_pinned

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul_tuned.cu").read_text()
ROWS, COLUMNS, MOST_K, THREADS, FETCHERS, READY, LATE = 20, 16, 256, 224, 512, 6, 7  # as in the kernels
ROOM, lent, MOST_LENT, lock = 2**20, WeakValueDictionary(), 8, Lock()  # elements; page-locked results that callers have
fetch, multiply = map(cp.RawModule(code=KERNEL).get_function, ("fetch", "matmul_fetched"))


@lru_cache
def desk(device):  # how many tiles are small, a job for the kernels, and room for factors: page-locked, and on the GPU
    wait(None)  # CuPy's pool may hand out memory that is still in use
    tiles = cp.cuda.Device(device).attributes["MultiProcessorCount"]
    return tiles, pinned(16).view(np.int64), pinned(ROOM), cp.empty(32 + ROOM, np.float32)


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
    a, b = (np.asarray(x, np.float32) for x in (a, b))
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]
    if right and out is not None:
        right = out.shape == (len(a), b.shape[1]) and out.dtype == np.float32 and out.flags.carray
    if not right or out is not None and (np.may_share_memory(a, out) or np.may_share_memory(b, out)):
        what = f"{a.shape} and {b.shape}" + ("" if out is None else f" into {out.dtype} {out.shape}")
        raise ValueError(f"matmul takes M×K and K×N, and a C-contiguous float32 M×N apart from them, not {what}")
    (m, k), n, (most, job, staged, on_gpu) = a.shape, b.shape[1], desk(cp.cuda.runtime.getDevice())
    tiles = -(-m // ROWS) * -(-n // COLUMNS)
    if not 0 < tiles <= most or k > MOST_K or a.size + b.size > ROOM:
        return download(matmul(*upload(a, b)), out)
    with lock:  # the desk is shared by all callers
        direct = all(is_pinned(x) and x.flags.c_contiguous and x.flags.aligned for x in (a, b))
        x, y = (a, b) if direct else (staged[: a.size].reshape(m, k), staged[a.size :][: b.size].reshape(k, n))
        c = out if is_pinned(out) else pinned((m, n))
        job[:] = x.ctypes.data, y.ctypes.data, c.ctypes.data, m, k, n, (a.size + b.size) * direct, 0
        try:
            fetch((2 * most,), (FETCHERS,), (job.ctypes.data, on_gpu))
            for to, source in () if direct else ((x, a), (y, b)):  # the kernel waits for these, but not for ever
                np.copyto(to, source)
                job[READY] += source.size
            multiply((tiles,), (THREADS,), (on_gpu,))
        finally:  # after Ctrl-C, too
            wait(c)
        c = download(matmul(*upload(a, b))) if job[LATE] else c
        if out is None:
            return lent.setdefault(c.ctypes.data, c) if len(lent) < MOST_LENT else c.copy()
        np.copyto(out, c)  # nothing to do if they are one
    return out


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    np.testing.assert_allclose(round_trip(a, b), a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, CuPy from small host arrays: 200×200×200, all right")
