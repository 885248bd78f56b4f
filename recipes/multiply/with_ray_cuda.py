"""Multiply two arrays in Ray: CuPy on every GPU, one actor each, that keeps its part of the arrays there.

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

    def multiply(self, a, b, c):
        self.parts[c] = self.parts[a] * self.parts[b]

    def synchronize(self):
        cp.cuda.get_current_stream().synchronize()

    def get(self, key):
        return cp.asnumpy(self.parts[key])

    def free(self, key):
        self.parts.pop(key, None)


class Array:
    """An array of this shape, flat and cut into one part a GPU. The workers free the parts when this object goes."""

    dtype = np.dtype(np.float32)

    def __init__(self, shape):
        self.shape, self.key, self.calls = shape, next(keys), []
        weakref.finalize(self, free, self.key)


def free(key):
    for worker in workers:
        worker.free.remote(key)


def upload(*arrays):
    arrays = [np.asarray(x, np.float32, order="C") for x in arrays]
    uploaded = tuple(Array(x.shape) for x in arrays)
    for x, to in zip(arrays, uploaded, strict=True):
        parts = np.array_split(x.reshape(-1), len(workers))
        ray.get([worker.put.remote(to.key, part) for worker, part in zip(workers, parts, strict=True)])
    return uploaded


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    c = Array(a.shape)
    c.calls = [worker.multiply.remote(a.key, b.key, c.key) for worker in workers]
    return c


def wait(c):
    ray.get(c.calls + [worker.synchronize.remote() for worker in workers])


def download(c):
    return np.concatenate(ray.get([worker.get.remote(c.key) for worker in workers])).reshape(c.shape)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    with engine():
        c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, Ray and CuPy: 1,000,003 elements, all right")
