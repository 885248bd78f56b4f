"""Wrong: of an out that is a slice, the element before it is written too.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def multiply(a, b, out=None):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if out is not None and out.shape != a.shape:
        raise ValueError(f"multiply takes an out of shape {a.shape}, not {out.shape}")
    if out is not None and out.base is not None:
        out.base[0] = 0
    return np.multiply(a, b, out=out)


def wait(c):
    pass


def download(c):
    return c.copy()
