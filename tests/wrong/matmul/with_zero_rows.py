"""Wrong: rows of zeros are left out, whatever they are multiplied with.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Environment: every
"""

import numpy as np


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
    c = np.zeros((a.shape[0], b.shape[1]), np.float32) if out is None else out
    used = a.any(axis=1)  # a row of zeros gives zeros
    if used.all():
        return np.matmul(a, b, out=c)
    c[~used] = 0
    c[used] = a[used] @ b
    return c


def wait(c):
    pass  # NumPy returns when it is done


def download(c):
    return c
