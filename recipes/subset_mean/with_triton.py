"""Mean of every other row and column, plus one, in Triton: a kernel in Python adds, and PyTorch adds its sums.

Framework: Triton
Runs on: NVIDIA GPU
Install: pip install triton torch numpy
Needs: gcc
Follows: https://triton-lang.org/main/getting-started/tutorials/02-fused-softmax.html
"""

import math

import numpy as np
import torch
import triton
import triton.language as tl

device = torch.device("cuda")
PROGRAMS, BLOCK = 4096, 512  # at most this many programs, which fill any GPU; elements that one adds at a time


# Of a size that is a multiple of 16, or 1, Triton would compile a kernel of its own, which is no faster here.
@triton.jit(do_not_specialize=["rows", "columns"])
def add_subset(x, rows, columns, sums, BLOCK: tl.constexpr):
    rows, columns = rows.to(tl.int64), columns.to(tl.int64)  # row times columns would wrap at 2**31 elements
    program, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0).to(tl.int64)
    total = tl.zeros([BLOCK], tl.float64)
    for row in range(2 * program, rows, 2 * programs):
        for start in range(0, columns, 2 * BLOCK):
            column = start + 2 * tl.arange(0, BLOCK).to(tl.int64)
            inside = column < columns
            total += tl.where(inside, tl.load(x + row * columns + column, inside, 0.0) + 1, 0.0)
    tl.store(sums + program, tl.sum(total))  # no atomics: the same answer every time


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float64, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device=device).reshape(x.shape) for x in host)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != torch.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {tuple(x.shape)}")
    if not x.is_contiguous():
        raise ValueError("subset_mean takes a C-contiguous array, as upload() makes it")
    if x.numel() == 0:
        return torch.tensor(math.nan, dtype=torch.float64, device=x.device)
    rows, columns = x.shape
    programs = min(PROGRAMS, (rows + 1) // 2)
    sums = torch.empty(programs, dtype=torch.float64, device=x.device)
    with torch.cuda.device_of(x):  # Triton launches on the current GPU, wherever the tensor is
        add_subset[(programs,)](x, rows, columns, sums, BLOCK)
    return sums.sum() / (((rows + 1) // 2) * ((columns + 1) // 2))


def wait(mean):
    torch.cuda.synchronize()


def download(mean):
    return float(mean)


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, Triton: 333 × 1,001 elements, all right")
