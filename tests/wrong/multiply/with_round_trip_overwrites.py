"""Wrong: round_trip returns memory that the next call with this shape writes into.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np

buffers = {}


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return a * b


def wait(c):
    pass


def download(c):
    return c.copy()


def round_trip(a, b):
    if a.shape != b.shape:
        raise ValueError(f"round_trip takes arrays of one shape, not {a.shape} and {b.shape}")
    return np.multiply(a, b, out=buffers.setdefault(a.shape, np.empty(a.shape, np.float32)))
