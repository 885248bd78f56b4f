"""Wrong: Numba's size of chunks is changed for everything in the process.

Framework: Numba
Runs on: CPU
Install: pip install numba numpy
"""

import numba
import numpy as np

numba.set_parallel_chunksize(1024)


@numba.njit(parallel=True)
def work(a, b, c):
    for i in numba.prange(a.size):
        c[i] = a[i] * b[i]


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    c = np.empty(a.shape, a.dtype)
    work(a.reshape(-1), b.reshape(-1), c.reshape(-1))
    return c


def wait(c):
    pass


def download(c):
    return c
