"""Wrong: download fills an array in the order of its memory.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"not {a.dtype} {a.shape} {b.dtype} {b.shape}")
    return a * b


def wait(c):
    pass


def download(c, out=None):
    if out is None:
        return c
    if not (out.shape == c.shape and out.dtype == np.float32):
        raise ValueError(f"not {out.dtype} {out.shape}")
    out.ravel(order="K")[:] = c.ravel()
    return out
