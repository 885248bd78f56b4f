"""Ridge regression in PyTorch on the CPU: the normal equations, by its BLAS and LAPACK, with all cores.

Framework: PyTorch
Runs on: CPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/docs/stable/generated/torch.linalg.solve.html

From host arrays, round_trip() computes where they are: torch.from_numpy shares an array's memory. PyTorch works with as
many threads as torch.get_num_threads() says, unless the arrays are small.
"""

import numpy as np
import torch

ALPHA = 1.0


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float64, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device="cpu").reshape(x.shape) for x in host)


def regression(samples, targets):
    right = samples.ndim == 2 and samples.numel() and targets.shape == samples.shape[:1]
    if not (right and samples.dtype == targets.dtype == torch.float64):
        raise ValueError(
            f"regression takes float64 arrays of N×P and N with at least one row and one column, not"
            f" {samples.dtype} {tuple(samples.shape)} and {targets.dtype} {tuple(targets.shape)}"
        )
    centre, middle = samples.mean(dim=0), targets.mean()
    x, y = samples - centre, targets - middle  # the intercept is not penalised
    penalty = ALPHA * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    coefficients = torch.linalg.solve(x.T @ x + penalty, x.T @ y)
    return torch.cat((coefficients, (middle - centre @ coefficients).reshape(1)))


def wait(fitted):
    pass  # the CPU is done when the call returns


def download(fitted):
    return fitted.numpy()


def shared(x):
    """The array as a tensor in the same memory; a copy if it is read-only, of which PyTorch warns, or not in order."""
    x = np.asarray(x, np.float64, order="C")
    return torch.from_numpy((x if x.flags.writeable else x.copy()).ravel()).reshape(x.shape)


def round_trip(samples, targets):
    return regression(shared(samples), shared(targets)).numpy()


if __name__ == "__main__":
    samples, noise = np.random.default_rng(0).normal(1, 1, (10_007, 20)), np.sin(np.arange(10_007))
    targets = samples @ np.linspace(-1, 1, 20) + 3 + noise
    for fitted in (download(regression(*upload(samples, targets))), round_trip(samples, targets)):
        *coefficients, intercept = fitted
        rest = targets - samples @ coefficients - intercept
        # The derivative of the penalised sum of squares by each coefficient, and by the intercept, is 0.
        np.testing.assert_allclose([*rest @ samples, rest.sum()], [*ALPHA * fitted[:-1], 0], rtol=0, atol=1e-7)
    print("regression, PyTorch on the CPU: 10,007×20, all right")
