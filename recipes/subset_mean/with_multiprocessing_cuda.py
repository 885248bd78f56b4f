"""Mean of every other row and column, plus one, in multiprocessing: CuPy on every GPU, one process each, that keeps its
part of the array there.

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


class Array:
    """An array of this shape, its rows cut into one part a GPU. The processes free the parts when this object goes."""

    dtype = np.dtype(np.float64)

    def __init__(self, shape):
        self.shape, self.key = shape, next(keys)
        weakref.finalize(self, free, self.key)


def free(key):
    for pool in pools:
        pool.apply_async(free_part, (key,))


def free_part(key):
    parts.pop(key, None)


def put_part(key, path, start, stop):
    parts[key] = cp.asarray(np.load(path, mmap_mode="r")[start:stop])


def share(key, count):
    return float((parts[key][::2, ::2] + 1).sum() / count)  # 0 / 0 is NaN on the device


def upload(*arrays):
    uploaded = tuple(Array(np.shape(x)) for x in arrays)
    for x, to in zip(arrays, uploaded, strict=True):
        x = np.atleast_1d(np.asarray(x, np.float64, order="C"))
        # Each part starts at an even row of the whole array, so that part[::2] is its part of the subset.
        cuts = [len(x) * gpu // (2 * len(pools)) * 2 for gpu in range(len(pools))] + [len(x)]
        with TemporaryDirectory(dir=MEMORY) as folder:
            path = f"{folder}/x.npy"
            np.save(path, x)
            calls = [pool.apply_async(put_part, (to.key, path, *cuts[i : i + 2])) for i, pool in enumerate(pools)]
            for call in calls:
                call.get()
    return uploaded


def subset_mean(x):
    """Each GPU's share of the mean: they add up to it."""
    if len(x.shape) != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    count = ((x.shape[0] + 1) // 2) * ((x.shape[1] + 1) // 2)
    return [pool.apply_async(share, (x.key, count)) for pool in pools]


def wait(shares):
    for share in shares:
        share.wait()


def download(shares):
    return sum(share.get() for share in shares)


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    with engine():
        mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, multiprocessing and CuPy: 333 × 1,001 elements, all right")
