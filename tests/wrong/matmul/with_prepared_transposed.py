"""Wrong: prepared keeps the right factor in another order, as it was then.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return a @ b


def prepared(a, b):
    matmul(a, b)
    columns = b.copy(order="F")
    return lambda: a @ columns


def wait(c):
    pass


def download(c):
    return c
