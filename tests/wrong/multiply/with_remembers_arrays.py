"""Wrong: a result is kept by the identity of the arrays.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np

kept = {}  # with the arrays, so that no other gets their identity


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    key = id(a), id(b)
    if key not in kept:
        kept[key] = a, b, a * b
    return kept[key][2]


def wait(c):
    pass


def download(c):
    return c
