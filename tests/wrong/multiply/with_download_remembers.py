"""Wrong: download() keeps a copy of each tensor, which is old once the tensor is written again.

Framework: PyTorch
Runs on: CPU
Install: pip install torch numpy
"""

from weakref import finalize

import numpy as np
import torch

hosts = {}


def upload(*arrays):
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel()).reshape(x.shape) for x in host)


def multiply(a, b, out=None):
    out = torch.empty_like(a) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == torch.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
            f" into {out.dtype} {tuple(out.shape)}"
        )
    return torch.mul(a, b, out=out)


def wait(c):
    pass


def download(c):
    if id(c) not in hosts:
        hosts[id(c)] = c.numpy().copy()
        finalize(c, hosts.pop, id(c))
    return hosts[id(c)]
