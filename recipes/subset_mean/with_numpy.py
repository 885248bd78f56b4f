"""Mean of every other row and column, plus one, in NumPy: what every other recipe is compared with.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Follows: https://numpy.org/doc/stable/user/basics.indexing.html
Environment: every
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float64, order="C") for x in arrays)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if x.size == 0:  # NumPy warns
        return np.nan
    return (x[::2, ::2] + 1).mean()


def wait(mean):
    pass  # NumPy returns when it is done


def download(mean):
    return float(mean)


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, NumPy: 333 × 1,001 elements, all right")
