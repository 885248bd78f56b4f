"""Add one to an array in Numba, tuned for host arrays: in pieces, so that the bus is busy in both directions.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" "numpy<2.5"

round_trip() cuts the array into pieces of 16 MiB and spreads them over several streams. Page-locked arrays, as pinned()
makes them, go over the bus as they are; one thread per stream copies all others through page-locked buffers. These, 256
MiB here and 128 on the device, stay until lane.cache_clear(). Numba frees late: cuda.current_context().deallocations.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from threading import Lock

import numpy as np
from numba import cuda

THREADS, PIECE, LANES, lock = 256, 2**22, 8, Lock()  # per block; elements; lanes, which all callers share


@cuda.jit
def kernel(a):
    i = cuda.grid(1)  # 64-bit, as sizes are
    if i < a.size:  # the last block is rarely full
        a[i] += np.float32(1)  # Numba would add a plain 1 in float64


@lru_cache
def lane(device, _):  # a stream, and room for a piece: twice page-locked, once on the device
    return cuda.stream(), pinned((2, PIECE)), cuda.device_array(PIECE, np.float32)


def pinned(shape):
    return np.ndarray(shape, np.float32, cuda.pinned_array(int(np.prod(shape)) or 1, np.float32))


def is_pinned(x):
    return is_pinned(x.base) if isinstance(x, np.ndarray) else isinstance(x, cuda.PinnedMemory)


def upload(*arrays):
    # Flat, then in shape: Numba refuses the stride, 0 or less, that NumPy may give an axis of one element.
    return tuple(cuda.to_device(np.asarray(x, np.float32).ravel().reshape(np.shape(x))) for x in arrays)


def increment(a):
    if not (a.dtype == np.float32 and a.is_c_contiguous()):
        raise ValueError(f"increment takes a C-contiguous float32 array, not {a.dtype} {a.shape} with {a.strides=}")
    if a.size:  # a grid of no blocks is an error
        kernel[-(-a.size // THREADS), THREADS](a if a.ndim == 1 else a.ravel())
    return a


def wait(a):
    cuda.synchronize()


def download(a, out=None):
    return a.copy_to_host(out)


def round_trip(a, out=None):  # a + 1 in a new array, or in out, which may be a itself
    a = np.asarray(a, np.float32, order="C")
    out = np.empty(a.shape, np.float32) if out is None else out
    if not (a.shape == out.shape and out.dtype == np.float32 and out.flags.carray):  # writeable, too
        what = f"{a.shape} into {out.dtype} {out.shape}"
        raise ValueError(f"increment writes into a C-contiguous float32 array of the same shape, not {what}")
    if a.size <= PIECE:
        return download(increment(*upload(a)), out)
    direct, device = [is_pinned(x) for x in (a, out)], cuda.get_current_device().id
    with lock, ThreadPoolExecutor(count := 2 if all(direct) else LANES) as pool:
        list(pool.map(partial(run, device, (a, out), direct, count), range(count)))
    return out


def run(device, arrays, direct, count, first):  # the first piece, and every so many after it, one after another
    with cuda.gpus[device]:
        stream, staged, on_device = lane(device, first)
        for start in range(first * PIECE, arrays[0].size, count * PIECE):
            pieces = [x.reshape(-1)[start : start + PIECE] for x in arrays]
            host = [x if d else y[: x.size] for x, y, d in zip(pieces, staged, direct, strict=True)]
            x = on_device if pieces[0].size == PIECE else on_device[: pieces[0].size]  # which is slow to make
            np.copyto(host[0], pieces[0])  # nothing to do if they are one
            x.copy_to_device(host[0], stream=stream)
            kernel[-(-x.size // THREADS), THREADS, stream](x)
            x.copy_to_host(host[1], stream=stream)
            if not all(direct):  # before its buffers are filled again
                stream.synchronize()
                np.copyto(pieces[1], host[1])
        stream.synchronize()


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(5_000_011, np.float32)
    np.testing.assert_array_equal(round_trip(a), a + 1)
    print("increment, Numba from host arrays: 5,000,011 elements, all right")
