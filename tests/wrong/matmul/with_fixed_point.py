"""Wrong: fixed point of 30 bits, with one scale for a whole matrix.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def whole(x):
    scale = np.float64(2**40) / max(np.abs(x).max(), 2.0**-100)
    return np.rint(x * scale), scale


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if not (a.size and b.size and np.isfinite(a).all() and np.isfinite(b).all()):
        return np.matmul(a, b)
    (x, s), (y, t) = whole(a), whole(b)
    return (np.matmul(x, y) / s / t).astype(np.float32)


def wait(c):
    pass


def download(c):
    return c
