"""Wrong: arrays of one length are broadcast.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Environment: every
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b, out=None):
    if a.ndim and b.ndim and len(a) != len(b) or a.size != b.size or not (a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if out is not None and (out.shape != a.shape or out.dtype != np.float32):
        raise ValueError(f"multiply takes an out of {a.dtype} {a.shape}, not {out.dtype} {out.shape}")
    return np.multiply(a, b, out=out)


def wait(c):
    pass  # NumPy returns when it is done


def download(c):
    return c
