"""Group mean by strings in NumPy: np.unique numbers the keys in their order, and np.bincount adds up by number.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Follows: https://numpy.org/doc/stable/reference/generated/numpy.unique.html
Follows: https://numpy.org/doc/stable/reference/generated/numpy.bincount.html
Environment: every

The strings are bytes of one width, of which NumPy reads and sorts 20 for each key.
"""

import numpy as np


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.2 and 1.7 would become one key
        raise ValueError(f"group_mean_strings takes int64 keys, not {np.asarray(keys).dtype}")
    keys, values = np.asarray(keys, np.int64), np.asarray(values, np.float64, order="C")
    strings = keys.astype("S20", order="C")
    return np.strings.zfill(strings, 20) if keys.size else strings, values  # zfill looks for the longest


def group_mean_strings(keys, values):
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"group_mean_strings takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    if (keys.dtype.kind, values.dtype) != ("S", np.float64):
        raise ValueError(f"group_mean_strings takes bytes and float64 values, not {keys.dtype} and {values.dtype}")
    _, number = np.unique(keys, return_inverse=True)
    return np.bincount(number, values) / np.bincount(number)


def wait(means):
    pass  # NumPy returns when it is done


def download(means):
    return means


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    result = download(group_mean_strings(*upload(keys, values)))
    np.testing.assert_allclose(result, np.bincount(keys, values) / np.bincount(keys), rtol=1e-9, atol=1e-12)
    print("group_mean_strings, NumPy: 1,000,003 rows, 1,000 keys, all right")
