"""Norm of an array in cuTile: a kernel in Python adds up the squares of tiles, and CuPy its sums.

Framework: cuTile
Runs on: NVIDIA GPU
Install: pip install "cuda-tile[tileiras]" "cupy-cuda13x[ctk]"
Environment: cutile
Follows: https://docs.nvidia.com/cuda/cutile-python/quickstart.html
"""

import cuda.tile as ct
import cupy as cp
import numpy as np

BLOCKS, TILE = 4096, 1024  # at most this many blocks, which fill any GPU; elements that one adds at a time


@ct.kernel
def add_squares(x: ct.IndexedWithInt64, sums: ct.IndexedWithInt64, TILE: ct.Constant[int]):
    total = ct.zeros((TILE,), ct.float32)
    for i in range(ct.bid(0), ct.num_tiles(x, axis=0, shape=(TILE,)), ct.num_blocks(0)):
        values = ct.load(x, (i,), (TILE,), padding_mode=ct.PaddingMode.ZERO)  # zeros outside the array add nothing
        total = total + values * values
    ct.store(sums, (ct.bid(0),), ct.sum(total))  # no atomics: the same answer every time


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    if not x.flags.c_contiguous:
        raise ValueError("norm takes a C-contiguous array, as upload() makes it")
    if x.size == 0:  # a grid of no blocks is an error
        return cp.zeros((), np.float32)
    sums = cp.empty(min(BLOCKS, ct.cdiv(x.size, TILE)), np.float32)
    ct.launch(cp.cuda.get_current_stream(), (sums.size,), add_squares, (x.reshape(-1), sums, TILE))  # a view
    return cp.sqrt(sums.sum())


def wait(norm):
    cp.cuda.get_current_stream().synchronize()


def download(norm):
    return cp.asnumpy(norm)


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, cuTile: 1,000,003 elements, all right")
