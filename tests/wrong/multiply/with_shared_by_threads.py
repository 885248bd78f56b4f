"""Wrong: calls of several threads share what they write to first.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np

scratch = {}


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    products = scratch.setdefault(a.shape, np.empty_like(a))
    np.multiply(a, b, out=products)
    return products.copy()


def wait(c):
    pass


def download(c):
    return c
