"""Wrong: a view that is not in one piece is copied, and only the copy is changed.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def increment(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    flat = a.reshape(-1)
    flat += 1
    return flat.reshape(a.shape)


def wait(c):
    pass


def download(c):
    return c
