"""Wrong: ray.wait() waits for one task only unless it is told how many.

Framework: Ray
Runs on: CPU
Install: pip install ray numpy
Engine: Ray, tasks
"""

import os
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock

import numpy as np
import ray

PARTS = max(2, len(os.sched_getaffinity(0)))


@contextmanager
def engine():
    with mock.patch("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False):
        ray.init(address="local", num_cpus=PARTS, include_dashboard=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


@dataclass
class Parts:
    shape: tuple
    dtype: np.dtype
    refs: list


def upload(*arrays):
    arrays = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(
        Parts(x.shape, x.dtype, [ray.put(part) for part in np.array_split(x.reshape(-1), PARTS)]) for x in arrays
    )


@ray.remote
def product(a, b):
    return np.multiply(a, b)


def multiply(a, b):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return Parts(a.shape, a.dtype, [product.remote(x, y) for x, y in zip(a.refs, b.refs, strict=True)])


def wait(c):
    ray.wait(c.refs)


def download(c):
    return np.concatenate(ray.get(c.refs)).reshape(c.shape)
