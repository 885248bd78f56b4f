"""Multiply two arrays in joblib: CuPy on every GPU, one thread each.

Framework: joblib
Runs on: every NVIDIA GPU
Install: pip install joblib "cupy-cuda13x[ctk]"
Follows: https://joblib.readthedocs.io/en/stable/parallel.html#thread-based-parallelism-vs-process-based-parallelism
Math: float32, denormals are zero (CuPy compiles its kernels with -ftz=true)
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


def each(function, *parts):
    """The function on the parts of each GPU, in a thread of its own: launches and copies soon release the GIL."""

    def on(gpu, *parts):
        with cp.cuda.Device(gpu):
            return function(*parts)

    return Parallel(n_jobs=GPUS, require="sharedmem")(
        delayed(on)(gpu, *p) for gpu, p in enumerate(zip(*parts, strict=True))
    )


def upload(*arrays):
    arrays = [np.asarray(x, np.float32, order="C") for x in arrays]
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    copy = partial(cp.asarray, blocking=True)
    return tuple(Parts(x.shape, x.dtype, each(copy, np.array_split(x.reshape(-1), GPUS))) for x in arrays)


def multiply(a, b, out=None):
    out = Parts(a.shape, a.dtype, [None] * GPUS) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    out.parts = each(lambda x, y, z: cp.multiply(x, y, out=z), a.parts, b.parts, out.parts)
    return out


def wait(c):
    for part in c.parts:
        part.device.synchronize()


def download(c):
    host = np.empty(c.shape, c.dtype)
    each(lambda part, to: part.get(out=to), c.parts, np.array_split(host.reshape(-1), GPUS))
    return host


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print(f"multiply, joblib and CuPy on {GPUS} GPUs: 1,000,003 elements, all right")
