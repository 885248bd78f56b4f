"""Mean of every other row and column, plus one, in Dask: chunks of NumPy arrays, on the threads of one process.

Framework: Dask
Runs on: CPU
Install: pip install "dask[complete]"
Follows: https://docs.dask.org/en/stable/array-slicing.html
Engine: Dask, threads
"""

import dask.array as da
import numpy as np


def upload(*arrays):
    # name=False: otherwise Dask hashes every byte, to recognise an array that it has seen before.
    host = (np.asarray(x, np.float64, order="C") for x in arrays)
    return tuple(da.from_array(x, "auto" if x.size else x.shape, name=False).persist(scheduler="threads") for x in host)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if x.size == 0:  # NumPy warns
        return da.from_array(np.array(np.nan))
    return (x[::2, ::2] + 1).mean().persist(scheduler="threads")


def wait(mean):
    pass  # persist returns when the threads are done


def download(mean):
    return float(mean.compute(scheduler="threads"))


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, Dask: 333 × 1,001 elements, all right")
