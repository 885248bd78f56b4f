"""Group mean in NumPy: np.unique numbers the keys in their order, and np.bincount adds the values of each number.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Follows: https://numpy.org/doc/stable/reference/generated/numpy.unique.html
Follows: https://numpy.org/doc/stable/reference/generated/numpy.bincount.html
Environment: every

np.unique sorts the keys, which takes most of the time. Where keys are known to be small and not negative, np.bincount
can take them as they are; it makes an array as long as the largest of them.
"""

import numpy as np


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.2 and 1.7 would become one key
        raise ValueError(f"group_mean takes int64 keys, not {np.asarray(keys).dtype}")
    return np.asarray(keys, np.int64, order="C"), np.asarray(values, np.float64, order="C")


def group_mean(keys, values):
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"group_mean takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    if (keys.dtype, values.dtype) != (np.int64, np.float64):
        raise ValueError(f"group_mean takes int64 keys and float64 values, not {keys.dtype} and {values.dtype}")
    _, number = np.unique(keys, return_inverse=True)
    return np.bincount(number, values) / np.bincount(number)


def wait(means):
    pass  # NumPy returns when it is done


def download(means):
    return means


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    result = download(group_mean(*upload(keys, values)))
    np.testing.assert_allclose(result, np.bincount(keys, values) / np.bincount(keys), rtol=1e-9, atol=1e-12)
    print("group_mean, NumPy: 1,000,003 rows, 1,000 keys, all right")
