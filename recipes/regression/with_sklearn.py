"""Ridge regression in scikit-learn: Ridge, on as many cores as NumPy's BLAS uses.

Framework: scikit-learn
Runs on: CPU
Install: pip install scikit-learn
Follows: https://scikit-learn.org/stable/modules/linear_model.html#ridge-regression-and-classification

Of arrays that are dense, Ridge solves the normal equations by a Cholesky factorisation (of as many rows as there are
samples or columns, whichever are fewer); solver="svd" loses fewer digits where columns nearly depend on each other.
"""

import numpy as np
from sklearn.linear_model import Ridge

ALPHA = 1.0  # also its default


def upload(*arrays):
    return tuple(np.asarray(x, np.float64, order="C") for x in arrays)


def regression(samples, targets):
    right = samples.ndim == 2 and samples.size and targets.shape == samples.shape[:1]
    if not (right and samples.dtype == targets.dtype == np.float64):
        raise ValueError(
            f"regression takes float64 arrays of N×P and N with at least one row and one column, not"
            f" {samples.dtype} {samples.shape} and {targets.dtype} {targets.shape}"
        )
    model = Ridge(alpha=ALPHA).fit(samples, targets)
    return np.append(model.coef_, model.intercept_)


def wait(fitted):
    pass  # scikit-learn returns when it is done


def download(fitted):
    return fitted


if __name__ == "__main__":
    samples, noise = np.random.default_rng(0).normal(1, 1, (10_007, 20)), np.sin(np.arange(10_007))
    targets = samples @ np.linspace(-1, 1, 20) + 3 + noise
    *coefficients, intercept = fitted = download(regression(*upload(samples, targets)))
    rest = targets - samples @ coefficients - intercept
    # The derivative of the penalised sum of squares by each coefficient, and by the intercept, is 0.
    np.testing.assert_allclose([*rest @ samples, rest.sum()], [*ALPHA * fitted[:-1], 0], rtol=0, atol=1e-7)
    print("regression, scikit-learn: 10,007×20, all right")
