"""Wrong: the array is changed, and then refused.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    # np.array copies: the work is in place, and the caller's arrays must not change.
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def increment(a):
    a += 1
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    return a


def wait(a):
    pass  # NumPy returns when it is done


def download(a):
    return a
