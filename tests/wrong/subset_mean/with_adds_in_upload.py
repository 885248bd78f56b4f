"""Wrong: upload() adds the one.

Framework: Dask
Runs on: CPU
Install: pip install "dask[complete]"
"""

import dask.array as da
import numpy as np


def upload(x):
    return ((da.from_array(np.array(x), name=False) + 1).persist(scheduler="threads"),)


def subset_mean(x):
    if len(x.shape) != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    return x[::2, ::2].mean().persist(scheduler="threads") if x.size else np.nan


def wait(c):
    pass


def download(mean):
    return float(mean)
