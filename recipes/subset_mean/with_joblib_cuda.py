"""Mean of every other row and column, plus one, in joblib: CuPy on every GPU, one thread each.

Framework: joblib
Runs on: every NVIDIA GPU
Install: pip install joblib "cupy-cuda13x[ctk]"
Follows: https://joblib.readthedocs.io/en/stable/parallel.html
Engine: joblib, threads
"""

from dataclasses import dataclass
from functools import partial

import cupy as cp
import numpy as np
from joblib import Parallel, delayed

GPUS = cp.cuda.runtime.getDeviceCount()


@dataclass
class Parts:
    """An array of this shape, its rows cut into one part per GPU."""

    shape: tuple
    dtype: np.dtype
    parts: list


def each(function, parts):
    """The function on the part of each GPU, in its own thread: a launch or a copy soon lets go of the GIL."""

    def on(gpu, part):
        with cp.cuda.Device(gpu):
            return function(part)

    return Parallel(n_jobs=GPUS, require="sharedmem")(delayed(on)(gpu, part) for gpu, part in enumerate(parts))


def upload(*arrays):
    arrays = [np.asarray(x, np.float64, order="C") for x in arrays]
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    copy = partial(cp.asarray, blocking=True)
    return tuple(Parts(x.shape, x.dtype, each(copy, cut(x))) for x in arrays)


def cut(x):
    """Each part starts at an even row of the whole array, so that x[::2] of it is its part of the subset."""
    x = np.atleast_1d(x)
    return np.split(x, [len(x) * gpu // (2 * GPUS) * 2 for gpu in range(1, GPUS)])


def subset_mean(x):
    """Each GPU's share of the mean: they add up to it."""
    if len(x.shape) != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    count = ((x.shape[0] + 1) // 2) * ((x.shape[1] + 1) // 2)
    return each(lambda part: (part[::2, ::2] + 1).sum() / count, x.parts)  # 0 / 0 is NaN on the device


def wait(shares):
    for share in shares:
        share.device.synchronize()


def download(shares):
    wait(shares)  # what is read here is read in a stream of the caller's, and the work was in those of other threads
    return sum(float(share) for share in shares)


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print(f"subset_mean, joblib and CuPy on {GPUS} GPUs: 333 × 1,001 elements, all right")
