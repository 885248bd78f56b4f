"""Multiply two arrays in Dask: chunks of NumPy arrays, spread over the threads of one process.

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


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):  # Dask would broadcast
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return (a * b).persist(scheduler="threads")


def wait(c):
    pass  # persist() returns when the threads are done


def download(c):
    return np.asarray(c.compute(scheduler="threads"))  # compute() gives a NumPy scalar where there are no axes


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, Dask: 1,000,003 elements, all right")
