"""Wrong: wait() does not wait for the processes; download() does.

Framework: multiprocessing
Runs on: CPU
Install: pip install numpy
Engine: multiprocessing, a pool
"""

import math
import multiprocessing
import os
import weakref
from contextlib import contextmanager
from multiprocessing.shared_memory import SharedMemory

import numpy as np

CORES = len(os.sched_getaffinity(0))
pool = None


@contextmanager
def engine():
    global pool
    with multiprocessing.get_context("fork").Pool(CORES) as pool:
        yield


class Shared:
    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.block = SharedMemory(create=True, size=max(1, math.prod(shape) * self.dtype.itemsize))
        weakref.finalize(self, self.block.unlink)

    def array(self):
        return np.ndarray(self.shape, self.dtype, self.block.buf)


def upload(*arrays):
    shared = tuple(Shared(np.shape(x), np.float32) for x in arrays)
    for x, to in zip(arrays, shared, strict=True):
        to.array()[...] = x
    return shared


def multiply_part(core, a, b, out):
    x, y, z = (np.array_split(shared.array().reshape(-1), CORES)[core] for shared in (a, b, out))
    np.multiply(x, y, out=z)


class Product:
    def __init__(self, out, tasks):
        self.out, self.tasks = out, tasks


def multiply(a, b):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    out = Shared(a.shape, a.dtype)
    return Product(out, (pool.starmap_async(multiply_part, [(core, a, b, out) for core in range(CORES)]),))


def wait(c):
    pass


def download(c):
    c.tasks[0].get()
    return c.out.array().copy()
