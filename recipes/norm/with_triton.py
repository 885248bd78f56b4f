"""Norm of an array in Triton: a kernel in Python adds up squares, and PyTorch its sums.

Framework: Triton
Runs on: NVIDIA GPU
Install: pip install triton torch numpy
Needs: gcc
Follows: https://triton-lang.org/main/getting-started/tutorials/02-fused-softmax.html
"""

import numpy as np
import torch
import triton
import triton.language as tl

device = torch.device("cuda")
PROGRAMS, BLOCK = 4096, 1024  # at most this many programs, which fill any GPU; elements that one adds at a time


# Of a size that is a multiple of 16, or 1, Triton would compile a kernel of its own.
@triton.jit(do_not_specialize=["n"])
def add_squares(x, n, sums, BLOCK: tl.constexpr):
    n = n.to(tl.int64)
    # A program's number has 32 bits, and times BLOCK it would wrap at 2**31 elements.
    first, step = tl.program_id(0).to(tl.int64) * BLOCK, tl.num_programs(0).to(tl.int64) * BLOCK
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(first, n, step):
        i = start + tl.arange(0, BLOCK)
        values = tl.load(x + i, i < n, 0.0)  # the last block is rarely full
        total += values * values
    tl.store(sums + tl.program_id(0), tl.sum(total))  # no atomics: the same answer every time


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device=device).reshape(x.shape) for x in host)


def norm(x):
    if x.dtype != torch.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {tuple(x.shape)}")
    if not x.is_contiguous():
        raise ValueError("norm takes a C-contiguous array, as upload() makes it")
    if x.numel() == 0:  # a grid of no programs is an error
        return torch.zeros((), dtype=torch.float32, device=x.device)
    programs = min(PROGRAMS, triton.cdiv(x.numel(), BLOCK))
    sums = torch.empty(programs, dtype=torch.float32, device=x.device)
    with torch.cuda.device_of(x):  # Triton launches on the current GPU, wherever the tensor is
        add_squares[(programs,)](x, x.numel(), sums, BLOCK)
    return sums.sum().sqrt()


def wait(norm):
    torch.cuda.synchronize()


def download(norm):
    return norm.cpu().numpy()


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, Triton: 1,000,003 elements, all right")
