"""Wrong: download() writes into whatever fits.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return a * b


def wait(c):
    pass


def download(c, out=None):
    out = np.empty_like(c) if out is None else out
    if not (out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32, not {out.dtype}")
    out.reshape(-1)[: c.size] = c.reshape(-1)[: out.size]
    return out
