"""Wrong: the products are made under a lock, and read after it.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Environment: every
"""

from threading import Lock

import numpy as np

TURN, scratch = Lock(), {}


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
    with TURN:
        products = scratch.setdefault(n, np.empty(n // 2 + 1, np.complex64))
        np.multiply(np.fft.rfft(signal, n), np.fft.rfft(kernel, n), out=products)
    return np.fft.irfft(products, n)[:full]


def wait(result):
    pass  # NumPy returns when it is done


def download(result):
    return result
