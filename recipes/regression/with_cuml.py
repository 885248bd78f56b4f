"""Ridge regression in cuML: Ridge, as in scikit-learn, on CuPy's arrays.

Framework: cuML
Runs on: NVIDIA GPU
Install: pip install cuml-cu13
Shapes: fewer than 2**31 rows
Environment: rapids
Follows: https://docs.nvidia.com/cuml/latest/api/generated/cuml.linear_model.Ridge/

Of two columns or more, the solver "auto" finds the eigenvectors of the products of all columns, and of one column an
SVD; solver="svd" loses fewer digits where columns nearly depend on each other. cuML copies the samples, which it would
change otherwise. When it is imported, it makes CuPy allocate with RMM.
"""

import cupy as cp
import numpy as np
from cuml.linear_model import Ridge

ALPHA = 1.0  # also its default


def upload(samples, targets):
    if np.size(targets) >= 2**31:
        raise ValueError(f"cuML counts rows with 32 bits, and cannot take {np.size(targets):,}")
    host = [np.asarray(x, np.float64, order="C") for x in (samples, targets)]
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(x, blocking=True) for x in host)


def regression(samples, targets):
    right = samples.ndim == 2 and samples.size and targets.shape == samples.shape[:1]
    if not (right and samples.dtype == targets.dtype == np.float64):
        raise ValueError(
            f"regression takes float64 arrays of N×P and N with at least one row and one column, not"
            f" {samples.dtype} {samples.shape} and {targets.dtype} {targets.shape}"
        )
    if len(samples) == 1:  # which cuML refuses: no coefficient says anything
        return cp.append(cp.zeros(samples.shape[1]), targets)
    model = Ridge(alpha=ALPHA).fit(samples, targets)
    return cp.append(model.coef_, model.intercept_)


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
    print("regression, cuML: 10,007×20, all right")
