"""Mean of every other row and column, plus one, in joblib: NumPy on every core of the CPU, one thread each.

Framework: joblib
Runs on: CPU
Install: pip install joblib numpy
Follows: https://joblib.readthedocs.io/en/stable/parallel.html
Engine: joblib, threads
"""

import numpy as np
from joblib import Parallel, cpu_count, delayed


def upload(*arrays):
    return tuple(np.asarray(x, np.float64, order="C") for x in arrays)


def part_sum(subset):
    return (subset + 1).sum()


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if x.size == 0:
        return np.nan
    subset = x[::2, ::2]
    # Slices are views. Threads, not processes: they share the memory, nothing is copied, and NumPy lets go of the GIL
    # while it adds, so that all of them run.
    parts = np.array_split(subset, cpu_count())
    sums = Parallel(n_jobs=-1, require="sharedmem")(delayed(part_sum)(part) for part in parts)
    return sum(sums) / subset.size


def wait(mean):
    pass  # Parallel returns when all its threads are done


def download(mean):
    return float(mean)


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, joblib: 333 × 1,001 elements, all right")
