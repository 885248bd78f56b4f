"""Right: ridge regression as least squares with the penalty as more rows, which loses fewer digits.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np

ALPHA = 1.0


def upload(*arrays):
    return tuple(np.asarray(x, np.float64, order="C") for x in arrays)


def regression(samples, targets):
    right = samples.ndim == 2 and samples.size and targets.shape == samples.shape[:1]
    if not (right and samples.dtype == targets.dtype == np.float64):
        raise ValueError(
            f"regression takes float64 arrays of N×P and N with at least one row and one column, not"
            f" {samples.dtype} {samples.shape} and {targets.dtype} {targets.shape}"
        )
    centre, middle = samples.mean(axis=0), targets.mean()
    x, y = samples - centre, targets - middle  # the intercept is not penalised
    rows = np.vstack((x, ALPHA**0.5 * np.eye(x.shape[1])))  # least squares with the penalty as more rows
    q, r = np.linalg.qr(rows)
    coefficients = np.linalg.solve(r, q.T @ np.append(y, np.zeros(x.shape[1])))
    return np.append(coefficients, middle - centre @ coefficients)


def wait(fitted):
    pass  # NumPy returns when it is done


def download(fitted):
    return fitted
