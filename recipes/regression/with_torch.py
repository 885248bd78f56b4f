"""Ridge regression in PyTorch: the normal equations, by cuBLAS and cuSOLVER on the GPU where there is one.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/docs/stable/generated/torch.linalg.solve.html
Follows: https://docs.pytorch.org/docs/stable/generated/torch.empty.html

torch.linalg.solve waits for the GPU, to see whether there is a solution.
"""

import numpy as np
import torch

ALPHA = 1.0
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def pinned(shape):
    return torch.empty(shape, dtype=torch.float64, device="cpu", pin_memory=device.type == "cuda").numpy()


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
    centre, middle = samples.mean(dim=0), targets.mean()
    x, y = samples - centre, targets - middle  # the intercept is not penalised
    penalty = ALPHA * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    coefficients = torch.linalg.solve(x.T @ x + penalty, x.T @ y)
    return torch.cat((coefficients, (middle - centre @ coefficients).reshape(1)))


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
    print(f"regression, PyTorch on {device.type}: 10,007×20, all right")
