"""Standardise the columns of a table, and add up the large values: Dask.

Framework: Dask
Runs on: CPU
Install: pip install "dask[complete]"
"""

import dask.array as da
import numpy as np


def surprise(x):
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return da.where(da.fabs(z) > 2, z * z, 0).sum()


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 3, (20_000, 50))
    lazy = surprise(da.from_array(x, chunks=(5_000, 50)))  # a plan: nothing is computed yet
    answer = float(lazy.compute(scheduler="threads"))
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    np.testing.assert_allclose(answer, (z[np.abs(z) > 2] ** 2).sum(), rtol=1e-10)
    print(f"Dask: {answer:.6f}")
