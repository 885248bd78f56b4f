"""Mean of every other row and column, plus one, in multiprocessing: NumPy on every core of the CPU, one process each,
on shared memory.

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
pool = None


@contextmanager
def engine():
    global pool
    # Spawned, not forked: a fork copies locks that the threads of NumPy, CUDA or your own code may be holding.
    with multiprocessing.get_context("spawn").Pool(CORES) as pool:
        yield


class Shared:
    """An array in memory that all processes see: pickled, it is a name. The memory is freed when this object goes."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, np.dtype(dtype)
        size = max(1, math.prod(shape) * self.dtype.itemsize)  # a block of no bytes is an error
        if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free < size:  # else a crash at the first write
            raise MemoryError(f"/dev/shm has no room for {size:,} bytes more")
        self.block = SharedMemory(create=True, size=size)
        weakref.finalize(self, unlink, self.block, os.getpid())

    def array(self):
        return np.ndarray(self.shape, self.dtype, self.block.buf)


def unlink(block, creator):
    if os.getpid() == creator:  # and not a fork of it, which ends before its arrays do
        block.unlink()


def upload(*arrays):
    shared = tuple(Shared(np.shape(x), np.float64) for x in arrays)
    for x, to in zip(arrays, shared, strict=True):
        to.array()[...] = x
    return shared


def part_sum(core, x):
    return (np.array_split(x.array()[::2, ::2], CORES)[core] + 1).sum()


def subset_mean(x):
    if len(x.shape) != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    count = ((x.shape[0] + 1) // 2) * ((x.shape[1] + 1) // 2)
    sums = pool.starmap(part_sum, [(core, x) for core in range(CORES)])
    return sum(sums) / count if count else np.nan


def wait(mean):
    pass  # starmap returns when all tasks are done


def download(mean):
    return float(mean)


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    with engine():
        mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, multiprocessing: 333 × 1,001 elements, all right")
