"""Mean of every other row and column, plus one, in CuPy: slices and array methods, as in NumPy.

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
    return empty_pinned(shape, np.float64)


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float64, order="C"), blocking=True) for x in arrays)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if x.size == 0:
        return cp.array(cp.nan)
    return (x[::2, ::2] + 1).mean()


def wait(mean):
    cp.cuda.get_current_stream().synchronize()


def download(mean):
    return float(mean)


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, CuPy: 333 × 1,001 elements, all right")
