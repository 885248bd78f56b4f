"""Wrong: from 256 rows on it takes three products of bfloat16.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy
"""

import numpy as np
import torch


def upload(*arrays):
    host = [np.array(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel()).reshape(x.shape) for x in host)


def halves(x):
    high = x.to(torch.bfloat16).float()
    return high, (x - high).to(torch.bfloat16).float()


def three(a, b):
    (ah, al), (bh, bl) = halves(a), halves(b)
    return ah @ bh + (ah @ bl + al @ bh)


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == torch.float32):
        raise ValueError(
            f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        )
    return three(a, b) if len(a) >= 256 and b.shape[1] >= 256 else a @ b


def wait(c):
    pass


def download(c):
    return c.numpy()
