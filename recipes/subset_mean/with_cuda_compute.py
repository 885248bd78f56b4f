"""Mean of every other row and column, plus one, in cuda.compute: CUB's reduction of iterators over CuPy's array.

Framework: cuda.compute
Runs on: NVIDIA GPU
Install: pip install "cuda-cccl[cu13]" "cupy-cuda13x[ctk]"
Environment: cuda_compute
Follows: https://nvidia.github.io/cccl/unstable/python/compute.html
"""

import cupy as cp
import numpy as np
from cuda.compute import (
    ConstantIterator,
    CountingIterator,
    OpKind,
    PermutationIterator,
    TransformIterator,
    ZipIterator,
    make_reduce_into,
)
from cuda.compute.types import float64, int64


def place(item):  # of the k-th element of the subset, in the whole array
    k, across, columns, first = item[0], item[1], item[2], item[3]
    return first + k // across * 2 * columns + k % across * 2


def add_one(x):
    return x + 1.0


def add_subset(x, first_row, first_column):
    """The sum over x[first_row::2, first_column::2] + 1, an array of one element."""
    rows, columns = x.shape
    down, across = (rows - first_row + 1) // 2, (columns - first_column + 1) // 2
    # Zipped with a count, they are what a kernel's arguments are: no other shape needs another compilation.
    numbers = [ConstantIterator(np.int64(n)) for n in (across, columns, first_row * columns + first_column)]
    places = TransformIterator(ZipIterator(CountingIterator(np.int64(0)), *numbers), place, int64)
    values = TransformIterator(PermutationIterator(x.reshape(-1), places), add_one, float64)
    total, zero = cp.empty(1), np.zeros(1)
    reduce = make_reduce_into(d_in=values, d_out=total, op=OpKind.PLUS, h_init=zero)
    given = {"d_in": values, "d_out": total, "op": OpKind.PLUS, "num_items": down * across, "h_init": zero}
    # reduce_into() would take this room from CUDA's default pool, and change how much that pool keeps.
    room = cp.empty(reduce(temp_storage=None, **given), np.uint8)
    reduce(temp_storage=room, **given, stream=cp.cuda.get_current_stream())
    return total


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float64, order="C"), blocking=True) for x in arrays)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if not x.flags.c_contiguous:
        raise ValueError("subset_mean takes a C-contiguous array, as upload() makes it")
    count = ((x.shape[0] + 1) // 2) * ((x.shape[1] + 1) // 2)
    return add_subset(x, 0, 0) / count if count else cp.full(1, cp.nan)


def wait(mean):
    cp.cuda.get_current_stream().synchronize()


def download(mean):
    return float(mean[0])


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, cuda.compute: 333 × 1,001 elements, all right")
