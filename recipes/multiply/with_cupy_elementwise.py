"""Multiply two arrays in CuPy: an ElementwiseKernel, one line of C that CuPy applies to every element.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.cupy.dev/en/stable/user_guide/kernel.html#basics-of-elementwise-kernels
Math: float32, denormals are zero (CuPy compiles its kernels with -ftz=true)
"""

import cupy as cp
import numpy as np

kernel = cp.ElementwiseKernel("float32 a, float32 b", "float32 c", "c = a * b", "multiply")


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def multiply(a, b, out=None):
    out = cp.empty_like(a) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    return kernel(a, b, out)


def wait(c):
    cp.cuda.get_current_stream().synchronize()


def download(c):
    return cp.asnumpy(c)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, CuPy ElementwiseKernel: 1,000,003 elements, all right")
