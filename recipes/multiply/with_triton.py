"""Multiply two arrays in Triton: a kernel in Python that computes a block of elements at a time, on PyTorch's tensors.

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
BLOCK = 1024  # elements that one program computes; a power of two


@triton.jit
def kernel(a, b, c, n, BLOCK: tl.constexpr):
    # A program's number has 32 bits, and times BLOCK it would wrap at 2**31 elements.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n  # the last block is rarely full
    tl.store(c + i, tl.load(a + i, inside) * tl.load(b + i, inside), inside)


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device=device).reshape(x.shape) for x in host)


def output_for(a, b, out):
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == torch.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
            f" into {out.dtype} {tuple(out.shape)}"
        )
    if not all(x.is_contiguous() for x in (a, b, out)):
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    if not a.device == b.device == out.device:  # Triton does not look
        raise ValueError(f"multiply takes arrays on one device, not on {a.device}, {b.device} and {out.device}")
    return out


def multiply(a, b, out=None):
    out = output_for(a, b, out)
    if a.numel():  # a grid of no programs is an error
        with torch.cuda.device_of(a):  # Triton launches on the current GPU, wherever the tensors are
            kernel[(triton.cdiv(a.numel(), BLOCK),)](a, b, out, a.numel(), BLOCK)
    return out


def prepared(a, b, out=None):
    """Return a function without arguments: each call multiplies what a and b then hold, and returns the same out."""
    out = output_for(a, b, out)
    if not a.numel():
        return lambda: out
    arguments = a, b, out, a.numel(), BLOCK
    # Compiled for arguments like these: a kernel's launch looks for that each time, this one does not.
    with torch.cuda.device_of(a):
        launch = kernel.warmup(*arguments, grid=(1,))[(triton.cdiv(a.numel(), BLOCK), 1, 1)]

    def replay():
        with torch.cuda.device_of(a):
            launch(*arguments)
        return out

    return replay


def wait(c):
    torch.cuda.synchronize()


def download(c):
    return c.cpu().numpy()


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, Triton: 1,000,003 elements, all right")
