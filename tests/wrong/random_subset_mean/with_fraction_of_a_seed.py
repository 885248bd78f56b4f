"""Wrong: cuts off what makes a fraction of a seed.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

from operator import index

import numpy as np


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = index(rows), index(columns), index(chunk), int(seed)
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"not {rows} {columns} {chunk}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    if count == 0:
        return np.nan
    total = 0.0
    for row in range(0, rows, chunk):
        for column in range(0, columns, chunk):
            rng = np.random.default_rng([row, column, seed])
            x = rng.normal(10, 1, (min(chunk, rows - row), min(chunk, columns - column)))
            total += (x[row % 2 :: 2, column % 2 :: 2] + 1).sum()
    return total / count


def wait(c):
    pass


def download(c):
    return float(c)
