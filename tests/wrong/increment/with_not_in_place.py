"""Wrong: it makes a new tensor, and the given one stays as it is.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy
"""

import numpy as np
import torch


def upload(*arrays):
    host = [np.array(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel()).reshape(x.shape) for x in host)


def increment(a):
    if a.dtype != torch.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {tuple(a.shape)}")
    return a + 1


def wait(c):
    pass


def download(c):
    return c.numpy().copy()
