"""Convolution in SciPy: fftconvolve.

Framework: SciPy
Runs on: CPU
Install: pip install scipy
Follows: https://docs.scipy.org/doc/scipy/reference/generated/scipy.signal.fftconvolve.html

It pads to a length with small prime factors, and transforms a single array on one core. Of a long signal and a short
kernel, scipy.signal.oaconvolve transforms blocks instead.
"""

import numpy as np
from scipy.signal import fftconvolve


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def convolution(signal, kernel):
    if not (signal.ndim == kernel.ndim == 1 and signal.dtype == kernel.dtype == np.float32):
        raise ValueError(
            f"convolution takes one-dimensional float32 arrays, not {signal.dtype} {signal.shape} and"
            f" {kernel.dtype} {kernel.shape}"
        )
    result = fftconvolve(signal, kernel, mode="full")
    return result.astype(np.float32, copy=False)  # an empty one is of float64


def wait(result):
    pass  # SciPy returns when it is done


def download(result):
    return result


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    signal, kernel = rng.standard_normal(10_007, np.float32), rng.standard_normal(101, np.float32)
    expected = np.convolve(signal.astype(np.float64), kernel)
    np.testing.assert_allclose(download(convolution(*upload(signal, kernel))), expected, rtol=0, atol=1e-4)
    print("convolution, SciPy: 10,007×101, all right")
