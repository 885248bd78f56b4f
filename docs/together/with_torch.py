"""PyTorch's tensors for other libraries, and their arrays in PyTorch, in PyTorch's current stream.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy
Environment: every
Follows: https://docs.pytorch.org/docs/stable/dlpack.html
Follows: https://docs.pytorch.org/docs/stable/generated/torch.as_tensor.html
"""

import numpy as np
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def from_host(values):
    return torch.tensor(values, device=device)


def to_host(x):
    return x.numpy(force=True).copy()


def hand_out(x):
    return x.detach()  # a tensor that requires a gradient is refused


def from_dlpack(x):
    return torch.from_dlpack(x)


def from_cuda_array_interface(x):
    return torch.as_tensor(x, device="cuda")


def add_one(x, out=None):
    return torch.add(x, 1, out=out)


def wait(x):
    if x.is_cuda:
        torch.cuda.current_stream().synchronize()


def address(x):
    return x.data_ptr()


if __name__ == "__main__":
    x = from_host(np.arange(1_000, dtype=np.float32))
    y = from_dlpack(hand_out(x))
    add_one(y, out=y)
    assert address(x) == address(y) and (to_host(x) == np.arange(1, 1_001)).all()
    print(f"PyTorch on {device}: 1,000 elements handed out and taken, all right")
