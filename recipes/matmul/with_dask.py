"""Multiply two matrices in Dask: chunks of NumPy arrays, multiplied in pairs with BLAS on the threads of a process.

Framework: Dask
Runs on: CPU
Install: pip install "dask[complete]"
Follows: https://docs.dask.org/en/stable/generated/dask.array.matmul.html
"""

import dask.array as da
import numpy as np


def upload(*arrays):
    # name=False: otherwise Dask hashes every byte, to recognise an array that it has seen before.
    host = (np.asarray(x, np.float32, order="C") for x in arrays)
    return tuple(da.from_array(x, "auto" if x.size else x.shape, name=False).persist(scheduler="threads") for x in host)


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return (a @ b).persist(scheduler="threads")


def wait(c):
    pass  # persist returns when the threads are done


def download(c):
    return c.compute(scheduler="threads")


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, Dask: 200×200×200, all right")
