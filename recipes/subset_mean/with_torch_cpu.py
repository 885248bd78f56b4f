"""Mean of every other row and column, plus one, in PyTorch on the CPU: slices and methods, with all cores.

Framework: PyTorch
Runs on: CPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html

From host arrays, round_trip() computes where they are: torch.from_numpy shares an array's memory. PyTorch works with as
many threads as torch.get_num_threads() says, unless the arrays are small.
"""

import numpy as np
import torch


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float64, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device="cpu").reshape(x.shape) for x in host)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != torch.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {tuple(x.shape)}")
    return (x[::2, ::2] + 1).mean()


def wait(mean):
    pass  # the CPU is done when the call returns


def download(mean):
    return float(mean)


def shared(x):
    """The array as a tensor in the same memory; a copy if it is read-only, of which PyTorch warns, or not in order."""
    x = np.asarray(x, np.float64, order="C")
    return torch.from_numpy((x if x.flags.writeable else x.copy()).ravel()).reshape(x.shape)


def round_trip(x):
    return download(subset_mean(shared(x)))


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    for mean in (download(subset_mean(*upload(x))), round_trip(x)):
        np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, PyTorch on the CPU: 333 × 1,001 elements, all right")
