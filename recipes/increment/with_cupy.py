"""Add one to an array in place in CuPy: the operator, as in NumPy.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.cupy.dev/en/stable/user_guide/basic.html
Follows: https://docs.cupy.dev/en/stable/user_guide/memory.html
"""

import cupy as cp
import numpy as np
from cupyx import empty_pinned


def pinned(shape):
    return empty_pinned(shape, np.float32)


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def increment(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    a += 1
    return a


def wait(a):
    cp.cuda.get_current_stream().synchronize()


def download(a, out=None):
    if out is not None and not (out.shape == a.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {a.shape}, not {out.dtype} {out.shape}")
    return cp.asnumpy(a, out=out)


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print("increment, CuPy: 1,000,003 elements, all right")
