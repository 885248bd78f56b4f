"""Wrong: zeros are skipped in matrices, although zero times infinity is not a number.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if a.ndim < 2:
        return np.multiply(a, b)
    c = np.zeros_like(a)
    there = (a != 0) & (b != 0)  # many matrices are mostly zeros
    np.multiply(a, b, out=c, where=there)
    return c


def wait(c):
    pass


def download(c):
    return c
