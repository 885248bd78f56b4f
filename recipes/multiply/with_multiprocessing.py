"""Multiply two arrays in multiprocessing: NumPy on every core of the CPU, one process each, on shared memory.

Framework: multiprocessing
Runs on: CPU
Install: pip install numpy
Follows: https://docs.python.org/3/library/multiprocessing.shared_memory.html
"""

import math
import multiprocessing
import os
import shutil
import weakref
from contextlib import contextmanager
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import numpy as np

CORES = len(os.sched_getaffinity(0))  # those that this process may use
pool = None


@contextmanager
def engine():
    global pool
    # Spawned, not forked: a fork copies locks that threads of NumPy, CUDA or your own code may be holding.
    with multiprocessing.get_context("spawn").Pool(CORES) as pool:
        yield


class Shared:
    """An array in memory that all processes see: pickled, it is a name. The memory is freed when this object goes."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, np.dtype(dtype)
        size = max(1, math.prod(shape) * self.dtype.itemsize)  # a block of no bytes is an error
        if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free < size:  # or a crash at the first write
            raise MemoryError(f"/dev/shm has no room for another {size:,} bytes")
        self.block = SharedMemory(create=True, size=size)
        weakref.finalize(self, unlink, self.block, os.getpid())

    def array(self):
        return np.ndarray(self.shape, self.dtype, self.block.buf)


def unlink(block, creator):
    if os.getpid() == creator:  # and not a fork of it, which ends before its arrays do
        block.unlink()


def upload(*arrays):
    return tuple(map(filled, arrays))


def filled(x):
    shared = Shared(np.shape(x), np.float32)
    shared.array()[...] = x  # before there is another one: until it is written to, its room counts as free
    return shared


def multiply_part(core, a, b, out):
    x, y, z = (np.array_split(shared.array().reshape(-1), CORES)[core] for shared in (a, b, out))
    np.multiply(x, y, out=z)


def multiply(a, b, out=None):
    out = Shared(a.shape, a.dtype) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    pool.starmap(multiply_part, [(core, a, b, out) for core in range(CORES)])
    return out


def wait(c):
    pass  # starmap returns when all tasks are done


def download(c):
    return c.array().copy()


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    with engine():
        c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, multiprocessing: 1,000,003 elements, all right")
