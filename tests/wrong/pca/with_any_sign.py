"""Wrong: the components point where the solver left them.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float64, order="C") for x in arrays)


def pca(samples):
    if samples.ndim != 2 or min(samples.shape) < 10 or samples.dtype != np.float64:
        raise ValueError(f"not {samples.dtype} {samples.shape}")
    x = samples - samples.mean(axis=0)
    variances, vectors = np.linalg.eigh(x.T @ x / (len(x) - 1))
    return np.column_stack((np.maximum(variances[:-11:-1], 0), vectors[:, :-11:-1].T))


def wait(fitted):
    pass


def download(fitted):
    return fitted
