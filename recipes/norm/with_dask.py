"""Norm of an array in Dask: its own function, as in NumPy, on chunks of NumPy arrays and the threads of one process.

Framework: Dask
Runs on: CPU
Install: pip install "dask[complete]"
Follows: https://docs.dask.org/en/stable/generated/dask.array.linalg.norm.html
Engine: Dask, threads
"""

import dask.array as da
import numpy as np


def upload(*arrays):
    # name=False, or Dask hashes every byte, to recognise an array that it has seen before.
    host = (np.asarray(x, np.float32, order="C") for x in arrays)
    return tuple(da.from_array(x, "auto" if x.size else x.shape, name=False).persist(scheduler="threads") for x in host)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    return da.linalg.norm(x.ravel()).persist(scheduler="threads")  # ravel: it takes two axes at most


def wait(norm):
    pass  # persist() returns when the threads are done


def download(norm):
    return norm.compute(scheduler="threads")


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, Dask: 1,000,003 elements, all right")
