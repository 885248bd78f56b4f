"""Mean of every other row and column, plus one, in Ray: NumPy on every core of the CPU, one task each, on parts kept in
Ray's object store.

Framework: Ray
Runs on: CPU
Install: pip install ray numpy
Follows: https://docs.ray.io/en/latest/ray-core/objects.html
Engine: Ray, tasks
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
    # On Linux, where other machines may join, Ray listens on all addresses; elsewhere on 127.0.0.1 only. No argument of
    # ray.init changes that, and the environment variable behind this constant is read when ray is imported.
    with mock.patch("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False):
        ray.init(address="local", num_cpus=CORES, include_dashboard=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


@dataclass
class Parts:
    """An array of this shape, its rows cut into one part per core; Ray drops the parts when the references go."""

    shape: tuple
    dtype: np.dtype
    refs: list


def upload(*arrays):
    arrays = [np.asarray(x, np.float64, order="C") for x in arrays]
    return tuple(Parts(x.shape, x.dtype, [ray.put(part) for part in cut(x)]) for x in arrays)


def cut(x):
    """Each part starts at an even row of the whole array, so that part[::2] is its part of the subset."""
    x = np.atleast_1d(x)
    return np.split(x, [len(x) * core // (2 * CORES) * 2 for core in range(1, CORES)])


@ray.remote
def part_sum(part):
    return (part[::2, ::2] + 1).sum()


@ray.remote
def total_mean(count, *sums):
    return sum(sums) / count if count else np.nan


def subset_mean(x):
    if len(x.shape) != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    count = ((x.shape[0] + 1) // 2) * ((x.shape[1] + 1) // 2)
    return total_mean.remote(count, *[part_sum.remote(ref) for ref in x.refs])


def wait(mean):
    ray.wait([mean])


def download(mean):
    return float(ray.get(mean))


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    with engine():
        mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, Ray: 333 × 1,001 elements, all right")
