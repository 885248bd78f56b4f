"""Norm of an array in PyTorch on the CPU: the norm of the norms of blocks, with all cores.

Framework: PyTorch
Runs on: CPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/docs/stable/generated/torch.linalg.vector_norm.html
Follows: https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html

On a CPU, torch.linalg.vector_norm(x) of a whole array adds the squares to a few numbers of float32: with two cores,
that of 2**28 elements is 4 % too small. With dtype=torch.float64 it is right, and takes thirty times as long.

From host arrays, round_trip() computes where they are: torch.from_numpy shares an array's memory. PyTorch works with as
many threads as torch.get_num_threads() says, unless the arrays are small.
"""

import numpy as np
import torch

BLOCK = 2**14  # elements: few enough squares for a sum in float32


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device="cpu").reshape(x.shape) for x in host)


def norm(x):
    if x.dtype != torch.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {tuple(x.shape)}")
    flat = x.reshape(-1)  # a view
    whole = flat.numel() // BLOCK * BLOCK
    norms = torch.linalg.vector_norm(flat[:whole].view(-1, BLOCK), dim=1)
    rest = torch.linalg.vector_norm(flat[whole:])
    return torch.linalg.vector_norm(torch.cat([norms, rest.view(1)]))


def wait(norm):
    pass  # the CPU is done when the call returns


def download(norm):
    return norm.numpy()


def shared(x):
    """The array as a tensor in the same memory; a copy if it is read-only, of which PyTorch warns, or not in order."""
    x = np.asarray(x, np.float32, order="C")
    return torch.from_numpy((x if x.flags.writeable else x.copy()).ravel()).reshape(x.shape)


def round_trip(x):
    return download(norm(shared(x)))


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    for result in (download(norm(*upload(x))), round_trip(x)):
        np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, PyTorch on the CPU: 1,000,003 elements, all right")
