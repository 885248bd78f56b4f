"""Ridge regression in scikit-learn on a GPU: with_sklearn.py, behind two lines that make cuML do scikit-learn's work.

Framework: cuML
Runs on: NVIDIA GPU
Install: pip install cuml-cu13 scikit-learn
Shapes: fewer than 2**31 rows
Environment: rapids
Follows: https://docs.nvidia.com/cuml/latest/cuml-accel/usage/
Follows: https://docs.nvidia.com/cuml/latest/cuml-accel/logging-and-profiling/

install() is for the whole process, and for what imports scikit-learn after it; python -m cuml.accel SCRIPT does the
same without the two lines. Estimators, parameters and inputs that cuML does not have are left to scikit-learn, without
a word: so the profile, which says where a call ran, is looked at. One row alone it does not leave to it, but refuses.
The samples stay on the host: each call takes them to the GPU, into managed memory, and brings the result back.
"""

import cuml.accel

cuml.accel.install()

import numpy as np  # noqa: E402
from sklearn.linear_model import Ridge  # noqa: E402

ALPHA = 1.0  # also its default


def upload(samples, targets):
    if np.size(targets) >= 2**31:
        raise ValueError(f"cuML counts rows with 32 bits, and cannot take {np.size(targets):,}")
    return np.asarray(samples, np.float64, order="C"), np.asarray(targets, np.float64, order="C")


def regression(samples, targets):
    right = samples.ndim == 2 and samples.size and targets.shape == samples.shape[:1]
    if not (right and samples.dtype == targets.dtype == np.float64):
        raise ValueError(
            f"regression takes float64 arrays of N×P and N with at least one row and one column, not"
            f" {samples.dtype} {samples.shape} and {targets.dtype} {targets.shape}"
        )
    if len(samples) == 1:  # no coefficient says anything
        return np.append(np.zeros(samples.shape[1]), targets)
    with cuml.accel.profile(quiet=True) as profile:
        model = Ridge(alpha=ALPHA).fit(samples, targets)
    if not profile.method_calls["Ridge.fit"].gpu_calls:
        raise RuntimeError("cuml.accel left Ridge to scikit-learn, on the CPU")
    return np.append(model.coef_, model.intercept_)


def wait(fitted):
    pass  # the attributes of a fitted model are on the host


def download(fitted):
    return fitted


if __name__ == "__main__":
    samples, noise = np.random.default_rng(0).normal(1, 1, (10_007, 20)), np.sin(np.arange(10_007))
    targets = samples @ np.linspace(-1, 1, 20) + 3 + noise
    *coefficients, intercept = fitted = download(regression(*upload(samples, targets)))
    rest = targets - samples @ coefficients - intercept
    # The derivative of the penalised sum of squares by each coefficient, and by the intercept, is 0.
    np.testing.assert_allclose([*rest @ samples, rest.sum()], [*ALPHA * fitted[:-1], 0], rtol=0, atol=1e-7)
    print("regression, cuml.accel: 10,007×20, all right")
