"""Ridge regression in CuPy, tuned: the columns' means are a matrix product, too.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.cupy.dev/en/stable/reference/generated/cupy.linalg.solve.html
Follows: https://docs.cupy.dev/en/stable/user_guide/memory.html

CuPy takes long for samples.mean(axis=0), as in pca, whose with_cupy_tuned.py says how long. A row of ones times the
samples, which cuBLAS computes, has the same sums sooner.
"""

import cupy as cp
import numpy as np
from cupyx import empty_pinned

ALPHA = 1.0


def pinned(shape):
    return empty_pinned(shape, np.float64)


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float64, order="C"), blocking=True) for x in arrays)


def regression(samples, targets):
    right = samples.ndim == 2 and samples.size and targets.shape == samples.shape[:1]
    if not (right and samples.dtype == targets.dtype == np.float64):
        raise ValueError(
            f"regression takes float64 arrays of N×P and N with at least one row and one column, not"
            f" {samples.dtype} {samples.shape} and {targets.dtype} {targets.shape}"
        )
    centre, middle = cp.ones(len(samples)) @ samples / len(samples), targets.mean()
    x, y = samples - centre, targets - middle  # the intercept is not penalised
    coefficients = cp.linalg.solve(x.T @ x + ALPHA * cp.eye(x.shape[1]), x.T @ y)
    return cp.append(coefficients, middle - centre @ coefficients)


def wait(fitted):
    cp.cuda.get_current_stream().synchronize()


def download(fitted):
    return cp.asnumpy(fitted)


if __name__ == "__main__":
    samples, noise = np.random.default_rng(0).normal(1, 1, (10_007, 20)), np.sin(np.arange(10_007))
    targets = samples @ np.linspace(-1, 1, 20) + 3 + noise
    *coefficients, intercept = fitted = download(regression(*upload(samples, targets)))
    rest = targets - samples @ coefficients - intercept
    # The derivative of the penalised sum of squares by each coefficient, and by the intercept, is 0.
    np.testing.assert_allclose([*rest @ samples, rest.sum()], [*ALPHA * fitted[:-1], 0], rtol=0, atol=1e-7)
    print("regression, CuPy tuned: 10,007×20, all right")
