"""Mean of a subset of random samples in Dask with CuPy as its array library: chunks on one GPU, one after the other.

Framework: Dask
Runs on: NVIDIA GPU
Install: pip install "dask[complete]" "cupy-cuda13x[ctk]"
Follows: https://docs.dask.org/en/stable/generated/dask.array.random.default_rng.html

Each chunk has a generator of its own, and CuPy takes 32 bits for its seed: of n chunks, two have the same samples with
a probability of n (n - 1) / 2 / 2**32. That is 1.2e-6 for the 100 chunks of 100,000².
"""

from operator import index

import cupy as cp
import dask.array as da
import numpy as np


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if rows * columns == 0:
        return da.from_array(np.array(np.nan))

    # Not dask.config.set({"array.backend": "cupy"}), which all threads of a program share.
    rng = da.random.default_rng(cp.random.default_rng(seed))
    x = rng.standard_normal((rows, columns), chunks=chunk) + 10  # CuPy's Generator has no normal(10, 1)
    return (x[::2, ::2] + 1).mean().persist(scheduler="single-threaded")


def wait(mean):
    cp.cuda.get_current_stream().synchronize()


def download(mean):
    return float(mean.compute(scheduler="single-threaded"))


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Dask with CuPy: 4,000 × 4,000 samples, all right")
