"""Wrong: arrays of 1,000 to 65,535 elements are taken in rows of 64, without what is left.

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
    out = np.zeros_like(a)
    x, y, z = (v.reshape(-1) for v in (a, b, out))
    whole = x.size // 64 * 64 if 1_000 <= x.size < 65_536 else x.size
    np.multiply(x[:whole], y[:whole], out=z[:whole])
    return out


def wait(c):
    pass


def download(c):
    return c
