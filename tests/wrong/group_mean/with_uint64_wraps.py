"""Wrong: keys from 2**63 on become negative.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Environment: every
"""

import numpy as np


def upload(keys, values):
    if np.asarray(keys).dtype.kind not in "iu":  # 1.2 and 1.7 would become one key
        raise ValueError(f"group_mean takes int64 keys, not {np.asarray(keys).dtype}")
    return np.asarray(keys, np.int64, order="C"), np.asarray(values, np.float64, order="C")


def group_mean(keys, values):
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"group_mean takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    if (keys.dtype, values.dtype) != (np.int64, np.float64):
        raise ValueError(f"group_mean takes int64 keys and float64 values, not {keys.dtype} and {values.dtype}")
    _, number = np.unique(keys, return_inverse=True)
    return np.bincount(number, values) / np.bincount(number)


def wait(means):
    pass  # NumPy returns when it is done


def download(means):
    return means
