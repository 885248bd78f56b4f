"""Wrong: all squares are added to eight numbers in float32, each of which is too large for the last of them.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    flat = x.reshape(-1)
    sums = [np.cumsum(part * part, dtype=np.float32)[-1] for part in (flat[i::8] for i in range(8)) if part.size]
    return np.sqrt(np.sum(sums, dtype=np.float32))


def wait(norm):
    pass


def download(norm):
    return norm
