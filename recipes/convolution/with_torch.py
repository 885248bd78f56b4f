"""Convolution in PyTorch: the product of two Fourier transforms, by cuFFT on the GPU where there is one.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/docs/stable/generated/torch.fft.rfft.html
Follows: https://docs.pytorch.org/docs/stable/generated/torch.empty.html

PyTorch keeps the plans of the last transforms on a GPU for the next call: torch.backends.cuda.cufft_plan_cache.clear()
frees them.
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


def convolution(signal, kernel):
    if not (signal.ndim == kernel.ndim == 1 and signal.dtype == kernel.dtype == torch.float32):
        raise ValueError(
            f"convolution takes one-dimensional float32 arrays, not {signal.dtype} {tuple(signal.shape)} and"
            f" {kernel.dtype} {tuple(kernel.shape)}"
        )
    if not (signal.numel() and kernel.numel()):
        return torch.empty(0, dtype=torch.float32, device=signal.device)
    full = signal.numel() + kernel.numel() - 1
    n = 1 << (full - 1).bit_length()  # at least as many, and a power of two: transforms of those are fast
    return torch.fft.irfft(torch.fft.rfft(signal, n) * torch.fft.rfft(kernel, n), n)[:full]


def wait(result):
    if device.type == "cuda":
        torch.cuda.synchronize()


def download(result):
    return result.cpu().numpy()


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    signal, kernel = rng.standard_normal(10_007, np.float32), rng.standard_normal(101, np.float32)
    expected = np.convolve(signal.astype(np.float64), kernel)
    np.testing.assert_allclose(download(convolution(*upload(signal, kernel))), expected, rtol=0, atol=1e-4)
    print(f"convolution, PyTorch on {device.type}: 10,007×101, all right")
