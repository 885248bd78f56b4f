"""Multiply two matrices in PyTorch, tuned for host arrays: in pieces, so that transfers take place during the work.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install torch numpy
Math: float32, TF32 off (PyTorch's default; torch.set_float32_matmul_precision turns it on for cuBLAS)

First b goes up, then a in pieces of up to 8 MiB: while one is multiplied, another is uploaded, and the product of a
third one is downloaded. Page-locked arrays, as pinned() makes them, go as they are; PyTorch copies others, with all
cores, through 64 MiB of page-locked memory. It keeps freed memory, for the next call, until torch.cuda.empty_cache().
"""

from functools import lru_cache
from itertools import cycle

import numpy as np
import torch

PIECE, LANES = 2**21, 4  # elements; pieces that are under way at the same time


@lru_cache
def lanes(device):  # always the same streams, because PyTorch keeps memory for each
    return [torch.cuda.Stream(device) for _ in range(LANES)]


def pinned(shape):
    return torch.empty(shape, dtype=torch.float32, device="cpu", pin_memory=True).numpy()


def is_pinned(x):  # no more than the memory that PyTorch made
    return is_pinned(x.base) if isinstance(x, np.ndarray) else isinstance(x, torch.Tensor) and x.is_pinned()


def upload(*arrays):
    return tuple(tensor(np.require(x, np.float32, "CAWE")).to("cuda") for x in arrays)


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == torch.float32):
        what = f"{a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {what}")
    return a @ b


def wait(c):
    torch.cuda.current_stream().synchronize()


def download(c, out=None):
    out = np.empty(tuple(c.shape), np.float32) if out is None else out
    torch.from_numpy(out).copy_(c)
    return out


def tensor(x):  # flat, then in shape: PyTorch refuses the stride that an axis of one element may have
    return torch.from_numpy(x.reshape(-1)).reshape(x.shape)


def round_trip(a, b, out=None):
    a, b = (np.require(x, np.float32, "CAWE") for x in (a, b))  # C-contiguous, aligned, and not read-only
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]
    out = np.empty((len(a), b.shape[1]), np.float32) if right and out is None else out
    right = right and out.shape == (len(a), b.shape[1]) and out.dtype == np.float32 and out.flags.carray
    if not right or np.may_share_memory(a, out) or np.may_share_memory(b, out):
        what = f"{a.shape} and {b.shape}" + ("" if out is None else f" into {out.dtype} {out.shape}")
        raise ValueError(f"matmul takes M×K and K×N, and a C-contiguous float32 M×N apart from them, not {what}")
    if a.size <= PIECE or not b.size or max(b.shape) > PIECE:
        return download(matmul(*upload(a, b)), out)
    direct, rows, under_way = (is_pinned(a), is_pinned(out)), PIECE // max(b.shape), []
    rooms = torch.empty((LANES, 2, 0 if all(direct) else PIECE), dtype=torch.float32, device="cpu", pin_memory=True)
    streams = lanes(torch.cuda.current_device())
    try:
        factor = tensor(b).to("cuda")  # which waits for it: all lanes need it
        for start, stream, room in zip(range(0, len(a), rows), cycle(streams), cycle(rooms), strict=False):
            if len(under_way) == LANES:  # this lane's piece, before its room is used again
                finish(*under_way.pop(0))
            part = [tensor(x[start : start + rows]) for x in (a, out)]
            given, result = (x if direct[i] else room[i, : x.numel()].view_as(x) for i, x in enumerate(part))
            given.copy_(part[0])  # to itself, nothing is copied
            with torch.cuda.stream(stream):  # memory that is freed is given to what comes later on this stream
                result.copy_(given.to("cuda", non_blocking=True) @ factor, non_blocking=True)
            under_way.append((stream, part[1], result))
        for each in under_way:
            finish(*each)
    finally:  # after Ctrl-C, too
        for stream in streams:
            stream.synchronize()
    return out


def finish(stream, product, result):
    stream.synchronize()
    product.copy_(result)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 2_003, 2_003), np.float32)
    np.testing.assert_allclose(round_trip(a, b), a.astype(np.float64) @ b, rtol=0, atol=1e-3)
    print("matmul, PyTorch from host arrays: 2,003×2,003×2,003, all right")
