"""Wrong: where a chunk's subset starts, rows and columns are mixed up.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

from operator import index

import numpy as np


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))
    if rows < 0 or columns < 0 or chunk < 1 or seed < 0:
        raise ValueError(
            f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}, seed {seed}"
        )
    total = 0.0
    for row in range(0, rows, chunk):
        for column in range(0, columns, chunk):
            shape = min(chunk, rows - row), min(chunk, columns - column)
            rng = np.random.default_rng([row, column, seed])
            x = rng.normal(10, 1, shape)
            total += (x[column % 2 :: 2, row % 2 :: 2] + 1).sum()
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    return total / count if count else np.nan


def wait(c):
    pass


def download(c):
    return float(c)
