"""Wrong: two empty arrays have a negative number of results.

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
    full = signal.size + kernel.size - 1
    result = np.zeros(full, np.float32)
    if not (signal.size and kernel.size):
        return result[:0]
    n = 1 << (full - 1).bit_length()  # at least as many, and a power of two: transforms of those are fast
    return np.fft.irfft(np.fft.rfft(signal, n) * np.fft.rfft(kernel, n), n)[:full]


def wait(result):
    pass  # NumPy returns when it is done


def download(result):
    return result
