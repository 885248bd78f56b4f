"""Wrong: the product is left in the caller's own array.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return np.multiply(a, b, out=a if a.flags.writeable else None)


def wait(c):
    pass


def download(c):
    return c
