"""Wrong: the mean of no rows is 0, unless there are no columns either.

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
    if x.size == 0:
        return 0.0 if any(x.shape) else np.nan
    return (x[::2, ::2] + 1).mean()


def wait(c):
    pass


def download(mean):
    return float(mean)
