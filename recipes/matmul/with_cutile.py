"""Multiply two matrices in cuTile: a kernel in Python that computes a tile at a time with ct.mma, on CuPy's arrays.

Framework: cuTile
Runs on: NVIDIA GPU
Install: pip install "cuda-tile[tileiras]" "cupy-cuda13x[ctk]"
Environment: cutile
Follows: https://docs.nvidia.com/cuda/cutile-python/quickstart.html
Follows: https://docs.nvidia.com/cuda/cutile-python/data.html
Follows: https://docs.cupy.dev/en/stable/reference/generated/cupy.cuda.Graph.html
Math: float32, TF32 off (ct.mma takes TF32 only from tiles of ct.tfloat32)

What a kernel does with two arrays that overlap is undefined, so b is copied first if it overlaps a. A grid has fewer
than 2**24 blocks, so a c of more tiles is a ValueError of cuTile's.
"""

import cuda.tile as ct
import cupy as cp
import numpy as np

M, N, K = 64, 64, 32  # a block computes M×N elements of c, from M×K elements of a and K×N of b at a time


@ct.kernel
def kernel(
    a: ct.IndexedWithInt64,
    b: ct.IndexedWithInt64,
    c: ct.IndexedWithInt64,
    M: ct.Constant[int],
    N: ct.Constant[int],
    K: ct.Constant[int],
):
    across = ct.num_tiles(c, axis=1, shape=(M, N))
    y, x = ct.bid(0) // across, ct.bid(0) % across  # the second axis of a grid is limited to 65,535
    total = ct.zeros((M, N), ct.float32)
    for i in range(ct.num_tiles(a, axis=1, shape=(M, K))):
        # Zeros outside a and b add nothing.
        left = ct.load(a, (y, i), (M, K), padding_mode=ct.PaddingMode.ZERO)
        right = ct.load(b, (i, x), (K, N), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(left, right, total)
    ct.store(c, (y, x), total)


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def output_for(a, b, out):
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32
    if right and out is not None:
        right = out.shape == (a.shape[0], b.shape[1]) and out.dtype == np.float32
    if not right:
        raise ValueError(
            f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            + ("" if out is None else f" into {out.dtype} {out.shape}")
        )
    out = cp.empty((a.shape[0], b.shape[1]), np.float32) if out is None else out
    if not all(x.flags.c_contiguous for x in (a, b, out)):
        raise ValueError("matmul takes C-contiguous arrays, as upload() makes them")
    if out.size and (cp.may_share_memory(out, a) or cp.may_share_memory(out, b)):
        raise ValueError("matmul takes an out that is neither a nor b")
    return out


def apart(a, b):
    """What the kernel reads as b: b itself, or room for a copy if it overlaps a."""
    return cp.empty_like(b) if cp.may_share_memory(a, b) else b


def launch(a, b, right, out):
    if right is not b:
        cp.copyto(right, b)
    grid = (ct.cdiv(out.shape[0], M) * ct.cdiv(out.shape[1], N),)
    ct.launch(cp.cuda.get_current_stream(), grid, kernel, (a, right, out, M, N, K))


def matmul(a, b, out=None):
    out = output_for(a, b, out)
    if out.size and a.size == 0:  # K is 0
        out.fill(0)
    elif out.size:  # a grid of no blocks is an error
        launch(a, b, apart(a, b), out)
    return out


def prepared(a, b, out=None):
    """Return a function without arguments: each call multiplies what a and b then hold, and returns the same out."""
    out = output_for(a, b, out)
    if not (out.size and a.size):
        return lambda: matmul(a, b, out)
    arrays = a, b, apart(a, b), out
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
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, cuTile: 200×200×200, all right")
