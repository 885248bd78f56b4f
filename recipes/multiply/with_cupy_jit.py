"""Multiply two arrays in CuPy: a kernel in Python, translated to CUDA C by cupyx.jit (which CuPy calls experimental).

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.cupy.dev/en/stable/user_guide/kernel.html#jit-kernel-definition
Math: float32, denormals are zero (CuPy compiles its kernels with -ftz=true)
"""

import cupy as cp
import numpy as np
from cupyx import jit

THREADS = 256  # per block; a multiple of the 32 of a warp


@jit.rawkernel()
def kernel(a, b, c, n):
    # jit.grid(1) has 32 bits, and wraps at 2**32 elements.
    i = np.int64(jit.blockIdx.x) * np.int64(jit.blockDim.x) + np.int64(jit.threadIdx.x)
    if i < n:  # the last block is rarely full
        c[i] = a[i] * b[i]


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def multiply(a, b, out=None):
    out = cp.empty(a.shape, a.dtype) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    if not all(x.flags.c_contiguous for x in (a, b, out)):
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    if a.size:  # a grid of no blocks is an error
        blocks = (a.size + THREADS - 1) // THREADS
        # Flat views: a[i] of a two-dimensional array would be a row.
        kernel((blocks,), (THREADS,), (a.ravel(), b.ravel(), out.ravel(), np.int64(a.size)))
    return out


def wait(c):
    cp.cuda.get_current_stream().synchronize()


def download(c):
    return cp.asnumpy(c)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, cupyx.jit: 1,000,003 elements, all right")
