"""Multiply two arrays in multiprocessing: CuPy on every GPU, one process each, that keeps its part of the arrays there.

Framework: multiprocessing
Runs on: every NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
"""

import itertools
import multiprocessing
import weakref
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import cupy as cp
import numpy as np

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # files here are in memory; to pickle 1 GiB takes seconds

pools = []  # one of one process for each GPU, so that a task can be sent to a certain GPU
keys = itertools.count()
parts = {}  # in a process of a pool: the part of each array that is on its GPU


@contextmanager
def engine():
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    with ExitStack() as stack:
        gpus = range(cp.cuda.runtime.getDeviceCount())
        pools.extend([stack.enter_context(context.Pool(1, use, (gpu,))) for gpu in gpus])
        stack.callback(pools.clear)
        yield


def use(gpu):
    cp.cuda.Device(gpu).use()


def everywhere(function, *arguments):
    """Call it in all processes at the same time, and wait until all have returned."""
    return [call.get() for call in [pool.apply_async(function, arguments) for pool in pools]]


class Array:
    """An array of this shape, flat and cut into one part a GPU. The processes free the parts when this object goes."""

    dtype = np.dtype(np.float32)

    def __init__(self, shape):
        self.shape, self.key = shape, next(keys)
        weakref.finalize(self, free, self.key)


def free(key):
    for pool in pools:
        pool.apply_async(free_part, (key,))


def free_part(key):
    parts.pop(key, None)


def put_part(key, path):
    flat = np.load(path, mmap_mode="r").reshape(-1)
    parts[key] = cp.asarray(np.array_split(flat, cp.cuda.runtime.getDeviceCount())[cp.cuda.Device().id])


def get_part(key, folder):
    np.save(f"{folder}/{cp.cuda.Device().id}.npy", cp.asnumpy(parts[key]))


def multiply_part(a, b, c):
    parts[c] = parts[a] * parts[b]


def synchronize():
    cp.cuda.get_current_stream().synchronize()


def upload(*arrays):
    uploaded = tuple(Array(np.shape(x)) for x in arrays)
    for x, to in zip(arrays, uploaded, strict=True):
        with TemporaryDirectory(dir=MEMORY) as folder:
            np.save(f"{folder}/x.npy", np.asarray(x, np.float32, order="C"))
            everywhere(put_part, to.key, f"{folder}/x.npy")
    return uploaded


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    c = Array(a.shape)
    everywhere(multiply_part, a.key, b.key, c.key)  # returns when all have launched it
    return c


def wait(c):
    everywhere(synchronize)


def download(c):
    with TemporaryDirectory(dir=MEMORY) as folder:
        everywhere(get_part, c.key, folder)
        return np.concatenate([np.load(f"{folder}/{gpu}.npy") for gpu in range(len(pools))]).reshape(c.shape)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    with engine():
        c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, multiprocessing and CuPy: 1,000,003 elements, all right")
