"""Mean of a subset of random samples in Dask: da.random's chunks of NumPy arrays, on the threads of one process.

Framework: Dask
Runs on: CPU
Install: pip install "dask[complete]"
Follows: https://docs.dask.org/en/stable/generated/dask.array.random.default_rng.html
Engine: Dask, threads

Each chunk has a generator of its own, and NumPy takes 128 bits for its seed: of n chunks, two have the same samples
with a probability of n (n - 1) / 2 / 2**128. That is 1.5e-35 for the 100 chunks of 100,000².
"""

from operator import index

import dask.array as da
import numpy as np


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if rows * columns == 0:  # NumPy warns
        return da.from_array(np.array(np.nan))
    x = da.random.default_rng(seed).normal(10, 1, (rows, columns), chunks=chunk)  # another generator for each chunk
    return (x[::2, ::2] + 1).mean().persist(scheduler="threads")


def wait(mean):
    pass  # persist returns when the threads are done


def download(mean):
    return float(mean.compute(scheduler="threads"))


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Dask: 4,000 × 4,000 samples, all right")
