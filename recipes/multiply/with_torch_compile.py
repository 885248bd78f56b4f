"""Multiply two arrays in PyTorch: torch.compile makes a Triton kernel on the GPU, or a C++ loop where there is none.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy
Needs: g++
Follows: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
"""

import numpy as np
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@torch.compile(dynamic=True)  # one kernel for all sizes: the default compiles one for the first size only
def kernel(a, b, out):
    torch.mul(a, b, out=out)


# Once, now, and large: the first call's size decides on the block size (GPU) and the number of threads (CPU). Zeros,
# because compute-sanitizer's initcheck names reads of unwritten memory.
kernel(*(torch.zeros(2**20, device=device) for _ in range(3)))


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device=device).reshape(x.shape) for x in host)


def multiply(a, b, out=None):
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == torch.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
            f" into {out.dtype} {tuple(out.shape)}"
        )
    if not all(x.is_contiguous() for x in (a, b, out)):
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    if a.numel():
        kernel(a.view(-1), b.view(-1), out.view(-1))  # flat: each number of dimensions would be compiled anew
    return out


def wait(c):
    if device.type == "cuda":
        torch.cuda.synchronize()


def download(c):
    return c.cpu().numpy()


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print(f"multiply, torch.compile on {device.type}: 1,000,003 elements, all right")
