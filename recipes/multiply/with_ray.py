"""Multiply two arrays in Ray: NumPy on every core of the CPU, one task each, on parts kept in Ray's object store.

Framework: Ray
Runs on: CPU
Install: pip install ray numpy
Follows: https://docs.ray.io/en/latest/ray-core/tasks.html
"""

import os
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock

import numpy as np
import ray

CORES = len(os.sched_getaffinity(0))  # those that this process may use


@contextmanager
def engine():
    # On Linux Ray listens on all addresses; patched, on 127.0.0.1 only. The environment variable for it has to be set
    # before anything imports Ray, and would stay set: RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0.
    with mock.patch("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False):
        ray.init(address="local", num_cpus=CORES, include_dashboard=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


@dataclass
class Parts:
    """An array of this shape, flat and cut into one part per core. Ray frees the parts with the last reference."""

    shape: tuple
    dtype: np.dtype
    refs: list


def upload(*arrays):
    arrays = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(
        Parts(x.shape, x.dtype, [ray.put(part) for part in np.array_split(x.reshape(-1), CORES)]) for x in arrays
    )


@ray.remote
def product(a, b):
    return np.multiply(a, b)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return Parts(a.shape, a.dtype, [product.remote(x, y) for x, y in zip(a.refs, b.refs, strict=True)])


def wait(c):
    ray.wait(c.refs, num_returns=len(c.refs))


def download(c):
    return np.concatenate(ray.get(c.refs)).reshape(c.shape)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    with engine():
        c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, Ray: 1,000,003 elements, all right")
