"""Mean of a subset of random samples in Dask as it was first told: NumPy's RandomState makes the chunks, on threads.

Framework: Dask
Runs on: CPU
Install: pip install "dask[complete]"
Follows: https://blog.dask.org/2019/01/03/dask-array-gpus-first-steps
Engine: Dask, threads

Each chunk has a generator of its own, and Dask makes 624 words of 32 bits for its seed: of n chunks, two have the same
samples with a probability of n (n - 1) / 2 / 2**19968. That is below 1e-6000 for the 100 chunks of 100,000².
RandomState is NumPy's older generator, which NumPy keeps as it is.
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
    x = da.random.RandomState(seed).normal(10, 1, (rows, columns), chunks=chunk)  # another generator for each chunk
    return (x[::2, ::2] + 1).mean().persist(scheduler="threads")


def wait(mean):
    pass  # persist returns when the threads are done


def download(mean):
    return float(mean.compute(scheduler="threads"))


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Dask with NumPy's RandomState: 4,000 × 4,000 samples, all right")
