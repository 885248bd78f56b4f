"""Norm of an array in NumPy: what every other recipe is compared with.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Follows: https://numpy.org/doc/stable/reference/generated/numpy.linalg.norm.html
Environment: every

The norm of the norms of blocks. np.linalg.norm(x) of the whole array is as fast, but BLAS then adds all squares in
float32: with OpenBLAS on a CPU of two cores, that of 2**28 elements is 0.2 % too small.
"""

import numpy as np

BLOCK = 2**16  # elements; a block stays in a core's cache


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    flat = x.reshape(-1)  # a view
    norms = [np.linalg.norm(flat[i : i + BLOCK]) for i in range(0, flat.size, BLOCK)]
    return np.linalg.norm(np.array(norms, np.float32))


def wait(norm):
    pass  # NumPy returns when it is done


def download(norm):
    return norm


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, NumPy: 1,000,003 elements, all right")
