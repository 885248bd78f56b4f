"""Multiply two arrays in Numba, tuned for host arrays: in pieces, so that the bus is busy in both directions.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" "numpy<2.5"

round_trip() cuts the arrays into pieces of 16 MiB and spreads them over several streams. Page-locked arrays, as
pinned() makes them, go over the bus as they are; one thread per stream copies all others through page-locked buffers.
These, 384 MiB on each side, stay until lane.cache_clear(). Numba frees late: cuda.current_context().deallocations.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from threading import Lock

import numpy as np
from numba import cuda

THREADS, PIECE, LANES, lock = 256, 2**22, 8, Lock()  # per block; elements; lanes, which all callers share


@cuda.jit
def kernel(a, b, c):
    i = cuda.grid(1)  # 64-bit, as sizes are
    if i < c.size:  # the last block is rarely full
        c[i] = a[i] * b[i]


@lru_cache
def lane(device, _):  # a stream, and room for a piece of every array: page-locked, and on the device
    return cuda.stream(), pinned((3, PIECE)), [cuda.device_array(PIECE, np.float32) for _ in range(3)]


def pinned(shape):
    return np.ndarray(shape, np.float32, cuda.pinned_array(int(np.prod(shape)) or 1, np.float32))


def is_pinned(x):
    return is_pinned(x.base) if isinstance(x, np.ndarray) else isinstance(x, cuda.PinnedMemory)


def upload(*arrays):
    # Flat, then in shape: Numba refuses the stride, 0 or less, that NumPy may give an axis of one element.
    return tuple(cuda.to_device(np.asarray(x, np.float32).ravel().reshape(np.shape(x))) for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32 and a.is_c_contiguous() and b.is_c_contiguous()):
        what = f"{a.dtype} {a.shape} and {b.dtype} {b.shape}"
        raise ValueError(f"multiply takes C-contiguous float32 arrays of one shape, not {what}")
    out = cuda.device_array(a.shape, np.float32)
    if a.size:  # a grid of no blocks is an error
        kernel[-(-a.size // THREADS), THREADS](*(x if x.ndim == 1 else x.ravel() for x in (a, b, out)))
    return out


def wait(c):
    cuda.synchronize()


def download(c, out=None):
    return c.copy_to_host(out)


def round_trip(a, b, out=None):
    a, b = (np.asarray(x, np.float32, order="C") for x in (a, b))
    out = np.empty(a.shape, np.float32) if out is None else out
    if not (a.shape == b.shape == out.shape and out.dtype == np.float32 and out.flags.carray):  # writeable, too
        what = f"{a.shape} and {b.shape} into {out.dtype} {out.shape}"
        raise ValueError(f"multiply takes arrays of one shape, into a C-contiguous float32 array, not {what}")
    if a.size <= PIECE:
        return download(multiply(*upload(a, b)), out)
    direct, device = [is_pinned(x) for x in (a, b, out)], cuda.get_current_device().id
    with lock, ThreadPoolExecutor(count := 2 if all(direct) else LANES) as pool:
        list(pool.map(partial(run, device, (a, b, out), direct, count), range(count)))
    return out


def run(device, arrays, direct, count, first):  # the first piece, and every so many after it, one after another
    with cuda.gpus[device]:
        stream, staged, on_device = lane(device, first)
        for start in range(first * PIECE, arrays[0].size, count * PIECE):
            pieces = [x.reshape(-1)[start : start + PIECE] for x in arrays]
            host = [x if d else y[: x.size] for x, y, d in zip(pieces, staged, direct, strict=True)]
            a, b, c = on_device if pieces[0].size == PIECE else [x[: pieces[0].size] for x in on_device]  # slow to make
            for i, x in enumerate((a, b)):
                np.copyto(host[i], pieces[i])  # nothing to do if they are one
                x.copy_to_device(host[i], stream=stream)
            kernel[-(-c.size // THREADS), THREADS, stream](a, b, c)
            c.copy_to_host(host[2], stream=stream)
            if not all(direct):  # before its buffers are filled again
                stream.synchronize()
                np.copyto(pieces[2], host[2])
        stream.synchronize()


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 5_000_011), np.float32)
    np.testing.assert_array_equal(round_trip(a, b), a * b)
    print("multiply, Numba from host arrays: 5,000,011 elements, all right")
