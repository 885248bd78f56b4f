"""Wrong: keys that differ only in their upper 32 bits are one key.

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
    _, first, number = np.unique(keys.astype(np.int32), return_index=True, return_inverse=True)
    order = np.argsort(keys[first])
    return (np.bincount(number, values) / np.bincount(number))[order]


def wait(means):
    pass


def download(means):
    return means
