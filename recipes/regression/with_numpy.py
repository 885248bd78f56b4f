"""Ridge regression in NumPy: the normal equations, by its BLAS and LAPACK, on as many cores as these use.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Follows: https://numpy.org/doc/stable/reference/generated/numpy.linalg.solve.html
Environment: every

x.T @ x has the square of the condition number of x: where columns nearly depend on each other and alpha is small, that
loses twice as many digits as np.linalg.svd of x does. NumPy sees that both factors are one array, and computes half of
the product.
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
    coefficients = np.linalg.solve(x.T @ x + ALPHA * np.eye(x.shape[1]), x.T @ y)
    return np.append(coefficients, middle - centre @ coefficients)


def wait(fitted):
    pass  # NumPy returns when it is done


def download(fitted):
    return fitted


if __name__ == "__main__":
    samples, noise = np.random.default_rng(0).normal(1, 1, (10_007, 20)), np.sin(np.arange(10_007))
    targets = samples @ np.linspace(-1, 1, 20) + 3 + noise
    *coefficients, intercept = fitted = download(regression(*upload(samples, targets)))
    rest = targets - samples @ coefficients - intercept
    # The derivative of the penalised sum of squares by each coefficient, and by the intercept, is 0.
    np.testing.assert_allclose([*rest @ samples, rest.sum()], [*ALPHA * fitted[:-1], 0], rtol=0, atol=1e-7)
    print("regression, NumPy: 10,007×20, all right")
