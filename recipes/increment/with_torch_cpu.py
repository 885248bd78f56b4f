"""Add one to an array in PyTorch on the CPU: in place, or from one array into another, with all cores.

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
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device="cpu").reshape(x.shape) for x in host)


def increment(a):
    if a.dtype != torch.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {tuple(a.shape)}")
    return a.add_(1)


def wait(a):
    pass  # the CPU is done when the call returns


def download(a):
    return a.numpy()


def shared(x):
    """The array as a tensor in the same memory; a copy if it is read-only, of which PyTorch warns, or not in order."""
    x = np.asarray(x, np.float32, order="C")
    return torch.from_numpy((x if x.flags.writeable else x.copy()).ravel()).reshape(x.shape)


def room(out, shape):
    out = np.empty(shape, np.float32) if out is None else out
    if not (out.shape == tuple(shape) and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"out must be writeable C-contiguous float32 of {tuple(shape)}, not {out.dtype} {out.shape}")
    return out


def round_trip(a, out=None):
    """a + 1 in a new array, or in out, which may be a itself."""
    a = shared(a)
    out = room(out, a.shape)
    torch.add(a, 1, out=torch.from_numpy(out))
    return out


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    for b in (round_trip(a), download(increment(*upload(a)))):
        np.testing.assert_array_equal(b, a + 1)
    print("increment, PyTorch on the CPU: 1,000,003 elements, all right")
