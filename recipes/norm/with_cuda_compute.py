"""Norm of an array in cuda.compute: CUB's reduction of an iterator that squares what is in CuPy's array.

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
from cuda.compute import OpKind, TransformIterator, make_reduce_into
from cuda.compute.types import float32


def square(x):
    return x * x


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    if not x.flags.c_contiguous:
        raise ValueError("norm takes a C-contiguous array, as upload() makes it")
    if x.size == 0:
        return cp.zeros(1, np.float32)
    squares = TransformIterator(x.reshape(-1), square, float32)
    total, zero = cp.empty(1, np.float32), np.zeros(1, np.float32)
    reduce = make_reduce_into(d_in=squares, d_out=total, op=OpKind.PLUS, h_init=zero)
    given = {"d_in": squares, "d_out": total, "op": OpKind.PLUS, "num_items": x.size, "h_init": zero}
    # reduce_into() would take this room from CUDA's default pool, and change how much that pool keeps.
    room = cp.empty(reduce(temp_storage=None, **given), np.uint8)
    reduce(temp_storage=room, **given, stream=cp.cuda.get_current_stream())
    return cp.sqrt(total)


def wait(norm):
    cp.cuda.get_current_stream().synchronize()


def download(norm):
    return cp.asnumpy(norm)[0]


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, cuda.compute: 1,000,003 elements, all right")
