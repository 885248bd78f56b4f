"""Add one to an array in place in Triton: a kernel in Python that changes a block at a time of PyTorch's tensor.

Framework: Triton
Runs on: NVIDIA GPU
Install: pip install triton torch numpy
Needs: gcc
Follows: https://triton-lang.org/main/getting-started/tutorials/01-vector-add.html
Follows: https://triton-lang.org/main/getting-started/tutorials/02-fused-softmax.html
"""

import numpy as np
import torch
import triton
import triton.language as tl

device = torch.device("cuda")
BLOCK = 1024  # elements that one program changes; a power of two


@triton.jit
def kernel(a, n, BLOCK: tl.constexpr):
    # A program's number has 32 bits, and times BLOCK it would wrap at 2**31 elements.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n  # the last block is rarely full
    tl.store(a + i, tl.load(a + i, inside) + 1, inside)


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device=device).reshape(x.shape) for x in host)


def check(a):
    if a.dtype != torch.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {tuple(a.shape)}")
    if not a.is_contiguous():
        raise ValueError("increment takes a C-contiguous array, as upload() makes it")


def increment(a):
    check(a)
    if a.numel():  # a grid of no programs is an error
        with torch.cuda.device_of(a):  # Triton launches on the current GPU, wherever the tensor is
            kernel[(triton.cdiv(a.numel(), BLOCK),)](a, a.numel(), BLOCK)
    return a


def prepared(a):
    """Return a function without arguments: each call adds one to what a then holds, and returns a."""
    check(a)
    if not a.numel():
        return lambda: a
    arguments = a, a.numel(), BLOCK
    # Compiled for arguments like these: a kernel's launch looks for that each time, this one does not.
    with torch.cuda.device_of(a):
        launch = kernel.warmup(*arguments, grid=(1,))[(triton.cdiv(a.numel(), BLOCK), 1, 1)]

    def replay():
        with torch.cuda.device_of(a):
            launch(*arguments)
        return a

    return replay


def wait(a):
    torch.cuda.synchronize()


def download(a):
    return a.cpu().numpy()


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print("increment, Triton: 1,000,003 elements, all right")
