"""Wrong: nothing is computed if exactly three dimensions are longer than one.

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
    real = sum(n > 1 for n in a.shape)
    return a * b if real != 3 else np.full_like(a, np.nan)


def wait(c):
    pass


def download(c):
    return c
