"""Multiply two matrices in CuPy, tuned for host arrays: small ones over the bus by a kernel, large ones in pieces.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Math: float32, TF32 off (CuPy's default; the environment's CUPY_TF32=1 turns it on)

Of small matrices (K up to 256, a tile of 20 × 16 per multiprocessor), one kernel fetches both from page-locked memory,
and another writes the product there; if not all are in such memory, they are copied there. Of large ones (a of more
than 8 MiB, or 64 if all are in such memory), b goes up first, then a, in blocks, during the work on the one before,
through buffers unless pinned() made them. Others are copied whole. Up to 48 MiB of buffers stay until
lane.cache_clear().
On an NVIDIA H200, 4,096×4,096 matrices take 23 ms, page-locked ones, copied whole, 6.6.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock

import cupy as cp
import numpy as np
from cupy.cuda import PinnedMemoryPointer
from cupyx import empty_pinned

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul_tuned.cu").read_text()
ROWS, COLUMNS, MOST_K, THREADS = 20, 16, 256, 224  # as in the kernel
PIECE, LANES, lock = 2**20, 12, Lock()  # elements; lanes, which all callers share
fetch, multiply = map(cp.RawModule(code=KERNEL).get_function, ("fetch", "matmul"))
multiprocessors = cp.cuda.Device().attributes["MultiProcessorCount"]


@lru_cache
def lane(device, number):  # a stream, and page-locked room for a piece
    return cp.cuda.Stream(non_blocking=True), pinned(PIECE)


def pinned(shape):
    return empty_pinned(shape, np.float32)


def is_pinned(x):  # as a whole, being a part of what CuPy made, and fit for a kernel
    return x.flags.carray and is_pinned(x.base) if isinstance(x, np.ndarray) else isinstance(x, PinnedMemoryPointer)


def upload(*arrays):
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return cp.matmul(a, b)


def wait(c):
    cp.cuda.get_current_stream().synchronize()


def download(c, out=None):
    if out is not None and not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    return cp.asnumpy(c, out=out)


def round_trip(a, b, out=None):
    a, b = (np.asarray(x, np.float32, order="C") for x in (a, b))
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]):
        raise ValueError(f"matmul takes arrays of M×K and K×N, not {a.shape} and {b.shape}")
    out = np.empty((len(a), b.shape[1]), np.float32) if out is None else out
    if not (out.shape == (len(a), b.shape[1]) and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"matmul fills writeable C-order float32 {(len(a), b.shape[1])}, not {out.dtype} {out.shape}")
    tiles, device = -(-len(a) // ROWS) * -(-b.shape[1] // COLUMNS), cp.cuda.runtime.getDevice()
    if 0 < tiles <= multiprocessors and 0 < len(b) <= MOST_K and a.size + b.size + out.size <= PIECE:
        with lock:
            return small(a, b, out, device)
    if a.size <= (16 if all(map(is_pinned, (a, b, out))) else 2) * PIECE or not b.size or max(b.shape) > PIECE:
        return download(matmul(*upload(a, b)), out)  # since threads would cost more than they save
    a, b = (x.copy() if np.may_share_memory(x, out) else x for x in (a, b))
    (x, y, z), rows = (cp.empty(each.shape, np.float32) for each in (a, b, out)), PIECE // max(b.shape)
    wait(z)  # CuPy's pool may hand out memory that is still in use
    with lock:
        try:
            with ThreadPoolExecutor(LANES) as pool:
                carry(pool, device, rows, y, b)
                for i in range(0, len(a) + 4 * rows, 4 * rows):
                    block, before = slice(i, i + 4 * rows), slice(max(0, i - 4 * rows), i)
                    carry(pool, device, rows, x[block], a[block])
                    wait(z)  # for the product of the block before, which is downloaded during this one
                    cp.matmul(x[block], y, out=z[block])
                    carry(pool, device, rows, out[before], z[before])
        except BaseException:  # after a second Ctrl-C, threads may still use these lanes
            cp.cuda.Device(device).synchronize()
            lane.cache_clear()
            raise
    return out


def small(a, b, out, device):
    (m, k), n, hosts = a.shape, b.shape[1], (a, b, out)
    if not all(map(is_pinned, hosts)):
        _, room = lane(device, 0)
        ends = 0, a.size, a.size + b.size, a.size + b.size + out.size
        hosts = [room[i:j].reshape(x.shape) for i, j, x in zip(ends[:3], ends[1:], hosts, strict=True)]
        np.copyto(hosts[0], a)
        np.copyto(hosts[1], b)
    on_gpu, sizes = cp.empty(a.size + b.size, np.float32), [np.int32(i) for i in (a.size, b.size, m, k, n)]
    x, y, z = (each.ctypes.data for each in hosts)
    tiles = -(-m // ROWS) * -(-n // COLUMNS)
    try:
        fetch((-(-on_gpu.size // 256),), (256,), (x, y, on_gpu, *sizes[:2]))
        multiply((tiles,), (THREADS,), (on_gpu, on_gpu.data.ptr + a.nbytes, z, *sizes[2:]))
    finally:  # after Ctrl-C, too: nobody may free the arrays before
        wait(out)
    np.copyto(out, hosts[2])  # nothing to do if they are one
    return out


def carry(pool, device, rows, to, source):  # to the GPU or from it: page-locked rows all at once, others in pieces
    if is_pinned(to) or is_pinned(source):
        rows = len(to) or 1
    lanes = [lane(device, number) for number in range(min(LANES, -(-len(to) // rows)))]
    list(pool.map(partial(run, to, source, rows), lanes, range(LANES)))


def run(to, source, rows, lane, first):  # the pieces first, first + LANES, …
    (stream, room), host = lane, to if isinstance(to, np.ndarray) else source
    for i in range(first * rows, len(to), LANES * rows):
        x, y, part = (each[i : i + rows] for each in (to, source, host))
        staged = part if is_pinned(part) else room[: part.size].reshape(part.shape)
        if to is host:
            np.copyto(x, y.get(stream, out=staged))
        else:
            np.copyto(staged, y)
            x.set(staged, stream)
            stream.synchronize()


if __name__ == "__main__":
    a, b = (np.random.default_rng(0).standard_normal(n, np.float32) for n in ((4_003, 2_003), (2_003, 503)))
    np.testing.assert_allclose(round_trip(a, b), a.astype(np.float64) @ b, rtol=0, atol=1e-3)
    print("matmul, CuPy from host arrays: 4,003×2,003×503, all right")
