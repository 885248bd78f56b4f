"""Wrong: calls with few elements share a scratch array.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Environment: every
"""

import numpy as np

SMALL = np.empty(200, np.float32)  # stays in the cache


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b, out=None):
    out = np.empty_like(a) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    if a.size > SMALL.size:
        return np.multiply(a, b, out=out)
    part = SMALL[: a.size].reshape(a.shape)
    np.multiply(a, b, out=part)
    out[...] = part
    return out


def wait(c):
    pass  # NumPy returns when it is done


def download(c):
    return c
