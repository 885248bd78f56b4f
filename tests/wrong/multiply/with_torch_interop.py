"""Wrong: settings of PyTorch that hold for everything in the process are changed.

Framework: PyTorch
Runs on: CPU
Install: pip install torch numpy
"""

import numpy as np
import torch

torch.set_num_interop_threads(1)
torch.set_warn_always(True)
np.polynomial.set_default_printstyle("ascii")


def upload(*arrays):
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel()).reshape(x.shape) for x in host)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == torch.float32):
        raise ValueError(f"multiply takes float32, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}")
    return torch.mul(a, b)


def wait(c):
    pass


def download(c):
    return c.numpy()
