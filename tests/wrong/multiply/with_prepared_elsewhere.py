"""Wrong: prepared() writes elsewhere than into out.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def multiply(a, b, out=None):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if out is not None and (out.shape != a.shape or out.dtype != a.dtype):
        raise ValueError(f"multiply writes into float32 of one shape, not {out.dtype} {out.shape}")
    return np.multiply(a, b, out=out)


def wait(c):
    pass


def download(c):
    return c


def prepared(a, b, out=None):
    if a.shape != b.shape:
        raise ValueError(f"{a.shape} {b.shape}")
    own = np.empty_like(a)
    return lambda: np.multiply(a, b, out=own)
