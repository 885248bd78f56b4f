"""Wrong: keys that are one number as float64 are one key.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.2 and 1.7 would become one key
        raise ValueError(f"group_mean takes int64 keys, not {np.asarray(keys).dtype}")
    return np.array(keys, np.int64, order="C"), np.array(values, np.float64, order="C")


def group_mean(keys, values):
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"group_mean takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    if (keys.dtype, values.dtype) != (np.int64, np.float64):
        raise ValueError(f"group_mean takes int64 keys and float64 values, not {keys.dtype} and {values.dtype}")
    table = np.column_stack((keys, values))  # of one dtype, which is float64
    _, number = np.unique(table[:, 0], return_inverse=True)
    return np.bincount(number, table[:, 1]) / np.bincount(number)


def wait(means):
    pass


def download(means):
    return means
