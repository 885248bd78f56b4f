"""Norm of an array in PyTorch: its own function, as in NumPy.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/docs/stable/generated/torch.linalg.vector_norm.html
Follows: https://docs.pytorch.org/docs/stable/generated/torch.empty.html

On a CPU, this function adds all squares to a few float32, and the norm of 2**28 elements is 4 % too small:
with_torch_cpu.py takes blocks.
"""

import numpy as np
import torch


def pinned(shape):
    return torch.empty(shape, dtype=torch.float32, device="cpu", pin_memory=True).numpy()


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device="cuda").reshape(x.shape) for x in host)


def norm(x):
    if x.dtype != torch.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {tuple(x.shape)}")
    return torch.linalg.vector_norm(x)


def wait(norm):
    torch.cuda.synchronize()


def download(norm):
    return norm.cpu().numpy()


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, PyTorch: 1,000,003 elements, all right")
