"""Ridge regression in scikit-learn on PyTorch's tensors: Ridge dispatches to them, on the GPU where there is one.

Framework: scikit-learn
Runs on: NVIDIA GPU or CPU
Install: pip install scikit-learn torch
Follows: https://scikit-learn.org/stable/modules/array_api.html

What scikit-learn's estimators do by the Array API, they do on the device of the array that they are given. Of Ridge's
solvers only "svd" does: it takes several times as many operations as normal equations, and loses fewer digits. It takes
singular values of 1e-15 and less for zero, so the coefficients of samples that are as small are zero, too. SciPy
must support the Array API, too, which it does if the environment variable SCIPY_ARRAY_API is 1 before it is imported:
gpu-cookbook sets it so.
"""

import numpy as np
import torch
from sklearn import config_context
from sklearn.linear_model import Ridge

ALPHA = 1.0  # also its default
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float64, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device=device).reshape(x.shape) for x in host)


def regression(samples, targets):
    right = samples.ndim == 2 and samples.numel() and targets.shape == samples.shape[:1]
    if not (right and samples.dtype == targets.dtype == torch.float64):
        raise ValueError(
            f"regression takes float64 arrays of N×P and N with at least one row and one column, not"
            f" {samples.dtype} {tuple(samples.shape)} and {targets.dtype} {tuple(targets.shape)}"
        )
    with config_context(array_api_dispatch=True):  # for these lines in this thread only
        model = Ridge(alpha=ALPHA, solver="svd").fit(samples, targets)
    return torch.cat((model.coef_, model.intercept_.reshape(1)))


def wait(fitted):
    if device.type == "cuda":
        torch.cuda.synchronize()


def download(fitted):
    return fitted.cpu().numpy()


if __name__ == "__main__":
    samples, noise = np.random.default_rng(0).normal(1, 1, (10_007, 20)), np.sin(np.arange(10_007))
    targets = samples @ np.linspace(-1, 1, 20) + 3 + noise
    *coefficients, intercept = fitted = download(regression(*upload(samples, targets)))
    rest = targets - samples @ coefficients - intercept
    # The derivative of the penalised sum of squares by each coefficient, and by the intercept, is 0.
    np.testing.assert_allclose([*rest @ samples, rest.sum()], [*ALPHA * fitted[:-1], 0], rtol=0, atol=1e-7)
    print(f"regression, scikit-learn and PyTorch on {device.type}: 10,007×20, all right")
