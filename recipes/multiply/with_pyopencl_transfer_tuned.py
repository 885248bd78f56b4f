"""Multiply two arrays in PyOpenCL, tuned for host arrays: in pieces, so that the bus is busy in both directions.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"

round_trip() cuts the arrays into pieces of 8 MiB: while one is downloaded, the next is uploaded. Page-locked arrays, as
pinned() makes them, go over the bus as they are, on two lanes; one thread per lane copies all others through buffers.
These, up to 128 MiB on each side, stay for the next call: lane.cache_clear() frees them.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from os import sched_getaffinity
from pathlib import Path
from threading import Lock

import numpy as np
import pyopencl as cl
import pyopencl.array

KERNEL = (Path(__file__).parents[2] / "kernels" / "multiply_tuned.cl").read_text()
PIECE, LANES, GROUP = 2**21, min(8, max(2, len(sched_getaffinity(0)))), 256  # elements; lanes; work-items per group
devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
program, lock = cl.Program(queue.context, KERNEL).build(), Lock()


@lru_cache
def lane(number):  # a queue, a kernel, because two threads must not set arguments of one, and room for two pieces
    a, b = (cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 4 * PIECE) for _ in range(2))
    return cl.CommandQueue(queue.context), cl.Kernel(program, "multiply"), pinned((2, PIECE)), (a, b, a)


def pinned(shape):
    size, flags = int(np.prod(shape, dtype=np.int64)), cl.map_flags.READ | cl.map_flags.WRITE  # no bytes are an error
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR, 4 * max(1, size))
    return cl.enqueue_map_buffer(queue, buffer, flags, 0, max(1, size), np.float32)[0][:size].reshape(shape)


def is_pinned(x):
    return is_pinned(x.base) if isinstance(x, np.ndarray) else isinstance(x, cl.MemoryMap)


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float32, order="C")) for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32 and a.flags.c_contiguous and b.flags.c_contiguous):
        what = f"{a.dtype} {a.shape} and {b.dtype} {b.shape}"  # PyOpenCL would convert, and take what lies in memory
        raise ValueError(f"multiply takes C-contiguous float32 arrays of one shape, as upload() makes them, not {what}")
    return a * b


def wait(c):
    queue.finish()


def download(c, out=None):
    return c.get(ary=out)


def round_trip(a, b, out=None):
    a, b = (np.asarray(x, np.float32, order="C") for x in (a, b))
    out = np.empty(a.shape, np.float32) if out is None else out
    if not (a.shape == b.shape == out.shape and out.dtype == np.float32 and out.flags.carray):  # writeable, too
        what = f"{a.shape} and {b.shape} into {out.dtype} {out.shape}"
        raise ValueError(f"multiply takes arrays of one shape, into a C-contiguous float32 array, not {what}")
    arrays, direct = [x.reshape(-1) for x in (a, b, out)], [is_pinned(x) for x in (a, b, out)]
    count = max(1, min(2 if all(direct) else LANES, -(-a.size // PIECE)))
    with lock, ThreadPoolExecutor(count) as pool:  # the lanes are shared by all callers
        list((pool.map if count > 1 else map)(partial(run, arrays, direct, count), range(count)))
    return out


def run(arrays, direct, count, number):
    queue, kernel, staged, buffers = lane(number)
    events = []  # when one goes, it waits for its copy and stops all threads of Python: they stay until finish()
    for start in range(number * PIECE, arrays[0].size, count * PIECE):
        pieces = [x[start : start + PIECE] for x in arrays]
        host = [x if d else y[: x.size] for x, y, d in zip(pieces, (*staged, staged[0]), direct, strict=True)]
        for i in range(2):
            if not direct[i]:
                np.copyto(host[i], pieces[i])
            events.append(cl.enqueue_copy(queue, buffers[i], host[i], is_blocking=False))
        groups, n = -(-host[2].size // (4 * GROUP)), np.int64(host[2].size)
        events.append(kernel(queue, (groups * GROUP,), (GROUP,), *buffers, n))
        events.append(cl.enqueue_copy(queue, host[2], buffers[2], is_blocking=False))
        queue.flush() if all(direct) else queue.finish()  # its buffers are filled again
        if not direct[2]:
            np.copyto(pieces[2], host[2])
    queue.finish()


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 5_000_011), np.float32)
    np.testing.assert_array_equal(round_trip(a, b), a * b)
    print(f"multiply, PyOpenCL on {device.name.strip()}, from host arrays: 5,000,011 elements, all right")
