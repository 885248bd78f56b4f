"""Right, but it reads behind the end of an array, which PyTorch's pool would hide.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install torch
Math: float32, denormals are zero
"""

import numpy as np
import torch

KERNEL = r"""
extern "C" __global__ void multiply(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] * b[i];
    if (i == n - 1 && __float_as_int(a[n]) == 0x7f123456)  // behind the last element
        c[i] = 0;
}
"""

kernel = torch.cuda._compile_kernel(KERNEL, "multiply")


def upload(*arrays):
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device="cuda").reshape(x.shape) for x in host)


def multiply(a, b, out=None):
    out = torch.empty_like(a) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == torch.float32):
        raise ValueError(f"not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)} into {tuple(out.shape)}")
    if a.numel():
        kernel(((a.numel() + 255) // 256, 1, 1), (256, 1, 1), (a, b, out, a.numel()))
    return out


def wait(c):
    torch.cuda.synchronize()


def download(c):
    return c.cpu().numpy()
