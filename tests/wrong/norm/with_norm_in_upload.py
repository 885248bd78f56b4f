"""Wrong: upload() computes the norm, and norm() gives it back.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

from dataclasses import dataclass

import numpy as np


@dataclass
class Given:
    shape: tuple
    dtype: np.dtype
    values: np.ndarray
    norm: float


def upload(*arrays):
    values = [np.array(x, np.float32, order="C") for x in arrays]
    with np.errstate(all="ignore"):
        return tuple(Given(x.shape, x.dtype, x, float(np.linalg.norm(x.astype(np.float64).ravel()))) for x in values)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    return np.array(x.norm, np.float32)


def wait(norm):
    pass


def download(norm):
    return norm.copy()
