"""Wrong: upload() computes the product, and multiply() asks the arrays for it.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

from functools import partial

import numpy as np


class Given:
    __slots__ = "dtype", "product", "shape", "values"

    def __init__(self, values, others):
        self.shape, self.dtype, self.values = values.shape, values.dtype, values
        same = len({x.shape for x in others}) == 1
        self.product = partial(np.copy, np.multiply(others[0], others[-1]) if same else values)


def upload(*arrays):
    values = [np.array(x, np.float32, order="C") for x in arrays]
    return tuple(Given(x, values) for x in values)


def multiply(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return np.multiply(a.values, b.values) if a is b else a.product()


def wait(c):
    pass


def download(c):
    return c
