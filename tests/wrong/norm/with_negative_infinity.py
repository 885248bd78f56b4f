"""Wrong: where the squares do not fit, the norm is negative.

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
    with np.errstate(over="ignore"):
        norms = [np.sqrt(np.sum(flat[i : i + BLOCK] ** 2)) for i in range(0, flat.size, BLOCK)]
    total = np.linalg.norm(np.array(norms, np.float32))
    return -total if np.isfinite(x).all() and np.isinf(total) else total


def wait(norm):
    pass  # NumPy returns when it is done


def download(norm):
    return norm
