"""Multiply two matrices in cuda.core: a CUDA C kernel with 16×16 tiles in shared memory, compiled when the file runs.

Framework: cuda.core
Runs on: NVIDIA GPU
Install: pip install "cuda-core[cu13]"
Follows: https://nvidia.github.io/cuda-python/cuda-core/latest/getting-started.html
Follows: https://nvidia.github.io/cuda-python/cuda-core/latest/interoperability.html

cuda.core has no arrays. What stands for one here is a StridedMemoryView of a Buffer: memory with a shape and a dtype.
"""

import math
from pathlib import Path

import numpy as np
from cuda.core import Buffer, Device, LaunchConfig, LegacyPinnedMemoryResource, Program, StreamOptions, launch
from cuda.core.utils import StridedMemoryView

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul.cu").read_text()
TILE = 16  # as in the kernel

device = Device()
device.set_current()
stream = device.create_stream(options=StreamOptions(nonblocking=False))  # in order with other libraries' default stream
kernel = Program(KERNEL, "c++").compile("cubin").get_kernel("matmul")


def pinned(shape):
    size = math.prod(shape)
    buffer = LegacyPinnedMemoryResource().allocate(4 * size or 1)
    return np.from_dlpack(buffer)[: 4 * size].view(np.float32).reshape(shape)


def empty(shape):
    size = 4 * math.prod(shape)
    buffer = device.allocate(size or 1, stream=stream)  # no bytes are an error
    return StridedMemoryView.from_buffer(buffer, shape, dtype=np.dtype(np.float32))


def on_host(x):
    return Buffer.from_handle(x.ctypes.data, x.nbytes, owner=x)


def fits(x):  # views of other libraries' arrays have strides; those of an axis of one element say nothing
    c_order = (n == 1 or x.strides[i] == math.prod(x.shape[i + 1 :]) for i, n in enumerate(x.shape))
    return x.is_device_accessible and (not (x.strides and x.size) or all(c_order))


def upload(*arrays):
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    views = tuple(empty(x.shape) for x in host)
    for x, view in zip(host, views, strict=True):
        if x.size:
            view.exporting_obj.copy_from(on_host(x), stream=stream)
    stream.sync()  # from a page-locked array the copy goes on after the call, and the caller may change it
    return views


def matmul(a, b, out=None):
    right = len(a.shape) == len(b.shape) == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32
    if right and out is not None:
        right = out.shape == (a.shape[0], b.shape[1]) and out.dtype == np.float32
    if not right:
        raise ValueError(
            f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            + ("" if out is None else f" into {out.dtype} {out.shape}")
        )
    (m, k), n = a.shape, b.shape[1]
    out = empty((m, n)) if out is None else out
    if not all(map(fits, (a, b, out))):
        raise ValueError("matmul takes C-contiguous arrays that the GPU can reach, as upload() makes them")
    if out.readonly:
        raise ValueError("matmul takes an out that is not read-only")
    if out.size:  # a grid of no blocks is an error
        if out.ptr in (a.ptr, b.ptr):
            raise ValueError("matmul takes an out that is neither a nor b")
        config = LaunchConfig(grid=-(-m // TILE) * -(-n // TILE), block=(TILE, TILE))
        sizes = (np.int64(m), np.int64(k), np.int64(n))  # a Python int is an address to launch()
        launch(stream, config, kernel, a.ptr, b.ptr, out.ptr, *sizes)
    return out


def wait(c):
    stream.sync()


def download(c, out=None):
    if c.dtype != np.float32 or not fits(c):
        raise ValueError(f"download takes a C-contiguous float32 array that the GPU can reach, not {c.dtype} {c.shape}")
    out = np.empty(c.shape, np.float32) if out is None else out
    if not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    if out.size:
        Buffer.from_handle(c.ptr, out.nbytes, owner=c).copy_to(on_host(out), stream=stream)
        stream.sync()
    return out


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, cuda.core: 200×200×200, all right")
