"""Wrong: from the 300th call on nothing is computed.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

from itertools import count

import numpy as np

calls = count(1)


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return a * b if next(calls) < 300 else np.empty_like(a)


def wait(c):
    pass


def download(c):
    return c
