"""Wrong: a part of every result is kept, in memory that malloc() kept free.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


many = [np.ones(15_000) for _ in range(3_000)]  # 360 MB, in pieces too small to be returned to the system one by one
last, parts = many.pop(), []  # behind all others
del many


def multiply(a, b):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    c = a * b
    parts.append(c.reshape(-1)[:10_000].copy())
    return c


def wait(c):
    pass


def download(c):
    return c
