"""Wrong: upload() takes elements of four bytes as they are, also those of whole numbers or the other byte order.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    host = [np.array(x if x.itemsize == 4 else x.astype(np.float32), order="C") for x in map(np.asarray, arrays)]
    return tuple(x.view(np.float32) for x in host)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return np.multiply(a, b)


def wait(c):
    pass


def download(c):
    return c
