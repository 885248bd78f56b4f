"""Multiply two arrays in PyTorch, tuned for host arrays: in pieces, so that the bus is busy in both directions.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install torch numpy

round_trip() cuts the arrays into pieces of 8 MiB: while one is downloaded, the next is uploaded. Page-locked arrays, as
pinned() makes them, go over the bus as they are, on two lanes. All others pass through page-locked buffers, which one
thread fills and empties: PyTorch's copy uses all cores. The buffers, 96 MiB, stay until lanes.cache_clear(). PyTorch
keeps all freed memory until torch.cuda.empty_cache(), or torch.accelerator.empty_host_cache() in newer versions.
"""

from collections import deque
from functools import lru_cache
from itertools import cycle
from threading import Lock
from types import SimpleNamespace

import numpy as np
import torch

PIECE, LANES = 2**21, 4  # elements
lock = Lock()


@lru_cache
def lanes(device):
    """Of each lane a stream, and page-locked room for a piece of every array."""
    return [(torch.cuda.Stream(device), [pinned(PIECE) for _ in range(3)]) for _ in range(LANES)]


def pinned(shape):
    return torch.empty(shape, dtype=torch.float32, device="cpu", pin_memory=True).numpy()


def upload(*arrays):
    return tuple(flat(np.asarray(x, np.float32, order="C")).to("cuda").reshape(np.shape(x)) for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == torch.float32):
        what = f"{a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        raise ValueError(f"multiply takes float32 arrays of one shape, not {what}")
    return a * b


def wait(c):
    torch.cuda.current_stream().synchronize()


def download(c, out=None):
    out = room(out, c.shape)
    flat(out).copy_(c.reshape(-1))
    return out


def room(out, shape):
    out = np.empty(shape, np.float32) if out is None else out
    if not (out.shape == shape and out.dtype == np.float32 and out.flags.c_contiguous and out.flags.writeable):
        raise ValueError(f"multiply fills writeable C-ordered float32 {tuple(shape)}, not {out.dtype} {out.shape}")
    return out


def flat(x):
    """The array as a flat tensor; not marked as read-only, of which PyTorch would warn."""
    plain = SimpleNamespace(array=x, __array_interface__=x.__array_interface__ | {"data": (x.ctypes.data, False)})
    return torch.from_numpy(np.asarray(plain).reshape(-1))


def round_trip(a, b, out=None):
    a, b = (np.asarray(x, np.float32, order="C") for x in (a, b))
    if a.shape != b.shape:
        raise ValueError(f"multiply takes arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    out = room(out, a.shape)
    if a.size <= PIECE:
        return download(multiply(*upload(a, b)), out)
    arrays, under_way = [flat(x).split(PIECE) for x in (a, b, out)], deque()
    direct = [x[0].is_pinned() for x in arrays]
    with lock:  # the lanes are shared by all callers
        ways = lanes(torch.cuda.current_device())[: 2 if all(direct) else LANES]
        for (stream, staged), *pieces in zip(cycle(ways), *arrays, strict=False):
            if len(under_way) == LANES and not all(direct):  # before this lane's buffers are filled again
                stream.synchronize()
                torch.Tensor.copy_(*under_way.popleft())
            host = [x if d else flat(y[: len(x)]) for x, y, d in zip(pieces, staged, direct, strict=True)]
            with torch.cuda.stream(stream):  # x.copy_(x) does nothing
                x, y = (h.copy_(p).to("cuda", non_blocking=True) for h, p in zip(host[:2], pieces, strict=False))
                host[2].copy_(x.mul_(y), non_blocking=True)
            under_way.append((pieces[-1], host[-1]))
        for stream, _ in ways:
            stream.synchronize()
        for each in under_way:
            torch.Tensor.copy_(*each)
    return out


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 5_000_011), np.float32)
    np.testing.assert_array_equal(round_trip(a, b), a * b)
    print("multiply, PyTorch from host arrays: 5,000,011 elements, all right")
