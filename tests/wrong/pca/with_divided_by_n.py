"""Wrong: the sums of products are divided by the number of rows, and not by one less.

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
    variances, vectors = np.linalg.eigh(x.T @ x / len(x))
    variances, components = np.maximum(variances[:-11:-1], 0), vectors[:, :-11:-1].T
    largest = np.take_along_axis(components, np.abs(components).argmax(axis=1)[:, None], axis=1)
    return np.column_stack((variances, components * np.sign(largest)))


def wait(fitted):
    pass


def download(fitted):
    return fitted
