"""Multiply two matrices in PyTorch, tuned for host arrays: pinned memory, and one CUDA graph for a small product.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install "torch>=2.9" numpy
Math: float32, TF32 off (PyTorch's default; torch.set_float32_matmul_precision turns it on for cuBLAS)

Copying a small matrix takes longer than multiplying it. One graph does it all: the GPU fetches both factors from pinned
memory, multiplies them, and writes into pinned memory. Small means K up to 256 and at most one tile of 20 × 16 per
multiprocessor. round_trip() copies any host arrays into pinned ones first; with pinned_product() you fill them in
yourself. This file is longer than 60 lines because it records that graph.
"""

from functools import lru_cache
from itertools import cycle
from pathlib import Path
from threading import Lock

import numpy as np
import torch

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul_tuned.cu").read_text()
ROWS, COLUMNS, MOST_K, THREADS = 20, 16, 256, 224  # as in the kernel

device = torch.device("cuda", torch.cuda.current_device())
kernel, copy = (torch.cuda._compile_kernel(KERNEL, name) for name in ("matmul", "copy"))  # _: it may still change
multiprocessors = torch.cuda.get_device_properties(device).multi_processor_count
lock = Lock()


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device=device).reshape(x.shape) for x in host)


def matmul(a, b, out=None):
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == torch.float32
    if right and out is not None:
        right = tuple(out.shape) == (a.shape[0], b.shape[1]) and out.dtype == torch.float32
    if not right:
        raise ValueError(
            f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
            + ("" if out is None else f" into {out.dtype} {tuple(out.shape)}")
        )
    if out is not None and out.numel() and out.data_ptr() in (a.data_ptr(), b.data_ptr()):
        raise ValueError("matmul takes an out that is neither a nor b")
    return torch.matmul(a, b, out=out)


def wait(c):
    torch.cuda.current_stream(device).synchronize()  # torch.cuda.synchronize() looks up the device first


def download(c):
    return c.cpu().numpy()


def pinned_product(m, k, n):
    """Pinned arrays a and b to fill in, and product(), which returns a @ b as a new host array. None if not small."""
    size, tiles = m * k + k * n, -(-m // ROWS) * -(-n // COLUMNS)
    if not size or not 0 < tiles <= multiprocessors or k > MOST_K:
        return None
    quads = -(-size // 4)  # of float4, which copy() moves
    host, out = (torch.empty(x, dtype=torch.float32, device="cpu", pin_memory=True) for x in (4 * quads, (m, n)))
    on_gpu = torch.empty(4 * quads, dtype=torch.float32, device=device)
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream(device)  # the default stream cannot be captured
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="relaxed"):
        copy((-(-quads // 128), 1, 1), (128, 1, 1), (host, on_gpu, quads))  # recorded, not run
        kernel((tiles, 1, 1), (THREADS, 1, 1), (on_gpu[: m * k], on_gpu[m * k :], out, m, k, n))

    def product(kept=(host, on_gpu)):  # the graph does not keep them alive
        graph.replay()
        wait(out)
        return out.numpy().copy()  # the next product is written there

    a, b = host.numpy()[: m * k].reshape(m, k), host.numpy()[m * k : size].reshape(k, n)
    return a, b, product


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
    print("matmul, PyTorch from pinned memory: 200×200×200, all right")
