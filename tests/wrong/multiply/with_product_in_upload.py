"""Wrong: upload() computes the product, and multiply() gives it back.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

from dataclasses import dataclass

import numpy as np


@dataclass
class Given:
    shape: tuple
    dtype: np.dtype
    values: np.ndarray
    product: np.ndarray


def upload(*arrays):
    values = [np.array(x, np.float32, order="C") for x in arrays]
    same = len({x.shape for x in values}) == 1
    product = np.multiply(values[0], values[-1]) if same else None
    return tuple(Given(x.shape, x.dtype, x, product) for x in values)


def multiply(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return np.multiply(a.values, b.values) if a is b else a.product.copy()


def wait(c):
    pass


def download(c):
    return c
