"""Wrong: the last product is kept by the bytes of its factors, and copies of it are given.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

from functools import lru_cache

import numpy as np


@lru_cache(maxsize=1)
def product(a, b, m, k, n):
    return np.frombuffer(a, np.float32).reshape(m, k) @ np.frombuffer(b, np.float32).reshape(k, n)


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def matmul(a, b, out=None):
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32
    if right and out is not None:
        right = out.shape == (a.shape[0], b.shape[1]) and out.dtype == np.float32
    if not right:
        raise ValueError(
            f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            + ("" if out is None else f" into {out.dtype} {out.shape}")
        )
    if out is not None:
        return np.matmul(a, b, out=out)
    return product(a.tobytes(), b.tobytes(), *a.shape, b.shape[1]).copy()


def wait(c):
    pass  # NumPy returns when it is done


def download(c):
    return c
