"""Mean of every other row and column, plus one, in cuda.core: two CUDA C kernels, compiled when the file runs.

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

KERNEL = (Path(__file__).parents[2] / "kernels" / "subset_mean.cu").read_text()
BLOCKS, THREADS = 1024, 256  # at most this many blocks; threads per block as in the kernel

device = Device()
device.set_current()
stream = device.create_stream(options=StreamOptions(nonblocking=False))  # in order with other libraries' default stream
code = Program(KERNEL, "c++").compile("cubin")
add_subset, mean = code.get_kernel("add_subset"), code.get_kernel("mean")


def pinned(shape):
    size = math.prod(shape)
    buffer = LegacyPinnedMemoryResource().allocate(8 * size or 1)
    return np.from_dlpack(buffer)[: 8 * size].view(np.float64).reshape(shape)


def empty(shape):
    size = 8 * math.prod(shape)
    buffer = device.allocate(size or 1, stream=stream)  # no bytes are an error
    return StridedMemoryView.from_buffer(buffer, shape, dtype=np.dtype(np.float64))


def on_host(x):
    return Buffer.from_handle(x.ctypes.data, x.nbytes, owner=x)


def fits(x):  # views of other libraries' arrays have strides; those of an axis of one element say nothing
    c_order = (n == 1 or x.strides[i] == math.prod(x.shape[i + 1 :]) for i, n in enumerate(x.shape))
    return x.is_device_accessible and (not (x.strides and x.size) or all(c_order))


def upload(*arrays):
    host = [np.asarray(x, np.float64, order="C") for x in arrays]
    views = tuple(empty(x.shape) for x in host)
    for x, view in zip(host, views, strict=True):
        if x.size:
            view.exporting_obj.copy_from(on_host(x), stream=stream)
    stream.sync()  # from a page-locked array the copy goes on after the call, and the caller may change it
    return views


def subset_mean(x):
    if len(x.shape) != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if not fits(x):
        raise ValueError("subset_mean takes a C-contiguous array that the GPU can reach, as upload() makes it")
    if x.size == 0:
        return upload(np.array(np.nan))[0]
    rows, columns = map(np.int64, x.shape)  # a Python int is an address to launch()
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    blocks = min(BLOCKS, int(rows + 1) // 2)
    partial, result = empty((blocks,)), empty(())
    partial.exporting_obj.fill(0, stream=stream)
    first = np.int64(0), np.int64(0)
    launch(stream, LaunchConfig(grid=blocks, block=THREADS), add_subset, x.ptr, rows, columns, *first, partial.ptr)
    launch(stream, LaunchConfig(grid=1, block=THREADS), mean, partial.ptr, np.int64(blocks), count, result.ptr)
    return result


def wait(mean):
    stream.sync()


def download(mean):
    host = np.empty(1)
    Buffer.from_handle(mean.ptr, host.nbytes, owner=mean).copy_to(on_host(host), stream=stream)
    stream.sync()
    return float(host[0])


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    result = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(result, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, cuda.core: 333 × 1,001 elements, all right")
