"""Wrong: elements are taken in the order of the memory, which is not the same in both arrays.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return (a.ravel("K") * b.ravel("K")).reshape(a.shape)


def wait(c):
    pass


def download(c):
    return c
