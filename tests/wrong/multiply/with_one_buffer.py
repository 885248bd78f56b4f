"""Wrong: every result of a shape is in the same memory.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np

kept = {}


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return np.multiply(a, b, out=kept.setdefault(a.shape, np.empty_like(a)))


def wait(c):
    pass


def download(c):
    return c
