"""Mean of every other row and column, plus one, in PyTorch, tuned: the mean of the slice, and then plus one.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy

(x[::2, ::2] + 1).mean() stores a quarter of x and reads it again. Here nothing is stored, and 1 is added once. On an
NVIDIA H200: 1.50 ms for 40,000² instead of 2.96 (with_torch.py).
"""

import numpy as np
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float64, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device=device).reshape(x.shape) for x in host)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != torch.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {tuple(x.shape)}")
    return x[::2, ::2].mean() + 1  # (x[::2, ::2] + 1).mean() stores a quarter of x, and reads it again


def wait(mean):
    if device.type == "cuda":
        torch.cuda.synchronize()


def download(mean):
    return float(mean)


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print(f"subset_mean, PyTorch tuned on {device.type}: 333 × 1,001 elements, all right")
