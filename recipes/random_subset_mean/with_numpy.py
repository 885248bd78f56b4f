"""Mean of a subset of random samples in NumPy, chunk by chunk: what every other recipe is compared with.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Follows: https://numpy.org/doc/stable/reference/random/parallel.html
Environment: every

Each chunk has a generator of its own, and NumPy takes 128 bits for its seed: of n chunks, two have the same samples
with a probability of n (n - 1) / 2 / 2**128. That is 1.5e-35 for the 100 chunks of 100,000².
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
            rng = np.random.default_rng([row, column, seed])  # another one for each chunk
            x = rng.normal(10, 1, shape)
            total += (x[row % 2 :: 2, column % 2 :: 2] + 1).sum()
            del x  # before the next chunk is made
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    return total / count if count else np.nan


def wait(mean):
    pass  # NumPy returns when it is done


def download(mean):
    return float(mean)


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, NumPy: 4,000 × 4,000 samples, all right")
