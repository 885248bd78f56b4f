"""Add one to an array in place in PyTorch: the method whose name ends in _, on the GPU where there is one.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.add_.html
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


def increment(a):
    if a.dtype != torch.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {tuple(a.shape)}")
    return a.add_(1)


def wait(a):
    if device.type == "cuda":
        torch.cuda.synchronize()


def download(a, out=None):
    if out is None:
        return a.cpu().numpy()
    if not (out.shape == a.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {tuple(a.shape)}, not {out.dtype} {out.shape}")
    torch.from_numpy(out).copy_(a)
    return out


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print(f"increment, PyTorch on {device.type}: 1,000,003 elements, all right")
