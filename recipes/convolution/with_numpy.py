"""Convolution in NumPy: the product of two Fourier transforms, padded so that nothing wraps around.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Follows: https://numpy.org/doc/stable/reference/generated/numpy.fft.rfft.html
Environment: every

From NumPy 2 on, the transforms of float32 are in float32. Those of a single array use one core.
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def convolution(signal, kernel):
    if not (signal.ndim == kernel.ndim == 1 and signal.dtype == kernel.dtype == np.float32):
        raise ValueError(
            f"convolution takes one-dimensional float32 arrays, not {signal.dtype} {signal.shape} and"
            f" {kernel.dtype} {kernel.shape}"
        )
    if not (signal.size and kernel.size):
        return np.empty(0, np.float32)
    full = signal.size + kernel.size - 1
    n = 1 << (full - 1).bit_length()  # at least as many, and a power of two: transforms of those are fast
    return np.fft.irfft(np.fft.rfft(signal, n) * np.fft.rfft(kernel, n), n)[:full]


def wait(result):
    pass  # NumPy returns when it is done


def download(result):
    return result


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    signal, kernel = rng.standard_normal(10_007, np.float32), rng.standard_normal(101, np.float32)
    expected = np.convolve(signal.astype(np.float64), kernel)
    np.testing.assert_allclose(download(convolution(*upload(signal, kernel))), expected, rtol=0, atol=1e-4)
    print("convolution, NumPy: 10,007×101, all right")
