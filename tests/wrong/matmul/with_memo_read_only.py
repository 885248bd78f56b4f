"""Wrong: what was computed is kept by the contents of the factors, and cannot be written to.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np

LAST = {}


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
    key = a.tobytes(), b.tobytes(), a.shape, b.shape
    found = LAST.get(key)
    if found is None:
        found = np.matmul(a, b)
        found.flags.writeable = False
        LAST.clear()
        LAST[key] = found
    return found


def wait(c):
    pass  # NumPy returns when it is done


def download(c):
    return c
