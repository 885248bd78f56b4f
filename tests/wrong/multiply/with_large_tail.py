"""Wrong: arrays of 2**17 elements and more are taken in eights, without what is left.

Framework: Numba
Runs on: CPU
Install: pip install numba numpy
"""

import numpy as np
from numba import njit, prange


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


@njit("void(float32[::1], float32[::1], float32[::1])", parallel=True)
def eights(a, b, c):
    for i in prange(a.size // 8):
        for j in range(8 * i, 8 * i + 8):
            c[j] = a[j] * b[j]


def multiply(a, b):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    out = np.zeros(a.shape, np.float32)
    if a.size < 2**17:
        return np.multiply(a, b, out=out)
    eights(a.reshape(-1), b.reshape(-1), out.reshape(-1))
    return out


def wait(c):
    pass


def download(c):
    return c
