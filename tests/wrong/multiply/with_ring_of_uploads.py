"""Wrong: upload() takes turns with four tensors for each shape.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy
"""

from functools import cache
from itertools import cycle

import numpy as np
import torch


@cache
def ring(shape):
    return cycle([torch.empty(shape) for _ in range(4)])


def upload(*arrays):
    tensors = tuple(next(ring(x.shape)) for x in arrays)
    for x, to in zip(arrays, tensors, strict=True):
        to.copy_(torch.tensor(np.array(x, np.float32, order="C")))
    return tensors


def multiply(a, b):
    if a.shape != b.shape or not a.dtype == b.dtype == torch.float32:
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        )
    return a * b


def wait(c):
    pass


def download(c):
    return c.numpy()
