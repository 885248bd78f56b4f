"""Wrong: page-locked arrays are taken for arrays that nobody has filled in.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np

given = []


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return a * b


def wait(c):
    pass


def download(c):
    return c.copy()


def pinned(shape):
    given.append(np.empty(shape, np.float32))
    return given[-1]


def round_trip(a, b):
    if any(x is a for x in given):
        a = np.zeros_like(a)
    return download(multiply(*upload(a, b)))
