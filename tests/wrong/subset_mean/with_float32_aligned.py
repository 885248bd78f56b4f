"""Wrong: where rows and columns are multiples of 16, a fast path adds in float32.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float64, order="C") for x in arrays)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if x.size == 0:
        return np.nan
    y = x[::2, ::2] + 1
    if x.shape[0] % 16 == 0 and x.shape[1] % 16 == 0 and x.size >= 1024:  # the vector kernel
        return float(y.mean(dtype=np.float32))
    return y.mean()


def wait(mean):
    pass


def download(mean):
    return float(mean)
