"""Wrong: an empty array may have any dtype.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np

BLOCK = 2**16  # elements; a block stays in a core's cache


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def norm(x):
    if not x.size:
        return np.float32(0)
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    flat = x.reshape(-1)  # a view
    norms = [np.linalg.norm(flat[i : i + BLOCK]) for i in range(0, flat.size, BLOCK)]
    return np.linalg.norm(np.array(norms, np.float32))


def wait(norm):
    pass  # NumPy returns when it is done


def download(norm):
    return norm
