"""Wrong: all that prepared() returns for one shape shares its result.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


outs = {}


def multiply(a, b, out=None):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if out is not None and (out.shape != a.shape or out.dtype != a.dtype):
        raise ValueError(f"multiply writes into float32 of one shape, not {out.dtype} {out.shape}")
    return np.multiply(a, b, out=out)


def prepared(a, b, out=None):
    if out is None:
        if len(outs) > 8:
            outs.clear()
        out = outs.setdefault(a.shape, np.empty_like(a))
    multiply(a, b, out)
    return lambda: np.multiply(a, b, out=out)


def wait(c):
    pass


def download(c):
    return c
