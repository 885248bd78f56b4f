"""Multiply two arrays in cuda.compute: a transformation of CUB's with an operator that it knows, on CuPy's arrays.

Framework: cuda.compute
Runs on: NVIDIA GPU
Install: pip install "cuda-cccl[cu13]" "cupy-cuda13x[ctk]"
Environment: cuda_compute
Follows: https://nvidia.github.io/cccl/unstable/python/compute.html

cuda.compute itself keeps a reference to the arrays of the last call, and so the memory, until the next call of the same
kind in the same thread, or until cuda.compute.clear_all_caches().
"""

import cupy as cp
import numpy as np
from cuda.compute import OpKind, binary_transform, make_binary_transform


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def output_for(a, b, out):
    out = cp.empty_like(a) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    if not all(x.flags.c_contiguous for x in (a, b, out)):
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    return out


def multiply(a, b, out=None):
    out = output_for(a, b, out)
    if a.size:
        stream = cp.cuda.get_current_stream()  # its own default is the legacy default stream
        binary_transform(d_in1=a, d_in2=b, d_out=out, op=OpKind.MULTIPLIES, num_items=a.size, stream=stream)
    return out


def prepared(a, b, out=None):
    """Return a function without arguments: each call multiplies what a and b then hold, and returns the same out."""
    out = output_for(a, b, out)
    if not a.size:
        return lambda: out
    given = {"d_in1": a, "d_in2": b, "d_out": out, "op": OpKind.MULTIPLIES}
    transform = make_binary_transform(**given)  # binary_transform() looks for it at each call

    def replay():
        transform(**given, num_items=a.size, stream=cp.cuda.get_current_stream())
        return out

    return replay


def wait(c):
    cp.cuda.get_current_stream().synchronize()


def download(c):
    return cp.asnumpy(c)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, cuda.compute: 1,000,003 elements, all right")
