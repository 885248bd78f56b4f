"""Multiply two matrices in PyTorch on the CPU: its BLAS, with all cores.

Framework: PyTorch
Runs on: CPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html
Math: float32

From host arrays, round_trip() computes where they are: torch.from_numpy shares an array's memory. PyTorch works with as
many threads as torch.get_num_threads() says, unless the arrays are small.
"""

import numpy as np
import torch


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device="cpu").reshape(x.shape) for x in host)


def matmul(a, b, out=None):
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == torch.float32
    if right and out is not None:
        right = tuple(out.shape) == (a.shape[0], b.shape[1]) and out.dtype == torch.float32
    if not right:
        raise ValueError(
            f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
            + ("" if out is None else f" into {out.dtype} {tuple(out.shape)}")
        )
    if out is not None and out.numel() and out.data_ptr() in (a.data_ptr(), b.data_ptr()):
        raise ValueError("matmul takes an out that is neither a nor b")
    return torch.matmul(a, b, out=out)


def wait(c):
    pass  # the CPU is done when the call returns


def download(c):
    return c.numpy()


def shared(x):
    """The array as a tensor in the same memory; a copy if it is read-only, of which PyTorch warns, or not in order."""
    x = np.asarray(x, np.float32, order="C")
    return torch.from_numpy((x if x.flags.writeable else x.copy()).ravel()).reshape(x.shape)


def round_trip(a, b):
    return matmul(shared(a), shared(b)).numpy()


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    for c in (download(matmul(*upload(a, b))), round_trip(a, b)):
        np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, PyTorch on the CPU: 200×200×200, all right")
