"""Wrong: whole blocks of 256 only, as of a grid that was rounded down.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    out = np.zeros_like(a)
    whole = a.size // 256 * 256
    np.multiply(a.ravel()[:whole], b.ravel()[:whole], out=out.ravel()[:whole])
    return out


def wait(c):
    pass


def download(c):
    return c
