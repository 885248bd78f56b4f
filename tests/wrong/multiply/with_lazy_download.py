"""Wrong: download() returns a Dask array that is not computed yet.

Framework: Dask
Runs on: CPU
Install: pip install "dask[complete]"
"""

import dask.array as da
import numpy as np


def upload(*arrays):
    host = (np.asarray(x, np.float32, order="C") for x in arrays)
    return tuple(da.from_array(x, name=False).persist(scheduler="threads") for x in host)


def multiply(a, b):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return (a * b).persist(scheduler="threads")


def wait(c):
    pass


def download(c):
    return c
