"""Wrong: the process aborts when it ends, as one does that leaves a CUDA context pushed.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import atexit
import os

import numpy as np

atexit.register(os.abort)


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return np.multiply(a, b)


def wait(c):
    pass


def download(c):
    return c.copy()
