"""Wrong: least squares, as if alpha were 0.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float64, order="C") for x in arrays)


def regression(samples, targets):
    right = samples.ndim == 2 and samples.size and targets.shape == samples.shape[:1]
    if not (right and samples.dtype == targets.dtype == np.float64):
        raise ValueError(f"not {samples.dtype} {samples.shape} and {targets.dtype} {targets.shape}")
    centre, middle = samples.mean(axis=0), targets.mean()
    coefficients = np.linalg.lstsq(samples - centre, targets - middle)[0]
    return np.append(coefficients, middle - centre @ coefficients)


def wait(fitted):
    pass


def download(fitted):
    return fitted
