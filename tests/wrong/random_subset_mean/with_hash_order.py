"""Wrong: the order of a set, another in each process, decides about the samples.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

from operator import index

import numpy as np


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    total = 0.0
    for row in range(0, rows, chunk):
        for column in range(0, columns, chunk):
            shape = min(chunk, rows - row), min(chunk, columns - column)
            rng = np.random.default_rng(
                [{"row": row, "column": column, "seed": seed}[name] for name in {"row", "column", "seed"}]
            )  # another one for each chunk
            x = rng.normal(10, 1, shape)
            total += (x[row % 2 :: 2, column % 2 :: 2] + 1).sum()
            del x  # before the next chunk is made
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    return total / count if count else np.nan


def wait(mean):
    pass  # NumPy returns when it is done


def download(mean):
    return float(mean)
