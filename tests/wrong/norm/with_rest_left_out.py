"""Wrong: of a large array, the elements behind the last four are left out, as by a kernel that only loads 16 bytes.

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
    whole = flat[: flat.size // 4 * 4] if flat.size > 1_000 else flat
    return np.sqrt(np.sum(whole * whole))


def wait(norm):
    pass


def download(norm):
    return norm
