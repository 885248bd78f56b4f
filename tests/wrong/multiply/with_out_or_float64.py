"""Wrong: an out of float64 is taken, too.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b, out=None):
    out = np.empty_like(a) if out is None else out
    if not (
        a.shape == b.shape == out.shape and a.dtype == b.dtype == np.float32 and out.dtype in (np.float32, np.float64)
    ):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    return np.multiply(a, b, out=out)


def wait(c):
    pass  # NumPy returns when it is done


def download(c):
    return c
