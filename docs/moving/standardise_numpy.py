"""Standardise the columns of a table, and add up the large values: NumPy.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def surprise(x):
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return np.where(np.abs(z) > 2, z * z, 0).sum()


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 3, (20_000, 50))
    answer = surprise(x)
    z = (x - x.sum(axis=0) / len(x)) / np.sqrt(x.var(axis=0))
    np.testing.assert_allclose(answer, (z[np.abs(z) > 2] ** 2).sum(), rtol=1e-10)
    print(f"NumPy: {answer:.6f}")
