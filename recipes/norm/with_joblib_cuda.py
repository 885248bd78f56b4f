"""Norm of an array in joblib: CuPy on every GPU, one thread each.

Framework: joblib
Runs on: every NVIDIA GPU
Install: pip install joblib "cupy-cuda13x[ctk]"
Follows: https://joblib.readthedocs.io/en/stable/parallel.html#thread-based-parallelism-vs-process-based-parallelism
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
    """An array of this shape, flat and cut into one part per GPU."""

    shape: tuple
    dtype: np.dtype
    parts: list


def each(function, parts):
    """The function on the part of each GPU, in a thread of its own: launches and copies soon release the GIL."""

    def on(gpu, part):
        with cp.cuda.Device(gpu):
            return function(part)

    return Parallel(n_jobs=GPUS, require="sharedmem")(delayed(on)(gpu, part) for gpu, part in enumerate(parts))


def upload(*arrays):
    arrays = [np.asarray(x, np.float32, order="C") for x in arrays]
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    copy = partial(cp.asarray, blocking=True)
    return tuple(Parts(x.shape, x.dtype, each(copy, np.array_split(x.reshape(-1), GPUS))) for x in arrays)


def norm(x):
    """The norm of each GPU's part: download() makes one of them."""
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    return each(cp.linalg.norm, x.parts)


def wait(norms):
    for norm in norms:
        norm.device.synchronize()


def download(norms):
    wait(norms)  # what is read here is read in a stream of the caller's, and the work was in those of other threads
    return np.linalg.norm(np.array([norm.get() for norm in norms]))


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print(f"norm, joblib and CuPy on {GPUS} GPUs: 1,000,003 elements, all right")
