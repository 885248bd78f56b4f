"""Wrong: each call makes a folder for temporary files that stays until the end.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import tempfile

import numpy as np

folders = []


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    folders.append(tempfile.TemporaryDirectory())
    return np.multiply(a, b)


def wait(c):
    pass


def download(c):
    return c.copy()
