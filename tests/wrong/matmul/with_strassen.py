"""Wrong: Strassen's algorithm for large even sizes, which rounds sums of elements.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def product(a, b):
    m, k, n = *a.shape, b.shape[1]
    if min(m, k, n) < 500 or m % 2 or k % 2 or n % 2:
        return np.matmul(a, b)
    (a11, a12), (a21, a22) = ((x[:, : k // 2], x[:, k // 2 :]) for x in (a[: m // 2], a[m // 2 :]))
    (b11, b12), (b21, b22) = ((x[:, : n // 2], x[:, n // 2 :]) for x in (b[: k // 2], b[k // 2 :]))
    m1, m2, m3 = product(a11 + a22, b11 + b22), product(a21 + a22, b11), product(a11, b12 - b22)
    m4, m5 = product(a22, b21 - b11), product(a11 + a12, b22)
    m6, m7 = product(a21 - a11, b11 + b12), product(a12 - a22, b21 + b22)
    return np.block([[m1 + m4 - m5 + m7, m3 + m5], [m2 + m4, m1 - m2 + m3 + m6]])


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return product(a, b)


def wait(c):
    pass


def download(c):
    return c
