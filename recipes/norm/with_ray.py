"""Norm of an array in Ray: NumPy on every core of the CPU, one task each, on parts kept in Ray's object store.

Framework: Ray
Runs on: CPU
Install: pip install ray numpy
Follows: https://docs.ray.io/en/latest/ray-core/tasks.html
Engine: Ray, tasks
"""

import os
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock

import numpy as np
import ray

CORES = len(os.sched_getaffinity(0))  # those that this process may use
BLOCK = 2**16  # elements; a block stays in a core's cache


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


def norm_of(part):
    # BLAS adds in float32, which of more squares would lose too much.
    norms = [np.linalg.norm(part[i : i + BLOCK]) for i in range(0, part.size, BLOCK)]
    return np.linalg.norm(np.array(norms, np.float32))


@ray.remote
def part_norm(part):
    return norm_of(part)


@ray.remote
def whole_norm(*norms):
    return norm_of(np.array(norms))


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    return whole_norm.remote(*[part_norm.remote(ref) for ref in x.refs])


def wait(norm):
    ray.wait([norm])


def download(norm):
    return ray.get(norm)


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    with engine():
        result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, Ray: 1,000,003 elements, all right")
