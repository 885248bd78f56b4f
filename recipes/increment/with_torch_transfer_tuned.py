"""Add one to an array in PyTorch, tuned for host arrays: in pieces, so that the bus is busy in both directions.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install torch numpy

round_trip() cuts the array into pieces of 8 MiB: while one is downloaded, the next is uploaded. Page-locked arrays, as
pinned() makes them, go over the bus as they are, on two lanes. All others pass through page-locked buffers, which one
thread fills and empties: PyTorch's copy uses all cores. The buffers, 64 MiB, stay until lanes.cache_clear(). PyTorch
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
    """Of each lane a stream, page-locked room for a piece and for its result."""
    return [(torch.cuda.Stream(device), [pinned(PIECE) for _ in range(2)]) for _ in range(LANES)]


def pinned(shape):
    return torch.empty(shape, dtype=torch.float32, device="cpu", pin_memory=True).numpy()


def upload(*arrays):
    return tuple(flat(np.asarray(x, np.float32, order="C")).to("cuda").reshape(np.shape(x)) for x in arrays)


def increment(a):
    if a.dtype != torch.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {tuple(a.shape)}")
    return a.add_(1)


def wait(a):
    torch.cuda.current_stream().synchronize()


def download(a, out=None):
    out = room(out, a.shape)
    flat(out).copy_(a.reshape(-1))
    return out


def room(out, shape):
    out = np.empty(shape, np.float32) if out is None else out
    if not (out.shape == shape and out.dtype == np.float32 and out.flags.c_contiguous and out.flags.writeable):
        raise ValueError(f"increment fills writeable C-ordered float32 {tuple(shape)}, not {out.dtype} {out.shape}")
    return out


def flat(x):
    """The array as a flat tensor; not marked as read-only, of which PyTorch would warn."""
    plain = SimpleNamespace(array=x, __array_interface__=x.__array_interface__ | {"data": (x.ctypes.data, False)})
    return torch.from_numpy(np.asarray(plain).reshape(-1))


def round_trip(a, out=None):
    """a + 1 in a new array, or in out, which may be a itself."""
    a = np.asarray(a, np.float32, order="C")
    out = room(out, a.shape)
    if a.size <= PIECE:
        return download(increment(*upload(a)), out)
    arrays, under_way = [flat(x).split(PIECE) for x in (a, out)], deque()
    direct = [x[0].is_pinned() for x in arrays]
    with lock:  # the lanes are shared by all callers
        ways = lanes(torch.cuda.current_device())[: 2 if all(direct) else LANES]
        for (stream, staged), *pieces in zip(cycle(ways), *arrays, strict=False):
            if len(under_way) == LANES and not all(direct):  # before this lane's buffers are filled again
                stream.synchronize()
                torch.Tensor.copy_(*under_way.popleft())
            host = [x if d else flat(y[: len(x)]) for x, y, d in zip(pieces, staged, direct, strict=True)]
            with torch.cuda.stream(stream):  # x.copy_(x) does nothing
                x = host[0].copy_(pieces[0]).to("cuda", non_blocking=True)
                host[1].copy_(increment(x), non_blocking=True)
            under_way.append((pieces[-1], host[-1]))
        for stream, _ in ways:
            stream.synchronize()
        for each in under_way:
            torch.Tensor.copy_(*each)
    return out


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(5_000_011, np.float32)
    np.testing.assert_array_equal(round_trip(a), a + 1)
    print("increment, PyTorch from host arrays: 5,000,011 elements, all right")
