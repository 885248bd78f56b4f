"""Wrong: it is fitted in float32.

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
    samples, targets = samples.astype(np.float32), targets.astype(np.float32)
    centre, middle = samples.mean(axis=0), targets.mean()
    x = samples - centre
    coefficients = np.linalg.solve(x.T @ x + np.eye(x.shape[1], dtype=np.float32), x.T @ (targets - middle))
    return np.append(coefficients, middle - centre @ coefficients).astype(np.float64)


def wait(fitted):
    pass


def download(fitted):
    return fitted
