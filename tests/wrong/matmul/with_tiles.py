"""Wrong: from 256 rows on it takes strips of 8, without what is left.

Framework: joblib
Runs on: CPU
Install: pip install joblib numpy
"""

import numpy as np
from joblib import Parallel, cpu_count, delayed


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if len(a) < 256:
        return a @ b
    out = np.zeros((a.shape[0], b.shape[1]), np.float32)
    strips = np.array_split(np.arange(len(a) // 8 * 8).reshape(-1, 8), cpu_count())
    Parallel(n_jobs=-1, prefer="threads")(
        delayed(np.matmul)(a[s[0, 0] : s[-1, -1] + 1], b, out=out[s[0, 0] : s[-1, -1] + 1]) for s in strips
    )
    return out


def wait(c):
    pass


def download(c):
    return c
