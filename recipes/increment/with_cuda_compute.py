"""Add one to an array in place in cuda.compute: a transformation of CUB's with a Python function, on CuPy's array.

Framework: cuda.compute
Runs on: NVIDIA GPU
Install: pip install "cuda-cccl[cu13]" "cupy-cuda13x[ctk]"
Environment: cuda_compute
Follows: https://nvidia.github.io/cccl/unstable/python/compute.html

cuda.compute itself keeps a reference to the array of the last call, and so the memory, until the next call of the same
kind in the same thread, or until cuda.compute.clear_all_caches().
"""

import cupy as cp
import numpy as np
from cuda.compute import make_unary_transform, unary_transform


def add_one(x):
    return x + np.float32(1)  # a plain 1 would make it float64 for a moment


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def validate(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    if not a.flags.c_contiguous:
        raise ValueError("increment takes a C-contiguous array, as upload() makes it")


def increment(a):
    validate(a)
    if a.size:
        stream = cp.cuda.get_current_stream()  # its own default is the legacy default stream
        unary_transform(d_in=a, d_out=a, op=add_one, num_items=a.size, stream=stream)
    return a


def prepared(a):
    """Return a function without arguments: each call adds one to what a then holds, and returns a."""
    validate(a)
    if not a.size:
        return lambda: a
    given = {"d_in": a, "d_out": a, "op": add_one}
    transform = make_unary_transform(**given)  # unary_transform() looks for it at each call

    def replay():
        transform(**given, num_items=a.size, stream=cp.cuda.get_current_stream())
        return a

    return replay


def wait(a):
    cp.cuda.get_current_stream().synchronize()


def download(a):
    return cp.asnumpy(a)


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print("increment, cuda.compute: 1,000,003 elements, all right")
