"""Wrong: a large product is written into a flat copy of an out that has none.

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
    if a.size >= 2**20:
        flat = out.reshape(-1)
        for i in range(0, a.size, 2**16):
            np.multiply(a.reshape(-1)[i : i + 2**16], b.reshape(-1)[i : i + 2**16], out=flat[i : i + 2**16])
        return out
    return np.multiply(a, b, out=out)


def wait(c):
    pass  # NumPy returns when it is done


def download(c):
    return c
