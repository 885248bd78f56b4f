"""Mean of a subset of random samples in multiprocessing: NumPy on every core of the CPU, one process each, one task
per chunk.

Framework: multiprocessing
Runs on: CPU
Install: pip install numpy
Follows: https://docs.python.org/3/library/multiprocessing.html
Engine: multiprocessing, a pool

Each chunk has a generator of its own, and NumPy takes 128 bits for its seed: of n chunks, two have the same samples
with a probability of n (n - 1) / 2 / 2**128. That is 1.5e-35 for the 100 chunks of 100,000².
"""

import multiprocessing
import os
from contextlib import contextmanager
from operator import index

import numpy as np

pool = None


@contextmanager
def engine():
    global pool
    # Spawned, not forked: a fork copies locks that the threads of NumPy, CUDA or your own code may be holding.
    with multiprocessing.get_context("spawn").Pool(len(os.sched_getaffinity(0))) as pool:
        yield


def chunk_sum(row, column, shape, seed):
    """The sum of the subset of the chunk that starts at this row and column of the whole array."""
    rng = np.random.default_rng([row, column, seed])  # another one for each chunk
    x = rng.normal(10, 1, shape)
    return (x[row % 2 :: 2, column % 2 :: 2] + 1).sum()


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    tasks = [
        (row, column, (min(chunk, rows - row), min(chunk, columns - column)), seed)
        for row in range(0, rows, chunk)
        for column in range(0, columns, chunk)
    ]
    sums = pool.starmap(chunk_sum, tasks)  # in the order of the tasks, whoever is first
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    return sum(sums) / count if count else np.nan


def wait(mean):
    pass  # starmap returns when all tasks are done


def download(mean):
    return float(mean)


def empty_round(n, payload=None):
    """n tasks that do nothing, each given the payload: what the engine takes by itself."""
    for answer in [pool.apply_async(nothing, (payload,)) for _ in range(n)]:
        answer.get()


def nothing(payload):
    pass


if __name__ == "__main__":
    with engine():
        mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, multiprocessing: 4,000 × 4,000 samples, all right")
