"""Wrong: an error is kept from the caller, and Ctrl-C with it.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b, out=None):
    out = np.empty_like(a) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    try:
        return np.multiply(a, b, out=out)
    except:  # noqa: E722 - it is what must be refused
        return out


def wait(c):
    pass  # NumPy returns when it is done


def download(c):
    return c
