"""Multiply two matrices in PyTorch, tuned for host arrays: small ones over the bus by a kernel, large ones in pieces.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install "torch>=2.9" numpy
Math: float32, TF32 off (PyTorch's default; torch.set_float32_matmul_precision turns it on for cuBLAS)

Small matrices (K up to 256, a tile of 20 × 16 per multiprocessor) are copied to page-locked memory, from which a graph
fetches and multiplies them, into such memory. Of large ones (a of more than 8 MiB), b goes up first, then a, in blocks,
during the work on the one before, through page-locked memory if pinned() did not make them. Others are copied whole.
Up to 77 MiB on an H200 (two pieces, and the room of the last 16 small sizes) stay until lanes.cache_clear() and
graph.cache_clear(); then PyTorch keeps them until torch.accelerator.empty_host_cache().
On an NVIDIA H200, 4,096×4,096 matrices take 18 ms, page-locked ones 5.7.
"""

from functools import lru_cache, partial
from itertools import cycle
from pathlib import Path
from threading import Lock

import numpy as np
import torch

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul_tuned.cu").read_text()
ROWS, COLUMNS, MOST_K, THREADS = 20, 16, 256, 224  # as in the kernel
PIECE, home, lock = 2**20, torch.cuda.current_device(), Lock()  # elements; the device for which kernels are compiled
fetch, multiply = (torch.cuda._compile_kernel(KERNEL, name) for name in ("fetch", "matmul"))  # _: it may still change
multiprocessors = torch.cuda.get_device_properties(home).multi_processor_count


@lru_cache
def lanes(device):  # of each a stream, and page-locked room for a piece
    return [(torch.cuda.Stream(device), pinned(PIECE)) for _ in range(2)]


@lru_cache(16)
def graph(m, k, n):
    a, b, c = (torch.from_numpy(pinned(shape)) for shape in ((m, k), (k, n), (m, n)))
    room, tiles = torch.empty(m * k + k * n, dtype=torch.float32, device="cuda"), -(-m // ROWS) * -(-n // COLUMNS)
    recorded, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()  # else it may be one of another GPU
    with torch.cuda.graph(recorded, stream=stream, capture_error_mode="relaxed"):  # nothing runs yet
        fetch((-(-room.numel() // 256), 1, 1), (256, 1, 1), (a, b, room, m * k, k * n))
        multiply((tiles, 1, 1), (THREADS, 1, 1), (room, room[m * k :], c, m, k, n))
    return recorded, room, a.numpy(), b.numpy(), c.numpy()


def pinned(shape):
    return torch.empty(shape, dtype=torch.float32, device="cpu", pin_memory=True).numpy()


def is_pinned(x):  # as a whole, being a part of what PyTorch made
    return is_pinned(x.base) if isinstance(x, np.ndarray) else isinstance(x, torch.Tensor) and x.is_pinned()


def upload(*arrays):
    return tuple(torch.tensor(np.asarray(x, np.float32).ravel(), device="cuda").reshape(np.shape(x)) for x in arrays)


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == torch.float32):
        what = f"{a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {what}")
    return a @ b


def wait(c):
    torch.cuda.current_stream().synchronize()


def download(c, out=None):
    out = np.empty(tuple(c.shape), np.float32) if out is None else out
    if not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {tuple(c.shape)}, not {out.dtype} {out.shape}")
    torch.from_numpy(out).copy_(c)
    return out


def round_trip(a, b, out=None):
    a, b = (np.asarray(x, np.float32, order="C") for x in (a, b))
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]):
        raise ValueError(f"matmul takes arrays of M×K and K×N, not {a.shape} and {b.shape}")
    out = np.empty((len(a), b.shape[1]), np.float32) if out is None else out
    if not (out.shape == (len(a), b.shape[1]) and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"matmul fills writeable C-order float32 {(len(a), b.shape[1])}, not {out.dtype} {out.shape}")
    tiles, device = -(-len(a) // ROWS) * -(-b.shape[1] // COLUMNS), torch.cuda.current_device()
    if 0 < tiles <= multiprocessors and 0 < len(b) <= MOST_K and device == home:
        with lock:
            recorded, _, x, y, c = graph(*a.shape, b.shape[1])
            np.copyto(x, a)
            np.copyto(y, b)
            try:
                recorded.replay()
            finally:  # after Ctrl-C, too
                wait(c)
            np.copyto(out, c)
        return out
    if a.size <= 2 * PIECE or not b.size or max(b.shape) > PIECE:
        return download(matmul(*upload(a, b)), out)
    a, b = (x.copy() if np.may_share_memory(x, out) else np.require(x, requirements="CAW") for x in (a, b))
    x, y, z = (torch.empty(each.shape, dtype=torch.float32, device="cuda") for each in (a, b, out))
    wait(z)  # PyTorch may hand out memory that is still in use
    carry = partial(copy, lanes(device), rows := PIECE // max(b.shape))
    with lock:  # which all callers share
        carry(y, b)
        for i in range(0, len(a) + 4 * rows, 4 * rows):
            block, before = slice(i, i + 4 * rows), slice(max(0, i - 4 * rows), i)  # the first and the last are empty
            carry(x[block], a[block])
            wait(z)
            torch.matmul(x[block], y, out=z[block])  # while the block before is downloaded and the next one uploaded
            carry(out[before], z[before])
    return out


def copy(ways, rows, to, source):  # to the GPU, or from it
    direct = is_pinned(to) or is_pinned(source)
    to, source = (torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in (to, source))
    # Tensors of this call: one that was made in torch.inference_mode() could not be written to outside of it.
    ways = [(stream, torch.from_numpy(room)) for stream, room in ways]
    try:
        for i, (stream, room) in zip(range(0, len(to), rows), cycle(ways), strict=False):
            x, y = to[i : i + rows], source[i : i + rows]
            stream.synchronize()  # before its room is used again
            with torch.cuda.stream(stream):
                x.copy_(y if direct else room[: x.numel()].view_as(x).copy_(y), non_blocking=True)
    finally:  # after Ctrl-C, too
        for stream, _ in ways:
            stream.synchronize()


if __name__ == "__main__":
    a, b = (np.random.default_rng(0).standard_normal(n, np.float32) for n in ((4_003, 2_003), (2_003, 503)))
    np.testing.assert_allclose(round_trip(a, b), a.astype(np.float64) @ b, rtol=0, atol=1e-3)
    print("matmul, PyTorch from host arrays: 4,003×2,003×503, all right")
