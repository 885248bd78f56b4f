"""Multiply two matrices in CuPy, tuned for host arrays: pinned memory, and one CUDA graph for a small product.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Math: float32, TF32 off (CuPy's default; the environment's CUPY_TF32=1 turns it on)

Copying a small matrix takes longer than multiplying it. One graph does it all: the GPU fetches both factors from pinned
memory, multiplies them, and writes into pinned memory. Small means K up to 256 and at most one tile of 20 × 16 per
multiprocessor. round_trip() copies any host arrays into pinned ones first; with pinned_product() you fill them in
yourself. This file is longer than 60 lines because it records that graph.
"""

from functools import lru_cache
from itertools import cycle
from pathlib import Path
from threading import Lock

import cupy as cp
import numpy as np
from cupyx import empty_pinned

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul_tuned.cu").read_text()
ROWS, COLUMNS, MOST_K, THREADS = 20, 16, 256, 224  # as in the kernel

module = cp.RawModule(code=KERNEL)
kernel, copy = module.get_function("matmul"), module.get_function("copy")
multiprocessors = cp.cuda.Device().attributes["MultiProcessorCount"]
lock = Lock()


def upload(*arrays):
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C")) for x in arrays)


def matmul(a, b, out=None):
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32
    if right and out is not None:
        right = out.shape == (a.shape[0], b.shape[1]) and out.dtype == np.float32
    if not right:
        raise ValueError(
            f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            + ("" if out is None else f" into {out.dtype} {out.shape}")
        )
    return cp.matmul(a, b, out=out)


def wait(c):
    cp.cuda.get_current_stream().synchronize()


def download(c):
    return cp.asnumpy(c)


def pinned_product(m, k, n):
    """Pinned arrays a and b to fill in, and product(), which returns a @ b as a new host array. None if not small."""
    size, tiles = m * k + k * n, -(-m // ROWS) * -(-n // COLUMNS)
    if not size or not 0 < tiles <= multiprocessors or k > MOST_K:
        return None
    quads = -(-size // 4)  # of float4, which copy() moves
    host, device = empty_pinned(4 * quads, np.float32), cp.empty(4 * quads, np.float32)
    a, b, out = device[: m * k], device[m * k :], empty_pinned((m, n), np.float32)
    with cp.cuda.Stream(non_blocking=True) as stream:  # the default stream cannot be captured
        stream.begin_capture()
        copy((-(-quads // 128),), (128,), (host.ctypes.data, device, np.int32(quads)))  # recorded, not run
        kernel((tiles,), (THREADS,), (a, b, out.ctypes.data, np.int32(m), np.int32(k), np.int32(n)))
        graph = stream.end_capture()

    def product(kept=(host, device)):  # the graph does not keep them alive
        graph.launch()
        wait(out)
        return out.copy()  # the next product is written there

    return host[: m * k].reshape(m, k), host[m * k : size].reshape(k, n), product


@lru_cache(16)
def pinned_products(m, k, n):  # two to take in turn: the CPU is slow to write where the GPU has just read
    return cycle([pinned_product(m, k, n), pinned_product(m, k, n)])


def round_trip(a, b):
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    fits = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]
    with lock:  # the pinned arrays are shared
        if fits and (pinned := next(pinned_products(*a.shape, b.shape[1]))):
            pinned[0][:], pinned[1][:] = a, b
            return pinned[2]()
    return download(matmul(*upload(a, b)))


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    for c in (download(matmul(*upload(a, b))), round_trip(a, b)):
        np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, CuPy from pinned memory: 200×200×200, all right")
