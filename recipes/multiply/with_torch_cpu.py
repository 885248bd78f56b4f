"""Multiply two arrays in PyTorch on the CPU: the tensor routine, with all cores.

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


def multiply(a, b, out=None):
    out = torch.empty_like(a) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == torch.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
            f" into {out.dtype} {tuple(out.shape)}"
        )
    return torch.mul(a, b, out=out)


def wait(c):
    pass  # the CPU is done when the call returns


def download(c):
    return c.numpy()


def shared(x):
    """The array as a tensor in the same memory; a copy if it is read-only, of which PyTorch warns, or not in order."""
    x = np.asarray(x, np.float32, order="C")
    return torch.from_numpy((x if x.flags.writeable else x.copy()).ravel()).reshape(x.shape)


def room(out, shape):
    out = np.empty(shape, np.float32) if out is None else out
    if not (out.shape == tuple(shape) and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"out must be writeable C-contiguous float32 of {tuple(shape)}, not {out.dtype} {out.shape}")
    return out


def round_trip(a, b, out=None):
    a, b = shared(a), shared(b)
    out = room(out, a.shape)
    multiply(a, b, out=torch.from_numpy(out))
    return out


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    for c in (download(multiply(*upload(a, b))), round_trip(a, b)):
        np.testing.assert_array_equal(c, a * b)
    print("multiply, PyTorch on the CPU: 1,000,003 elements, all right")
