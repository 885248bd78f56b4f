"""Add one to an array in Dask, chunks of NumPy arrays on the threads of one process: a new array, Dask has no in-place.

Framework: Dask
Runs on: CPU
Install: pip install "dask[complete]"
Follows: https://docs.dask.org/en/stable/array.html
"""

import dask.array as da
import numpy as np


def upload(*arrays):
    # name=False, or Dask hashes every byte, to recognise an array that it has seen before.
    host = (np.asarray(x, np.float32, order="C") for x in arrays)
    return tuple(da.from_array(x, "auto" if x.size else x.shape, name=False).persist(scheduler="threads") for x in host)


def increment(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    return (a + 1).persist(scheduler="threads")


def wait(a):
    pass  # persist() returns when the threads are done


def download(a):
    return np.asarray(a.compute(scheduler="threads"))  # compute() gives a NumPy scalar where there are no axes


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print("increment, Dask: 1,000,003 elements, all right")
