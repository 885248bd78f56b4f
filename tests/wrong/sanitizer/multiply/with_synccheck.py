"""Right, but threads wait for a part of their warp to which they do not belong.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Math: float32, denormals are zero
"""

import cupy as cp
import numpy as np

KERNEL = r"""
extern "C" __global__ void multiply(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] * b[i];
    __syncwarp(1);  // only the first thread of a warp
}
"""

kernel = cp.RawKernel(KERNEL, "multiply")


def upload(*arrays):
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C")) for x in arrays)


def multiply(a, b, out=None):
    out = cp.empty(a.shape, a.dtype) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(f"not {a.dtype} {a.shape} and {b.dtype} {b.shape} into {out.dtype} {out.shape}")
    if a.size:
        kernel(((a.size + 255) // 256,), (256,), (a, b, out, np.int32(a.size)))
    return out


def wait(c):
    cp.cuda.get_current_stream().synchronize()


def download(c):
    return cp.asnumpy(c)
