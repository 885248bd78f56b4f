"""Norm of an array in multiprocessing: NumPy on every core of the CPU, one process each, on shared memory.

Framework: multiprocessing
Runs on: CPU
Install: pip install numpy
Follows: https://docs.python.org/3/library/multiprocessing.shared_memory.html
Engine: multiprocessing, a pool
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
BLOCK = 2**16  # elements; a block stays in a core's cache
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
    shared = tuple(Shared(np.shape(x), np.float32) for x in arrays)
    for x, to in zip(arrays, shared, strict=True):
        to.array()[...] = x
    return shared


def norm_of(part):
    # BLAS adds in float32, which of more squares would lose too much.
    norms = [np.linalg.norm(part[i : i + BLOCK]) for i in range(0, part.size, BLOCK)]
    return np.linalg.norm(np.array(norms, np.float32))


def part_norm(core, x):
    return norm_of(np.array_split(x.array().reshape(-1), CORES)[core])


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    return norm_of(np.array(pool.starmap(part_norm, [(core, x) for core in range(CORES)])))


def wait(norm):
    pass  # starmap returns when all tasks are done


def download(norm):
    return norm


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    with engine():
        result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, multiprocessing: 1,000,003 elements, all right")
