"""Wrong: it is fitted in float32.

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
    x = samples.astype(np.float32)
    x -= x.mean(axis=0)
    variances, vectors = np.linalg.eigh(x.T @ x / np.float32(len(x) - 1))
    variances, components = np.maximum(variances[:-11:-1], 0), vectors[:, :-11:-1].T
    largest = np.take_along_axis(components, np.abs(components).argmax(axis=1)[:, None], axis=1)
    return np.column_stack((variances, components * np.sign(largest))).astype(np.float64)


def wait(fitted):
    pass


def download(fitted):
    return fitted
