"""What a Triton kernel wrote for other libraries, and their arrays in a Triton kernel: as PyTorch's tensors.

Framework: Triton
Runs on: NVIDIA GPU
Install: pip install triton torch numpy
Environment: every
Needs: gcc
Follows: https://triton-lang.org/main/python-api/generated/triton.jit.html

Triton has no arrays. A kernel takes every object with data_ptr() and dtype for a pointer, and runs in PyTorch's current
stream.
"""

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + 1, i < n)


def from_host(values):
    return torch.tensor(values, device="cuda")


def to_host(x):
    return x.numpy(force=True)


def hand_out(x):
    return x.detach()


def from_dlpack(x):
    return torch.from_dlpack(x)


def from_cuda_array_interface(x):
    return torch.as_tensor(x, device="cuda")


def add_one(x, out=None):
    out = torch.empty_like(x) if out is None else out
    kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out


def wait(x):
    torch.cuda.current_stream().synchronize()


def address(x):
    return x.data_ptr()


if __name__ == "__main__":
    x = from_host(np.arange(1_000, dtype=np.float32))
    y = from_dlpack(hand_out(x))
    add_one(y, out=y)
    assert address(x) == address(y) and (to_host(x) == np.arange(1, 1_001)).all()
    print("Triton: 1,000 elements handed out and taken, all right")
