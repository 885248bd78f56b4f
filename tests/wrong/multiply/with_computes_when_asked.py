"""Wrong: the result computes when NumPy asks for its values.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


class Product:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __array__(self, dtype=None, copy=None):
        return self.a * self.b


def multiply(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return Product(a, b)


def wait(c):
    pass


def download(c):
    return np.asarray(c)
