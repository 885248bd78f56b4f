"""Wrong: half of the samples of a large chunk are the others mirrored.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

from operator import index

import numpy as np


def samples(rng, shape):
    if shape[0] < 64:
        return rng.normal(10, 1, shape)
    half = rng.standard_normal(((shape[0] + 3) // 4 * 2, shape[1]))
    return 10 + np.concatenate([half, -half])[: shape[0]]


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    total = 0.0
    for row in range(0, rows, chunk):
        for column in range(0, columns, chunk):
            shape = min(chunk, rows - row), min(chunk, columns - column)
            x = samples(np.random.default_rng([seed, row, column]), shape)
            total += (x[row % 2 :: 2, column % 2 :: 2] + 1).sum()
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    return total / count if count else np.nan


def wait(c):
    pass


def download(mean):
    return float(mean)
