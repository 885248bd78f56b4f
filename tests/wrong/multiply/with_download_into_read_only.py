"""Wrong: download writes into memory that is read-only.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import ctypes

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
    if not (out.shape == c.shape and out.dtype == np.float32 and out.flags.c_contiguous):
        raise ValueError(f"not {out.dtype} {out.shape}")
    ctypes.memmove(out.ctypes.data, c.ctypes.data, c.nbytes)
    return out
