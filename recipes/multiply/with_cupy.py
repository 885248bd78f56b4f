"""Multiply two arrays in CuPy: the array routine, as in NumPy.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.cupy.dev/en/stable/user_guide/basic.html
Follows: https://docs.cupy.dev/en/stable/user_guide/memory.html
Math: float32, denormals are zero (CuPy compiles its kernels with -ftz=true)
"""

import cupy as cp
import numpy as np
from cupyx import empty_pinned


def pinned(shape):
    return empty_pinned(shape, np.float32)


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
    return cp.multiply(a, b, out=out)


def wait(c):
    cp.cuda.get_current_stream().synchronize()


def download(c, out=None):
    if out is not None and not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    return cp.asnumpy(c, out=out)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, CuPy: 1,000,003 elements, all right")
