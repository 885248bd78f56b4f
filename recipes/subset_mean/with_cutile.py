"""Mean of every other row and column, plus one, in cuTile: a kernel in Python adds, and CuPy adds its sums.

Framework: cuTile
Runs on: NVIDIA GPU
Install: pip install "cuda-tile[tileiras]" "cupy-cuda13x[ctk]"
Environment: cutile
Follows: https://docs.nvidia.com/cuda/cutile-python/quickstart.html
"""

import cuda.tile as ct
import cupy as cp
import numpy as np

BLOCKS, TILE = 4096, 512  # at most this many blocks, which fill any GPU; elements that one adds at a time


@ct.kernel
def add_subset(x: ct.IndexedWithInt64, sums: ct.IndexedWithInt64, TILE: ct.Constant[int]):
    block, blocks = ct.bid(0), ct.num_blocks(0)
    total = ct.zeros((TILE,), ct.float64)
    for row in range(ct.int64(2) * block, x.shape[0], ct.int64(2) * blocks):
        for tile in range(ct.cdiv(x.shape[1], 2 * TILE)):
            column = 2 * (ct.int64(TILE) * tile + ct.arange(TILE, dtype=ct.int64))
            # gather() reads nothing outside the array.
            total = total + ct.where(column < x.shape[1], ct.gather(x, (row, column)) + 1, 0.0)
    ct.store(sums, (block,), ct.sum(total))  # no atomics: the same answer every time


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float64, order="C"), blocking=True) for x in arrays)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if not x.flags.c_contiguous:
        raise ValueError("subset_mean takes a C-contiguous array, as upload() makes it")
    rows, columns = x.shape
    if x.size == 0:
        return cp.array(cp.nan)
    blocks = min(BLOCKS, (rows + 1) // 2)
    sums = cp.empty(blocks)
    ct.launch(cp.cuda.get_current_stream(), (blocks,), add_subset, (x, sums, TILE))
    return sums.sum() / (((rows + 1) // 2) * ((columns + 1) // 2))


def wait(mean):
    cp.cuda.get_current_stream().synchronize()


def download(mean):
    return float(mean)


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, cuTile: 333 × 1,001 elements, all right")
