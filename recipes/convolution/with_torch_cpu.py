"""Convolution in PyTorch on the CPU: the product of two Fourier transforms.

Framework: PyTorch
Runs on: CPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/docs/stable/generated/torch.fft.rfft.html
Follows: https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html

From host arrays, round_trip() computes where they are: torch.from_numpy shares an array's memory.
"""

import numpy as np
import torch


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device="cpu").reshape(x.shape) for x in host)


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
    pass  # the CPU is done when the call returns


def download(result):
    return result.numpy()


def shared(x):
    """The array as a tensor in the same memory; a copy if it is read-only, of which PyTorch warns, or not in order."""
    x = np.asarray(x, np.float32, order="C")
    return torch.from_numpy((x if x.flags.writeable else x.copy()).ravel()).reshape(x.shape)


def round_trip(signal, kernel):
    return convolution(shared(signal), shared(kernel)).numpy()


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    signal, kernel = rng.standard_normal(10_007, np.float32), rng.standard_normal(101, np.float32)
    expected = np.convolve(signal.astype(np.float64), kernel)
    for result in (download(convolution(*upload(signal, kernel))), round_trip(signal, kernel)):
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-4)
    print("convolution, PyTorch on the CPU: 10,007×101, all right")
