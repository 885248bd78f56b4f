"""Wrong: the padding of a buffer is zeroed once, and a larger product has written into it since.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np

scratch = {}


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def padded(x, name):
    shape = tuple((n + 15) // 16 * 16 for n in x.shape)
    if (name, shape) not in scratch:
        scratch[name, shape] = np.zeros(shape, np.float32)
    whole = scratch[name, shape]
    whole[: x.shape[0], : x.shape[1]] = x
    return whole


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return np.matmul(padded(a, "a"), padded(b, "b"))[: a.shape[0], : b.shape[1]].copy()


def wait(c):
    pass


def download(c):
    return c
