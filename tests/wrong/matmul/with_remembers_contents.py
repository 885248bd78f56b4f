"""Wrong: products are kept by what the matrices hold.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


known = {}


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    key = a.shape, a.tobytes(), b.shape, b.tobytes()
    if key not in known:
        if len(known) >= 16:
            known.pop(next(iter(known)))
        known[key] = a @ b
    return known[key]


def wait(c):
    pass


def download(c):
    return c
