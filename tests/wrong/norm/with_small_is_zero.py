"""Wrong: the norm of small elements is 0.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Environment: every
"""

import numpy as np

BLOCK = 2**16  # elements; a block stays in a core's cache


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    flat = x.reshape(-1)  # a view
    norms = [np.linalg.norm(flat[i : i + BLOCK]) for i in range(0, flat.size, BLOCK)]
    total = np.linalg.norm(np.array(norms, np.float32))
    return np.float32(0) if total < 1e-17 else total


def wait(norm):
    pass  # NumPy returns when it is done


def download(norm):
    return norm
