"""Wrong: the factors of its products have 11 bits, as in TF32 and float16.

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
    x, y = (np.ldexp(np.round(np.ldexp(m, 11)), e - 11) for m, e in map(np.frexp, (samples - centre, targets - middle)))
    coefficients = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ y)
    return np.append(coefficients, middle - centre @ coefficients)


def wait(fitted):
    pass


def download(fitted):
    return fitted
