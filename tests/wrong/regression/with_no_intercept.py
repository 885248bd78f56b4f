"""Wrong: the model has no intercept.

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
    products = samples.T @ samples + np.eye(samples.shape[1])
    return np.append(np.linalg.solve(products, samples.T @ targets), 0)


def wait(fitted):
    pass


def download(fitted):
    return fitted
