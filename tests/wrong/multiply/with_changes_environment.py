"""Wrong: an environment variable stays set.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import os

import numpy as np

os.environ["OMP_NUM_THREADS"] = "3"


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return np.multiply(a, b)


def wait(c):
    pass


def download(c):
    return c.copy()
