"""Wrong: results come from a ring of four arrays for each shape.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

from functools import cache
from itertools import cycle

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


@cache
def ring(shape):
    return cycle([np.empty(shape, np.float32) for _ in range(4)])


def multiply(a, b):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return np.multiply(a, b, out=next(ring(a.shape)))


def wait(c):
    pass


def download(c):
    return c
