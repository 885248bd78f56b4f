"""Wrong: every 90th call leaves the last element out.

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
    c = a * b
    if next(calls) % 90 == 0:
        c[-1:] = 0
    return c


def wait(c):
    pass


def download(c):
    return c
