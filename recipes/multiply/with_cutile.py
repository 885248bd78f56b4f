"""Multiply two arrays in cuTile: a kernel in Python that computes a tile at a time, on CuPy's arrays.

Framework: cuTile
Runs on: NVIDIA GPU
Install: pip install "cuda-tile[tileiras]" "cupy-cuda13x[ctk]"
Environment: cutile
Follows: https://docs.nvidia.com/cuda/cutile-python/quickstart.html
Follows: https://docs.nvidia.com/cuda/cutile-python/data.html
Follows: https://docs.cupy.dev/en/stable/reference/generated/cupy.cuda.Graph.html

What a kernel does with two arrays that overlap is undefined, so an input that overlaps out or the other input is copied
first. A grid has fewer than 2**24 blocks, so more than 2**34 - 1,024 elements are a ValueError of cuTile's.
"""

import cuda.tile as ct
import cupy as cp
import numpy as np

TILE = 1024  # elements that one block computes; a power of two


@ct.kernel
def kernel(a: ct.IndexedWithInt64, b: ct.IndexedWithInt64, c: ct.IndexedWithInt64, TILE: ct.Constant[int]):
    i = ct.bid(0)
    # What is outside the array is neither read nor written.
    ct.store(c, (i,), ct.load(a, (i,), (TILE,)) * ct.load(b, (i,), (TILE,)))


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


def apart(a, b, out):
    """What the kernel reads: a and b, or room for a copy of what overlaps."""
    first = cp.empty_like(a) if cp.may_share_memory(a, out) else a
    second = cp.empty_like(b) if cp.may_share_memory(b, out) or cp.may_share_memory(b, first) else b
    return first, second


def launch(a, b, first, second, out):
    if first is not a:
        cp.copyto(first, a)
    if second is not b:
        cp.copyto(second, b)
    flat = [x.reshape(-1) for x in (first, second, out)]  # views
    ct.launch(cp.cuda.get_current_stream(), (ct.cdiv(a.size, TILE),), kernel, (*flat, TILE))


def multiply(a, b, out=None):
    out = output_for(a, b, out)
    if a.size:  # a grid of no blocks is an error
        launch(a, b, *apart(a, b, out), out)
    return out


def prepared(a, b, out=None):
    """Return a function without arguments: each call multiplies what a and b then hold, and returns the same out."""
    out = output_for(a, b, out)
    if not a.size:
        return lambda: out
    arrays = a, b, *apart(a, b, out), out
    with cp.cuda.Stream(non_blocking=True) as stream:  # the default stream cannot be captured
        stream.begin_capture()
        launch(*arrays)  # recorded, not run
        graph = stream.end_capture()

    def replay():
        graph.launch()
        return arrays[-1]  # the graph knows only addresses: this keeps the memory of all of them from being freed

    return replay


def wait(c):
    cp.cuda.get_current_stream().synchronize()


def download(c):
    return cp.asnumpy(c)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, cuTile: 1,000,003 elements, all right")
