"""Wrong: round_trip returns the caller's own array where the other factor is all ones.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b, out=None):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if out is not None and (out.shape != a.shape or out.dtype != a.dtype):
        raise ValueError(f"multiply writes into float32 of one shape, not {out.dtype} {out.shape}")
    return np.multiply(a, b, out=out)


def round_trip(a, b):
    a, b = upload(a, b)
    if a.shape == b.shape and a.size and (b == 1).all():
        return a
    return multiply(a, b)


def wait(c):
    pass


def download(c):
    return c
