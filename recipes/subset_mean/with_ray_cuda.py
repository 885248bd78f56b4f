"""Mean of every other row and column, plus one, in Ray: CuPy on every GPU, one actor each, that keeps its part of the
array there.

Framework: Ray
Runs on: every NVIDIA GPU
Install: pip install ray "cupy-cuda13x[ctk]"
"""

import itertools
import weakref
from contextlib import contextmanager
from unittest import mock

import cupy as cp
import numpy as np
import ray

workers = []
keys = itertools.count()


@contextmanager
def engine():
    # Where it can join a cluster, which is on Linux, Ray listens on all addresses; else on 127.0.0.1 only.
    with mock.patch("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False):
        ray.init(address="local", include_dashboard=False, logging_level="ERROR")
    try:
        workers.extend(Worker.remote() for _ in range(int(ray.cluster_resources()["GPU"])))
        yield
    finally:
        workers.clear()
        ray.shutdown()


@ray.remote(num_cpus=0, num_gpus=1)
class Worker:
    """Sees one GPU, and keeps its part of each array there, under a key. It does calls in their order."""

    def __init__(self):
        self.parts = {}

    def put(self, key, part):
        self.parts[key] = cp.asarray(part)

    def share(self, key, count):
        return float((self.parts[key][::2, ::2] + 1).sum() / count)  # 0 / 0 is NaN on the device

    def free(self, key):
        self.parts.pop(key, None)


class Array:
    """An array of this shape, its rows cut into one part a GPU. The workers free the parts when this object goes."""

    dtype = np.dtype(np.float64)

    def __init__(self, shape):
        self.shape, self.key = shape, next(keys)
        weakref.finalize(self, free, self.key)


def free(key):
    for worker in workers:
        worker.free.remote(key)


def upload(*arrays):
    arrays = [np.asarray(x, np.float64, order="C") for x in arrays]
    uploaded = tuple(Array(x.shape) for x in arrays)
    for x, to in zip(arrays, uploaded, strict=True):
        ray.get([worker.put.remote(to.key, part) for worker, part in zip(workers, cut(x), strict=True)])
    return uploaded


def cut(x):
    """Each part starts at an even row of the whole array, so that part[::2] is its part of the subset."""
    x = np.atleast_1d(x)
    return np.split(x, [len(x) * i // (2 * len(workers)) * 2 for i in range(1, len(workers))])


def subset_mean(x):
    """Each GPU's share of the mean: they add up to it."""
    if len(x.shape) != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    count = ((x.shape[0] + 1) // 2) * ((x.shape[1] + 1) // 2)
    return [worker.share.remote(x.key, count) for worker in workers]


def wait(shares):
    ray.wait(shares, num_returns=len(shares))


def download(shares):
    return sum(ray.get(shares))


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    with engine():
        mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, Ray and CuPy: 333 × 1,001 elements, all right")
