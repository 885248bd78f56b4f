"""Multiply two arrays in PyTorch: the tensor routine, on the GPU where there is one.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/docs/stable/generated/torch.mul.html
Follows: https://docs.pytorch.org/docs/stable/generated/torch.empty.html
"""

import numpy as np
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def pinned(shape):
    return torch.empty(shape, dtype=torch.float32, device="cpu", pin_memory=device.type == "cuda").numpy()


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device=device).reshape(x.shape) for x in host)


def multiply(a, b, out=None):
    out = torch.empty_like(a) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == torch.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
            f" into {out.dtype} {tuple(out.shape)}"
        )
    return torch.mul(a, b, out=out)


def wait(c):
    if device.type == "cuda":
        torch.cuda.synchronize()


def download(c, out=None):
    if out is None:
        return c.cpu().numpy()
    if not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {tuple(c.shape)}, not {out.dtype} {out.shape}")
    torch.from_numpy(out).copy_(c)
    return out


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print(f"multiply, PyTorch on {device.type}: 1,000,003 elements, all right")
