"""Multiply two matrices in PyTorch: cuBLAS on the GPU where there is one, else the CPU's BLAS.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/docs/stable/generated/torch.matmul.html
Follows: https://docs.pytorch.org/docs/stable/generated/torch.empty.html
Math: float32, TF32 off (PyTorch's default; torch.set_float32_matmul_precision turns it on)
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


def matmul(a, b, out=None):
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == torch.float32
    if right and out is not None:
        right = tuple(out.shape) == (a.shape[0], b.shape[1]) and out.dtype == torch.float32
    if not right:
        raise ValueError(
            f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
            + ("" if out is None else f" into {out.dtype} {tuple(out.shape)}")
        )
    if out is not None and out.numel() and out.data_ptr() in (a.data_ptr(), b.data_ptr()):
        raise ValueError("matmul takes an out that is neither a nor b")
    return torch.matmul(a, b, out=out)


def wait(c):
    if device.type == "cuda":
        torch.cuda.synchronize()


def download(c, out=None):
    if out is None:
        return c.cpu().numpy()
    if not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {tuple(c.shape)}, not {out.dtype} {out.shape}")
    torch.from_numpy(out).copy_(c)
    return out


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print(f"matmul, PyTorch on {device.type}: 200×200×200, all right")
