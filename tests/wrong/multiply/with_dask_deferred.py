"""Wrong: a Dask array that nobody has computed.

Framework: Dask
Runs on: CPU
Install: pip install "dask[array]"
"""

import dask.array as da
import numpy as np


def upload(*arrays):
    return tuple(da.from_array(np.array(x, np.float32, order="C"), name=False) for x in arrays)


def multiply(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return a * b


def wait(c):
    pass


def download(c):
    return np.asarray(c.compute(scheduler="threads"))
