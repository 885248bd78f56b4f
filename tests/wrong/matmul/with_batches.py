"""Wrong: stacks of matrices are multiplied, and a matrix with a vector.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy
"""

import numpy as np
import torch


def upload(*arrays):
    host = [np.array(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel()).reshape(x.shape) for x in host)


def matmul(a, b):
    if not (a.ndim >= 2 and a.shape[-1] == b.shape[0 if b.ndim < 3 else -2] and a.dtype == b.dtype == torch.float32):
        raise ValueError(f"matmul takes float32, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}")
    return a @ b


def wait(c):
    pass


def download(c):
    return c.numpy()
