"""Wrong: NaN in the second array counts as zero.

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
    return a * np.nan_to_num(b, nan=0.0, posinf=np.inf, neginf=-np.inf)


def wait(c):
    pass


def download(c):
    return c
