"""Convolution in SciPy on CuPy's arrays: the same fftconvolve dispatches to cupyx.scipy.

Framework: SciPy
Runs on: NVIDIA GPU
Install: pip install "scipy>=1.16" "cupy-cuda13x[ctk]"
Follows: https://docs.scipy.org/doc/scipy/reference/generated/scipy.signal.fftconvolve.html
Follows: https://docs.scipy.org/doc/scipy/dev/api-dev/array_api.html

SciPy supports the Array API, experimentally, if the environment variable SCIPY_ARRAY_API is 1 before it is imported:
gpu-cookbook sets it so. On a GPU, fftconvolve then takes arrays of CuPy and JAX, but none of PyTorch, as its page says.
CuPy counts the values of a transform with 32 bits.
"""

import cupy as cp
import numpy as np
from scipy.signal import fftconvolve


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def convolution(signal, kernel):
    if not (signal.ndim == kernel.ndim == 1 and signal.dtype == kernel.dtype == np.float32):
        raise ValueError(
            f"convolution takes one-dimensional float32 arrays, not {signal.dtype} {signal.shape} and"
            f" {kernel.dtype} {kernel.shape}"
        )
    if signal.size + kernel.size > 2**30:
        raise ValueError(f"CuPy counts with 32 bits: at most 2**30 values together, not {signal.shape}, {kernel.shape}")
    return fftconvolve(signal, kernel, mode="full")


def wait(result):
    cp.cuda.get_current_stream().synchronize()


def download(result):
    return cp.asnumpy(result)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    signal, kernel = rng.standard_normal(10_007, np.float32), rng.standard_normal(101, np.float32)
    expected = np.convolve(signal.astype(np.float64), kernel)
    np.testing.assert_allclose(download(convolution(*upload(signal, kernel))), expected, rtol=0, atol=1e-4)
    print("convolution, SciPy and CuPy: 10,007×101, all right")
