"""Mean of a subset of random samples in Ray: NumPy on every core of the CPU, one task per chunk.

Framework: Ray
Runs on: CPU
Install: pip install ray numpy
Follows: https://docs.ray.io/en/latest/ray-core/tasks.html
Engine: Ray, tasks

Each chunk has a generator of its own, and NumPy takes 128 bits for its seed: of n chunks, two have the same samples
with a probability of n (n - 1) / 2 / 2**128. That is 1.5e-35 for the 100 chunks of 100,000².
"""

import os
from contextlib import contextmanager, nullcontext
from operator import index
from unittest import mock

import numpy as np
import ray


@contextmanager
def engine(address="local"):
    """Ray on this machine; or the one that runs at this address."""
    # On Linux, where other machines may join, Ray listens on all addresses; elsewhere on 127.0.0.1 only. No argument of
    # ray.init changes that, and the environment variable behind this constant is read when ray is imported.
    alone = mock.patch("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
    with alone if address == "local" else nullcontext():
        cores = len(os.sched_getaffinity(0)) if address == "local" else None
        ray.init(address=address, num_cpus=cores, include_dashboard=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


@ray.remote
def chunk_sum(row, column, shape, seed):
    """The sum of the subset of the chunk that starts at this row and column of the whole array."""
    rng = np.random.default_rng([row, column, seed])  # another one for each chunk
    x = rng.normal(10, 1, shape)
    return (x[row % 2 :: 2, column % 2 :: 2] + 1).sum()


@ray.remote
def total_mean(count, *sums):
    return sum(sums) / count if count else np.nan


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    sums = [
        chunk_sum.remote(row, column, (min(chunk, rows - row), min(chunk, columns - column)), seed)
        for row in range(0, rows, chunk)
        for column in range(0, columns, chunk)
    ]
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    return total_mean.remote(count, *sums)  # Ray starts it when all sums are there, and adds them in this order


def wait(mean):
    ray.wait([mean])


def download(mean):
    return float(ray.get(mean))


if __name__ == "__main__":
    with engine():
        mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Ray: 4,000 × 4,000 samples, all right")
