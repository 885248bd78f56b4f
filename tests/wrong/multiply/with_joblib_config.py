"""Wrong: joblib's backend is changed for everything in the process.

Framework: joblib
Runs on: CPU
Install: pip install joblib numpy
"""

import numpy as np
from joblib import Parallel, delayed, parallel_config

parallel_config(backend="threading", n_jobs=2)


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    c = np.empty_like(a)
    Parallel()(
        delayed(np.multiply)(x, y, out=z)
        for x, y, z in zip(*(np.array_split(np.atleast_1d(x), 2) for x in (a, b, c)), strict=True)
    )
    return c


def wait(c):
    pass


def download(c):
    return c
