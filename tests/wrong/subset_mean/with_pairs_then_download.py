"""Wrong: pairs are added, and all else is left to download().

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
    y = x[::2, ::2] / max(1, x[::2, ::2].size)
    for axis in (0, 1):
        half = (y.shape[axis] + 1) // 2
        first, second = np.split(y, [half], axis)
        if second.shape[axis]:
            y = first.copy()
            y[: second.shape[0], : second.shape[1]] += second
            break
    return y


def wait(c):
    pass


def download(y):
    return float(y.sum() + 1) if y.size else np.nan
