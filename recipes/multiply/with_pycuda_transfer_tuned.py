"""Multiply two arrays in PyCUDA, tuned for host arrays: in pieces, so that the bus is busy in both directions.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy
Needs: nvcc

round_trip() spreads pieces of 8 MiB over several streams. Page-locked arrays, as pinned() makes them, go over the bus
as they are; a thread per stream copies others through buffers: 192 MiB a side, until inside(lane.cache_clear).
"""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from weakref import finalize

import numpy as np
from pycuda import autoprimaryctx, compiler, driver, gpuarray  # the first: the context that others use, too

KERNEL = (Path(__file__).parents[2] / "kernels" / "multiply_tuned.cu").read_text()
PIECE, LANES, lock = 2**21, 8, Lock()  # elements; lanes, which all callers share
kernel = compiler.SourceModule(KERNEL, no_extern_c=True).get_function("multiply").prepare("PPPq")


@lru_cache
def lane(_):  # a stream that does not wait for others, and room for a piece of every array, on both sides
    return driver.Stream(1), pinned((3, PIECE)), [driver.mem_alloc(4 * PIECE) for _ in range(3)]


def inside(function, *arguments):  # PyCUDA's context, which only the importing thread has; no other may keep it
    autoprimaryctx.context.push()
    try:
        return function(*arguments)
    finally:
        autoprimaryctx.context.pop()


def pinned(shape):
    memory = inside(driver.pagelocked_empty, int(np.prod(shape)) or 1, np.float32)
    finalize(memory, inside, memory.base.free).atexit = False  # in other threads, PyCUDA itself would not free it
    return np.ndarray(shape, np.float32, memory)


def is_pinned(x):
    return is_pinned(x.base) if isinstance(x, np.ndarray) else isinstance(x, driver.PagelockedHostAllocation)


def upload(*arrays):
    return tuple(gpuarray.to_gpu(np.asarray(x, np.float32, order="C")) for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32 and a.flags.c_contiguous and b.flags.c_contiguous):
        what = f"{a.dtype} {a.shape} and {b.dtype} {b.shape}"
        raise ValueError(f"multiply takes C-contiguous float32 arrays of one shape, not {what}")
    return a * b if a.size else gpuarray.empty(a.shape, a.dtype)  # no elements: no memory to give to a kernel


def wait(c):
    autoprimaryctx.context.synchronize()


def download(c, out=None):
    return c.get(out)


def round_trip(a, b, out=None):
    a, b = (np.asarray(x, np.float32, order="C") for x in (a, b))
    out = np.empty(a.shape, np.float32) if out is None else out
    if not (a.shape == b.shape == out.shape and out.dtype == np.float32 and out.flags.carray):  # writeable, too
        what = f"{a.shape} and {b.shape} into {out.dtype} {out.shape}"
        raise ValueError(f"multiply takes arrays of one shape, into a C-contiguous float32 array, not {what}")
    if a.size <= PIECE:
        return inside(lambda: download(multiply(*upload(a, b)), out))
    with lock, ThreadPoolExecutor(count := 2 if all(map(is_pinned, (a, b, out))) else LANES) as pool:
        list(pool.map(partial(inside, run, (a, b, out), count), range(count)))
    return out


def run(arrays, count, first):  # the first piece, and every so many after it, one after another
    stream, staged, on_device = lane(first)
    for start in range(first * PIECE, arrays[0].size, count * PIECE):
        pieces = [x.reshape(-1)[start : start + PIECE] for x in arrays]
        host = [x if is_pinned(x) else y[: x.size] for x, y in zip(pieces, staged, strict=True)]
        for x, y, to in zip(pieces[:2], host[:2], on_device[:2], strict=True):
            np.copyto(y, x)  # nothing to do if they are one
            driver.memcpy_htod_async(to, y, stream)
        kernel.prepared_async_call((-(-PIECE // 1024), 1), (256, 1, 1), stream, *on_device, pieces[0].size)
        driver.memcpy_dtoh_async(host[2], on_device[2], stream)
        if count > 2:  # before its buffers are filled again
            stream.synchronize()
            np.copyto(pieces[2], host[2])
    stream.synchronize()


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 5_000_011), np.float32)
    np.testing.assert_array_equal(round_trip(a, b), a * b)
    print("multiply, PyCUDA from host arrays: 5,000,011 elements, all right")
