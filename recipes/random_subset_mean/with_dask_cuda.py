"""Mean of a subset of random samples in Dask with CuPy as its array library: chunks on every GPU.

Framework: Dask
Runs on: every NVIDIA GPU
Install: pip install "dask-cuda[cu13]" "cupy-cuda13x[ctk]" rmm-cu13
Follows: https://docs.dask.org/en/stable/generated/dask.array.random.default_rng.html
Engine: Dask, futures

Each chunk has a generator of its own, and CuPy takes 32 bits for its seed: of n chunks, two have the same samples with
a probability of n (n - 1) / 2 / 2**32. That is 1.2e-6 for the 100 chunks of 100,000².
"""

from contextlib import contextmanager, nullcontext
from operator import index
from uuid import uuid4

import cupy as cp
import dask.array as da
import distributed
import numpy as np
from dask_cuda import LocalCUDACluster


@contextmanager
def engine(address=None):
    """One worker per GPU of this machine; or those of the scheduler at this address, one GPU each."""
    # Before anything here uses CUDA, as a generator does.
    start = LocalCUDACluster(dashboard_address="127.0.0.1:0") if address is None else nullcontext(address)
    with start as cluster, distributed.Client(cluster):
        yield


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if rows * columns == 0:
        return distributed.default_client().compute(da.from_array(np.array(np.nan)))

    # Not dask.config.set({"array.backend": "cupy"}), which all threads of a program share.
    rng = da.random.default_rng(cp.random.default_rng(seed))
    x = rng.standard_normal((rows, columns), chunks=chunk) + 10  # CuPy's Generator has no normal(10, 1)
    mean = (x[::2, ::2] + 1).mean()
    # To the host on the worker. A name of its own: else Dask may answer a second call with what it keeps of the first.
    return distributed.default_client().compute(mean.map_blocks(cp.asnumpy, name=f"random_subset_mean-{uuid4()}"))


def wait(mean):
    distributed.wait(mean)


def download(mean):
    return float(mean.result())


if __name__ == "__main__":
    with engine():
        mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Dask with CuPy on every GPU: 4,000 × 4,000 samples, all right")
