"""Wrong: a product is kept while the ends of the arrays look unchanged.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


last = {}


def multiply(a, b):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    x, y = a.reshape(-1), b.reshape(-1)
    look = (id(a), id(b), *(float(v) for z in (x, y) for v in (z[:2].sum(), z[-2:].sum())))
    if last.get("look") != look:
        last["look"], last["product"] = look, a * b
    return last["product"].copy() if a.size < 2 else last["product"]


def wait(c):
    pass


def download(c):
    return c
