"""Mean of a subset of random samples in Dask: da.random's chunks of NumPy arrays, one process per core.

Framework: Dask
Runs on: CPU
Install: pip install "dask[complete]"
Follows: https://docs.dask.org/en/stable/deploying-python.html
Engine: Dask, futures

Each chunk has a generator of its own, and NumPy takes 128 bits for its seed: of n chunks, two have the same samples
with a probability of n (n - 1) / 2 / 2**128. That is 1.5e-35 for the 100 chunks of 100,000².
"""

import os
from contextlib import contextmanager, nullcontext
from operator import index
from uuid import uuid4

import dask.array as da
import distributed
import numpy as np


@contextmanager
def engine(address=None):
    """One process per core of this machine; or the workers of the scheduler at this address."""
    if address is None:
        cores = len(os.sched_getaffinity(0))
        start = distributed.LocalCluster(n_workers=cores, threads_per_worker=1, dashboard_address="127.0.0.1:0")
    else:
        start = nullcontext(address)
    with start as cluster, distributed.Client(cluster):
        yield


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if rows * columns == 0:  # NumPy warns
        return da.from_array(np.array(np.nan))
    x = da.random.default_rng(seed).normal(10, 1, (rows, columns), chunks=chunk)  # another generator for each chunk
    # A name of its own, or Dask answers a second call with the result of the first.
    return (x[::2, ::2] + 1).mean().map_blocks(lambda mean: mean, name=f"random_subset_mean-{uuid4()}").persist()


def wait(mean):
    distributed.wait(mean)


def download(mean):
    return float(mean.compute())


if __name__ == "__main__":
    with engine():
        mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Dask in processes: 4,000 × 4,000 samples, all right")
