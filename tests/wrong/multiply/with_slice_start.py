"""Wrong: takes the start of the whole array for the start of a slice of it.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def from_start(x):
    return x if x.base is None else x.base.reshape(-1)[: x.size].reshape(x.shape)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return from_start(a) * from_start(b)


def wait(c):
    pass


def download(c):
    return c.copy()
