"""Multiply two arrays in cuda.core, tuned: a CUDA C kernel with loads of 16 bytes, and a CUDA graph to replay.

Framework: cuda.core
Runs on: NVIDIA GPU
Install: pip install "cuda-core[cu13]"

Each thread loads four elements at once, 16 bytes. prepared() replays the launch as a CUDA graph. The file is over 60
lines because cuda.core has no arrays.
"""

import math
from pathlib import Path

import numpy as np
from cuda.core import Buffer, Device, LaunchConfig, Program, StreamOptions, launch
from cuda.core.utils import StridedMemoryView

KERNEL = (Path(__file__).parents[2] / "kernels" / "multiply_tuned.cu").read_text()
THREADS = 256  # per block; a multiple of the 32 of a warp

device = Device()
device.set_current()
stream = device.create_stream(options=StreamOptions(nonblocking=False))  # in order with other libraries' default stream
kernel = Program(KERNEL, "c++").compile("cubin").get_kernel("multiply")


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


def output_for(a, b, out):
    out = empty(a.shape) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    if not all(map(fits, (a, b, out))):
        raise ValueError("multiply takes C-contiguous arrays that the GPU can reach, as upload() makes them")
    if out.readonly:
        raise ValueError("multiply takes an out that is not read-only")
    return out


def launch_in(where, a, b, out):  # a stream, or the builder of a graph
    config = LaunchConfig(grid=-(-a.size // (4 * THREADS)), block=THREADS)
    launch(where, config, kernel, a.ptr, b.ptr, out.ptr, np.int64(a.size))  # a Python int is an address to it


def multiply(a, b, out=None):
    out = output_for(a, b, out)
    if a.size:  # a grid of no blocks is an error
        launch_in(stream, a, b, out)
    return out


def wait(c):
    stream.sync()


def download(c):
    if c.dtype != np.float32 or not fits(c):
        raise ValueError(f"download takes a C-contiguous float32 array that the GPU can reach, not {c.dtype} {c.shape}")
    out = np.empty(c.shape, np.float32)
    if out.size:
        Buffer.from_handle(c.ptr, out.nbytes, owner=c).copy_to(on_host(out), stream=stream)
        stream.sync()
    return out


def prepared(a, b, out=None):
    """Return a function without arguments: each call multiplies what a and b then hold, and returns the same out."""
    out = output_for(a, b, out)
    if not a.size:
        return lambda: out
    launch_in(stream, *upload(*3 * [[0]]))  # the first launch loads the kernel, which a capture may not
    builder = device.create_graph_builder().begin_building()
    launch_in(builder, a, b, out)  # recorded, not run
    graph = builder.end_building().complete()

    def replay(kept=(a, b)):  # the graph has their addresses, which do not keep them alive
        graph.launch(stream)
        return out

    return replay


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, cuda.core tuned: 1,000,003 elements, all right")
