"""Wrong: it is not padded, and the last results are added to the first.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def convolution(signal, kernel):
    if not (signal.ndim == kernel.ndim == 1 and signal.dtype == kernel.dtype == np.float32):
        raise ValueError(f"not {signal.dtype} {signal.shape} and {kernel.dtype} {kernel.shape}")
    if not (signal.size and kernel.size):
        return np.empty(0, np.float32)
    full = signal.size + kernel.size - 1
    n = max(signal.size, kernel.size)
    ring = np.fft.irfft(np.fft.rfft(signal, n) * np.fft.rfft(kernel, n), n)
    return np.resize(ring, full)


def wait(result):
    pass


def download(result):
    return result
