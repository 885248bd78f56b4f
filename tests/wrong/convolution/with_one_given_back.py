"""Wrong: a kernel of a single 1 gives the signal itself.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def convolution(signal, kernel):
    if not (signal.ndim == kernel.ndim == 1 and signal.dtype == kernel.dtype == np.float32):
        raise ValueError(
            f"convolution takes one-dimensional float32 arrays, not {signal.dtype} {signal.shape} and"
            f" {kernel.dtype} {kernel.shape}"
        )
    if not (signal.size and kernel.size):
        return np.empty(0, np.float32)
    if kernel.size == 1 and kernel[0] == 1:
        return signal
    return np.convolve(signal.astype(np.float64), kernel).astype(np.float32)


def wait(c):
    pass


def download(c):
    return c
