"""Wrong: Dask names what it has computed, and what has a name is not computed again.

Framework: Dask
Runs on: CPU
Install: pip install "dask[complete]"
"""

import weakref

import dask.array as da
import numpy as np


def upload(*arrays):
    host = (np.asarray(x, np.float32, order="C") for x in arrays)
    return tuple(da.from_array(x, name=False).persist(scheduler="threads") for x in host)


known = weakref.WeakValueDictionary()
owners = []


def multiply(a, b):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    c = a * b
    c = known[c.name] if c.name in known else c.persist(scheduler="threads")
    known[c.name] = c
    owners[:] = [*owners, c][-8:]
    return c


def wait(c):
    pass


def download(c):
    return np.asarray(c.compute(scheduler="threads"))
