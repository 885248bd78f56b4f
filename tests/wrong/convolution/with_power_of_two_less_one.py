"""Wrong: where there is one result more than a power of two, the last wraps around.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Environment: every
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
    n = 1 << max(1, (full - 2).bit_length())
    result = np.fft.irfft(np.fft.rfft(signal, n) * np.fft.rfft(kernel, n), n)
    return np.resize(result, full)


def wait(result):
    pass  # NumPy returns when it is done


def download(result):
    return result
