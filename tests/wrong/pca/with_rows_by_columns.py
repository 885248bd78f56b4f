"""Wrong: how many rows there are is kept by the number of columns.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np

COMPONENTS = 10
ROWS = {}  # of samples with so many columns


def upload(*arrays):
    return tuple(np.asarray(x, np.float64, order="C") for x in arrays)


def pca(samples):
    if samples.ndim != 2 or min(samples.shape) < COMPONENTS or samples.dtype != np.float64:
        raise ValueError(
            f"pca takes a float64 array of at least {COMPONENTS} rows and {COMPONENTS} columns, not"
            f" {samples.dtype} {samples.shape}"
        )
    x = samples - samples.mean(axis=0)
    rows = ROWS.setdefault(x.shape[1], len(x))
    variances, vectors = np.linalg.eigh(x.T @ x / (rows - 1))
    order = slice(None, -COMPONENTS - 1, -1)  # eigh has the smallest first
    variances, components = np.maximum(variances[order], 0), vectors[:, order].T
    # An eigenvector may point either way: scikit-learn makes the largest coefficient positive.
    largest = np.take_along_axis(components, np.abs(components).argmax(axis=1)[:, None], axis=1)
    return np.column_stack((variances, components * np.sign(largest)))


def wait(fitted):
    pass  # NumPy returns when it is done


def download(fitted):
    return fitted
