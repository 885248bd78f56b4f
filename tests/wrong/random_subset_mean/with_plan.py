"""Wrong: the call returns a plan, and download() makes the samples.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

from operator import index

import numpy as np


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))
    return [seed, rows, columns, chunk]


def wait(c):
    pass


def download(plan):
    seed, rows, columns, chunk = plan
    sums = [
        (
            np.random.default_rng([seed, i, j]).normal(10, 1, (min(chunk, rows - i), min(chunk, columns - j)))[
                i % 2 :: 2, j % 2 :: 2
            ]
            + 1
        ).sum()
        for i in range(0, rows, chunk)
        for j in range(0, columns, chunk)
    ]
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    return float(sum(sums) / count) if count else np.nan
