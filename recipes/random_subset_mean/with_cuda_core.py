"""Mean of a subset of random samples in cuda.core: CUDA C kernels make them chunk by chunk, and add.

Framework: cuda.core
Runs on: NVIDIA GPU
Install: pip install "cuda-core[cu13]"
Follows: https://nvidia.github.io/cuda-python/cuda-core/latest/getting-started.html

cuda.core has no random numbers, so that a kernel makes them (Philox). What stands for an array here is a
StridedMemoryView of a Buffer: memory with a shape and a dtype.
"""

import math
from operator import index
from pathlib import Path

import numpy as np
from cuda.core import Buffer, Device, LaunchConfig, Program, StreamOptions, launch
from cuda.core.utils import StridedMemoryView

SAMPLES = (Path(__file__).parents[2] / "kernels" / "fill_normal.cu").read_text()
KERNEL = (Path(__file__).parents[2] / "kernels" / "subset_mean.cu").read_text()
BLOCKS, THREADS = 1024, 256  # blocks; threads per block as in the kernel

device = Device()
device.set_current()
stream = device.create_stream(options=StreamOptions(nonblocking=False))  # in order with other libraries' default stream
code = Program(SAMPLES + KERNEL, "c++").compile("cubin")
fill_normal, add_subset, mean = map(code.get_kernel, ("fill_normal", "add_subset", "mean"))


def empty(shape):
    buffer = device.allocate(8 * math.prod(shape), stream=stream)
    return StridedMemoryView.from_buffer(buffer, shape, dtype=np.dtype(np.float64))


def on_host(x):
    return Buffer.from_handle(x.ctypes.data, x.nbytes, owner=x)


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)  # 0 / 0 is NaN in the last kernel
    samples = empty((max(1, min(chunk, rows) * min(chunk, columns)),))
    partial, result = empty((BLOCKS,)), empty(())
    partial.exporting_obj.fill(0, stream=stream)
    config = LaunchConfig(grid=BLOCKS, block=THREADS)
    for row in range(0, rows, chunk):
        for column in range(0, columns, chunk):
            # NumPy's integers, because a Python int is an address to launch().
            shape = np.int64(min(chunk, rows - row)), np.int64(min(chunk, columns - column))
            place, first = (np.int64(row), np.int64(column)), (np.int64(row % 2), np.int64(column % 2))
            launch(stream, config, fill_normal, samples.ptr, *shape, *place, np.uint64(seed))
            launch(stream, config, add_subset, samples.ptr, *shape, *first, partial.ptr)
    last = LaunchConfig(grid=1, block=THREADS)
    launch(stream, last, mean, partial.ptr, np.int64(BLOCKS), np.int64(count), result.ptr)
    return result


def wait(mean):
    stream.sync()


def download(mean):
    host = np.empty(1)
    Buffer.from_handle(mean.ptr, host.nbytes, owner=mean).copy_to(on_host(host), stream=stream)
    stream.sync()
    return float(host[0])


if __name__ == "__main__":
    result = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(result - 11) < 6 / 2_000, result  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, cuda.core: 4,000 × 4,000 samples, all right")
