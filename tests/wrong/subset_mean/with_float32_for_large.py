"""Wrong: more than 2**21 numbers are added in float32.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float64, order="C") for x in arrays)


def subset_mean(x):
    if len(x.shape) != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    subset = x[::2, ::2]
    if not subset.size:
        return np.nan
    return float(np.mean(subset + 1, dtype=np.float32 if subset.size > 2**21 else np.float64))


def wait(c):
    pass


def download(mean):
    return float(mean)
