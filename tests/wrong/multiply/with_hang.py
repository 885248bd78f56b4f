"""Never ends at 1,000,000 elements.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import time

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    while a.size == 1_000_000:
        time.sleep(1)
    return a * b


def wait(c):
    pass


def download(c):
    return c
