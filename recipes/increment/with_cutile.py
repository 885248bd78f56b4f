"""Add one to an array in place in cuTile: a kernel in Python that changes a tile at a time of CuPy's array.

Framework: cuTile
Runs on: NVIDIA GPU
Install: pip install "cuda-tile[tileiras]" "cupy-cuda13x[ctk]"
Environment: cutile
Follows: https://docs.nvidia.com/cuda/cutile-python/quickstart.html
Follows: https://docs.nvidia.com/cuda/cutile-python/data.html
Follows: https://docs.cupy.dev/en/stable/reference/generated/cupy.cuda.Graph.html

What a kernel does with two arrays that overlap is undefined; this one is given a single array, whose loads and stores
stay in order within a block. A grid has fewer than 2**24 blocks, so more than 2**34 - 1,024 elements are a ValueError
of cuTile's.
"""

import cuda.tile as ct
import cupy as cp
import numpy as np

TILE = 1024  # elements that one block changes; a power of two


@ct.kernel
def kernel(a: ct.IndexedWithInt64, TILE: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(a, (i,), ct.load(a, (i,), (TILE,)) + 1)  # what is outside the array is neither read nor written


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def validate(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    if not a.flags.c_contiguous:
        raise ValueError("increment takes a C-contiguous array, as upload() makes it")


def launch(a):
    flat = a.reshape(-1)  # a view
    ct.launch(cp.cuda.get_current_stream(), (ct.cdiv(a.size, TILE),), kernel, (flat, TILE))


def increment(a):
    validate(a)
    if a.size:  # a grid of no blocks is an error
        launch(a)
    return a


def prepared(a):
    """Return a function without arguments: each call adds one to what a then holds, and returns a."""
    validate(a)
    if not a.size:
        return lambda: a
    with cp.cuda.Stream(non_blocking=True) as stream:  # the default stream cannot be captured
        stream.begin_capture()
        launch(a)  # recorded, not run
        graph = stream.end_capture()

    def replay():
        graph.launch()
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
    print("increment, cuTile: 1,000,003 elements, all right")
