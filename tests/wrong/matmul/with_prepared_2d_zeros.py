"""Wrong: what prepared() returns leaves out rows of zeros, and with them NaN.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
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
    return np.matmul(a, b, out=out)


def prepared(a, b):
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32
    if not right:
        raise ValueError(f"not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    out = np.zeros((len(a), b.shape[1]), np.float32)

    def replay():
        rows = (a != 0).any(axis=1)
        out[...] = 0
        out[rows] = a[rows] @ b
        return out

    return replay


def wait(c):
    pass  # NumPy returns when it is done


def download(c):
    return c
