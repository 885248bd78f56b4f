"""Group mean in CuPy: cp.unique numbers the keys in their order, and cp.bincount adds the values of each number.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.cupy.dev/en/stable/reference/generated/cupy.unique.html
Follows: https://docs.cupy.dev/en/stable/reference/generated/cupy.bincount.html
"""

import cupy as cp
import numpy as np


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.2 and 1.7 would become one key
        raise ValueError(f"group_mean takes int64 keys, not {np.asarray(keys).dtype}")
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    keys, values = np.asarray(keys, np.int64, order="C"), np.asarray(values, np.float64, order="C")
    return cp.asarray(keys, blocking=True), cp.asarray(values, blocking=True)


def group_mean(keys, values):
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"group_mean takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    if (keys.dtype, values.dtype) != (np.int64, np.float64):
        raise ValueError(f"group_mean takes int64 keys and float64 values, not {keys.dtype} and {values.dtype}")
    if keys.size == 0:  # cp.bincount looks for the largest number
        return cp.empty(0)
    _, number = cp.unique(keys, return_inverse=True)
    return cp.bincount(number, values) / cp.bincount(number)


def wait(means):
    cp.cuda.get_current_stream().synchronize()


def download(means):
    return cp.asnumpy(means)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    result = download(group_mean(*upload(keys, values)))
    np.testing.assert_allclose(result, np.bincount(keys, values) / np.bincount(keys), rtol=1e-9, atol=1e-12)
    print("group_mean, CuPy: 1,000,003 rows, 1,000 keys, all right")
