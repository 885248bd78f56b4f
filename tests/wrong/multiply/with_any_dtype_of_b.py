"""Wrong: only the dtype of a is looked at.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy
"""

import numpy as np
import torch


def upload(*arrays):
    host = [np.array(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel()).reshape(x.shape) for x in host)


def multiply(a, b):
    if a.shape != b.shape or a.dtype != torch.float32:
        raise ValueError(f"multiply takes float32 of one shape, not {a.dtype} {tuple(a.shape)} and {tuple(b.shape)}")
    return a * b


def wait(c):
    pass


def download(c):
    return c.numpy()
