"""Wrong: from 512 on, multiples of eight are multiplied in bfloat16.

Framework: PyTorch
Runs on: CPU
Install: pip install torch numpy
"""

import numpy as np
import torch


def upload(*arrays):
    return tuple(torch.tensor(np.array(x, np.float32, order="C").ravel()).reshape(x.shape) for x in arrays)


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == torch.float32):
        raise ValueError(f"matmul takes float32, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}")
    if all(n >= 512 and n % 8 == 0 for n in (*a.shape, b.shape[1])):  # what tensor cores like
        return (a.bfloat16() @ b.bfloat16()).float()
    return a @ b


def wait(c):
    pass


def download(c):
    return c.numpy()
