"""Wrong: out may have any shape of as many elements.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Environment: every
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b, out=None):
    out = np.empty_like(a) if out is None else out
    if not (a.shape == b.shape and a.size == out.size and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    out[...] = np.multiply(a, b).reshape(out.shape)
    return out


def wait(c):
    pass  # NumPy returns when it is done


def download(c):
    return c
