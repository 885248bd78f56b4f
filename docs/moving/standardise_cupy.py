"""Standardise the columns of a table, and add up the large values: CuPy.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
"""

import cupy as cp
import numpy as np


def surprise(x):
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return cp.where(cp.abs(z) > 2, z * z, 0).sum()


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 3, (20_000, 50))
    answer = float(surprise(cp.asarray(x)))  # one upload at the start; one number comes back at the end
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    np.testing.assert_allclose(answer, (z[np.abs(z) > 2] ** 2).sum(), rtol=1e-10)
    print(f"CuPy: {answer:.6f}")
