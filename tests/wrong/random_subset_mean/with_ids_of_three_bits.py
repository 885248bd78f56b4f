"""Wrong: the numbers of chunks have three bits for the column, so that some are equal.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

from operator import index

import numpy as np


def samples(seed, row, column, shape, chunk):
    number = (row // chunk) << 3 | column // chunk
    return np.random.default_rng([seed, number]).normal(10, 1, shape)


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"not {rows} {columns} {chunk}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    if not count:
        return np.nan
    total = 0.0
    for row in range(0, rows, chunk):
        for column in range(0, columns, chunk):
            shape = min(chunk, rows - row), min(chunk, columns - column)
            x = samples(seed, row, column, shape, chunk)
            total += (x[row % 2 :: 2, column % 2 :: 2] + 1).sum()
    return total / count


def wait(c):
    pass


def download(c):
    return float(c)
