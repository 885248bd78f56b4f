"""Norm of an array in CuPy: its own function, as in NumPy.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.cupy.dev/en/stable/reference/generated/cupy.linalg.norm.html
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


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    return cp.linalg.norm(x)


def wait(norm):
    cp.cuda.get_current_stream().synchronize()


def download(norm):
    return cp.asnumpy(norm)


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, CuPy: 1,000,003 elements, all right")
