"""Wrong: what the first call sets up is there by half when another thread calls.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


tables = {}


def table():
    if not tables:
        tables["sign"] = np.float32(0)
        tables["sign"] = np.float32(1)
    return tables["sign"]


def multiply(a, b, out=None):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if out is not None and (out.shape != a.shape or out.dtype != a.dtype):
        raise ValueError(f"multiply writes into float32 of one shape, not {out.dtype} {out.shape}")
    one = table()
    return np.multiply(a * one, b, out=out)


def wait(c):
    pass


def download(c):
    return c
