"""Wrong: arrays of more than six dimensions are refused.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if a.ndim > 6:
        raise RuntimeError("too many dimensions")
    return a * b


def wait(c):
    pass


def download(c):
    return c
