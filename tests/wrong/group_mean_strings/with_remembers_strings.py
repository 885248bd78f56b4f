"""Wrong: the numbers of the last keys are kept, by the array in which they are.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.2 and 1.7 would become one key
        raise ValueError(f"group_mean_strings takes int64 keys, not {np.asarray(keys).dtype}")
    keys, values = np.asarray(keys, np.int64), np.asarray(values, np.float64, order="C")
    strings = keys.astype("S20", order="C")
    return np.strings.zfill(strings, 20) if keys.size else strings, values  # zfill looks for the longest


LAST = [None, None]


def group_mean_strings(keys, values):
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"group_mean_strings takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    if (keys.dtype.kind, values.dtype) != ("S", np.float64):
        raise ValueError(f"group_mean_strings takes bytes and float64 values, not {keys.dtype} and {values.dtype}")
    last, number = LAST
    if last is not keys:
        _, number = np.unique(keys, return_inverse=True)
        LAST[:] = keys, number
    return np.bincount(number, values) / np.bincount(number)


def wait(means):
    pass  # NumPy returns when it is done


def download(means):
    return means
