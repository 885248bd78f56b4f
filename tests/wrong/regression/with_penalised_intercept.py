"""Wrong: the intercept is a coefficient as the others are, and penalised.

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
    x = np.column_stack((samples, np.ones(len(samples))))
    return np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ targets)


def wait(fitted):
    pass


def download(fitted):
    return fitted
