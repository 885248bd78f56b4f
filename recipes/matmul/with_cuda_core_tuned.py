"""Multiply two matrices in cuda.core, tuned: a CUDA C kernel for small ones, cuBLAS for the rest.

Framework: cuda.core
Runs on: NVIDIA GPU
Install: pip install "cuda-core[cu13]" cuda-pathfinder nvidia-cublas
Math: float32, TF32 off

A small product spends its time waiting for memory, so the kernel waits once: it fetches all of K at once, and groups of
threads share K. Small means K up to 256 and at most one tile of 20 × 16 per multiprocessor. prepared() replays
the kernel as a CUDA graph. The file is over 60 lines because cuda.core has neither arrays nor cuBLAS.
"""

import ctypes
import math
from functools import cache
from pathlib import Path

import numpy as np
from cuda.core import Buffer, Device, LaunchConfig, Program, StreamOptions, launch
from cuda.core.utils import StridedMemoryView
from cuda.pathfinder import load_nvidia_dynamic_lib

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul_tuned.cu").read_text()
ROWS, COLUMNS, MOST_K, THREADS = 20, 16, 256, 224  # as in the kernel

device = Device()
device.set_current()
stream = device.create_stream(options=StreamOptions(nonblocking=False))  # in order with other libraries' default stream
kernel = Program(KERNEL, "c++").compile("cubin").get_kernel("matmul")
multiprocessors = device.properties.multiprocessor_count
one, zero = ctypes.c_float(1), ctypes.c_float(0)


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


@cache  # started by the first large product
def cublas():
    library, handle = ctypes.CDLL(load_nvidia_dynamic_lib("cublas").abs_path), ctypes.c_void_p()
    its_stream = ctypes.c_void_p(int(stream.handle))
    if library.cublasCreate_v2(ctypes.byref(handle)) or library.cublasSetStream_v2(handle, its_stream):
        raise RuntimeError("cuBLAS could not be started")
    return library, handle


def output_for(a, b, out):
    right = len(a.shape) == len(b.shape) == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32
    if right and out is not None:
        right = out.shape == (a.shape[0], b.shape[1]) and out.dtype == np.float32
    if not right:
        raise ValueError(
            f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            + ("" if out is None else f" into {out.dtype} {out.shape}")
        )
    out = empty((a.shape[0], b.shape[1])) if out is None else out
    if not all(map(fits, (a, b, out))):
        raise ValueError("matmul takes C-contiguous arrays that the GPU can reach, as upload() makes them")
    if out.readonly:
        raise ValueError("matmul takes an out that is not read-only")
    if out.size and out.ptr in (a.ptr, b.ptr):
        raise ValueError("matmul takes an out that is neither a nor b")
    return out


def tiles(out):
    return -(-out.shape[0] // ROWS) * -(-out.shape[1] // COLUMNS)


def is_small(a, out):  # each tile has a multiprocessor to itself; cuBLAS takes no K of 0
    k = a.shape[1]
    return out.size > 0 and (k == 0 or (k <= MOST_K and tiles(out) <= multiprocessors))


def launch_in(where, a, b, out):  # a stream, or the builder of a graph
    sizes = map(np.int32, (*a.shape, b.shape[1]))  # a Python int is an address to launch()
    launch(where, LaunchConfig(grid=tiles(out), block=THREADS), kernel, a.ptr, b.ptr, out.ptr, *sizes)


def matmul(a, b, out=None):
    out = output_for(a, b, out)
    if is_small(a, out):
        launch_in(stream, a, b, out)
    elif out.size:
        # cuBLAS stores matrices column by column, so it sees the transposes: out.T = b.T @ a.T.
        library, handle = cublas()
        x, y, z = (ctypes.c_void_p(each.ptr) for each in (b, a, out))
        n, m, k = map(ctypes.c_int64, (b.shape[1], *a.shape))
        if library.cublasSgemm_v2_64(handle, 0, 0, n, m, k, ctypes.byref(one), x, n, y, k, ctypes.byref(zero), z, n):
            raise RuntimeError("cuBLAS could not multiply")
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
    """Return a function without arguments that multiplies the current contents of a and b into the same out."""
    out = output_for(a, b, out)
    if not is_small(a, out):
        return lambda: matmul(a, b, out)
    launch_in(stream, *upload(*3 * [[[0]]]))  # the first launch loads the kernel, which a capture may not
    builder = device.create_graph_builder().begin_building()
    launch_in(builder, a, b, out)  # recorded, not run
    graph = builder.end_building().complete()

    def replay(kept=(a, b)):  # the graph has their addresses, which do not keep them alive
        graph.launch(stream)
        return out

    return replay


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, cuda.core tuned: 200×200×200, all right")
