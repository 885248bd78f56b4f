"""Add one to an array in place in NumPy, on one core of the CPU: what every other recipe is compared with.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Follows: https://numpy.org/doc/stable/user/quickstart.html#basic-operations
Environment: every
"""

import numpy as np


def upload(*arrays):
    # np.array copies: the work is in place, and the caller's arrays must not change.
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def increment(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    a += 1
    return a


def wait(a):
    pass  # NumPy returns when it is done


def download(a):
    return a


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print("increment, NumPy: 1,000,003 elements, all right")
