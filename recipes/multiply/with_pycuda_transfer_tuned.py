"""Multiply two arrays in PyCUDA, tuned for host arrays: the kernel reads and writes them over the bus.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy
Needs: nvcc

From and into page-locked memory, as pinned() makes it, nothing is copied: both directions of the bus are busy at once,
and arrays may be larger than the GPU's memory. Others pass through page-locked buffers that threads fill and empty,
or the caller alone if they are small. Up to 144 MiB stay until inside(lane.cache_clear).
On an NVIDIA H200, 2**28 products take 104 ms, page-locked ones 44.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from weakref import finalize

import numpy as np
from pycuda import autoprimaryctx, compiler, driver, gpuarray  # the first: the context that others use, too

KERNEL = (Path(__file__).parents[2] / "kernels" / "multiply_tuned.cu").read_text()
PIECE, LANES, lock = 2**20, 12, Lock()  # elements; lanes, which all callers share
THREADS = 256  # per block; each multiplies four elements
kernel = compiler.SourceModule(KERNEL, no_extern_c=True).get_function("multiply").prepare("PPPq")


@lru_cache
def lane(number):  # a stream that does not wait for others, and room for a piece of every array
    return driver.Stream(1), pinned((3, PIECE))


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
    if out is not None and not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    return c.get(out)


def round_trip(a, b, out=None):
    a, b = (np.require(x, np.float32, "CAE") for x in (a, b))  # C-contiguous, aligned, no subclass
    out = np.empty(a.shape, np.float32) if out is None else out
    if not (a.shape == b.shape == out.shape and out.dtype == np.float32 and out.flags.carray):
        what = f"{a.shape} and {b.shape} into {out.dtype} {out.shape}"
        raise ValueError(f"multiply takes arrays of one shape, into a writeable C-contiguous float32 array, not {what}")
    arrays = [np.asarray(apart(x, out)).reshape(-1) for x in (a, b, out)]
    if a.size and all(map(is_pinned, arrays)):
        inside(launch, None, *arrays)
    else:
        with lock:
            try:
                lanes = [inside(lane, number) for number in range(min(LANES, -(-a.size // PIECE)))]
                if len(lanes) == 1:
                    inside(run, arrays, lanes[0], 0)
                else:
                    with ThreadPoolExecutor(LANES) as pool:
                        list(pool.map(partial(inside, run, arrays), lanes, range(LANES)))
            except BaseException:  # after a second Ctrl-C, threads may still use these lanes
                inside(lane.cache_clear)
                raise
    return out


def apart(x, out):  # a copy, if a result that is written could change what is still to be read
    return x.copy() if np.may_share_memory(x, out) and x.ctypes.data != out.ctypes.data else x


def launch(stream, a, b, out):  # page-locked arrays have the same address on the device
    blocks = -(-out.size // (4 * THREADS))
    addresses = [x.ctypes.data for x in (a, b, out)]
    try:
        kernel.prepared_async_call((blocks, 1), (THREADS, 1, 1), stream, *addresses, out.size)
    finally:  # also after Ctrl-C: nobody may free the arrays before
        stream.synchronize() if stream else wait(out)


def run(arrays, lane, first):  # the pieces first, first + LANES, … of the arrays
    stream, rooms = lane
    for start in range(first * PIECE, arrays[0].size, LANES * PIECE):
        a, b, out = (x[start : start + PIECE] for x in arrays)
        np.copyto(rooms[0, : a.size], a)
        np.copyto(rooms[1, : b.size], b)
        launch(stream, *rooms[:, : out.size])
        np.copyto(out, rooms[2, : out.size])


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 5_000_011), np.float32)
    np.testing.assert_array_equal(round_trip(a, b), a * b)
    print("multiply, PyCUDA from host arrays: 5,000,011 elements, all right")
