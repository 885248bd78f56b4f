"""Mean of a subset of random samples in cuda.core, tuned: made in registers and added there, nothing is stored.

Framework: cuda.core
Runs on: NVIDIA GPU
Install: pip install "cuda-core[cu13]"
Math: float64, but the logarithm, sine and cosine are polynomials of our own, right to about one rounding

Sample (i, j) is a function of the seed, i and j alone (Philox), so only the samples of the subset are made, and none is
stored. What is left is instructions: the library's log, sqrt and sincospi branch for arguments that do not occur here,
Taylor series do not. The file is over 60 lines because cuda.core has no arrays.
"""

import math
from operator import index
from pathlib import Path

import numpy as np
from cuda.core import Buffer, Device, LaunchConfig, Program, StreamOptions, launch
from cuda.core.utils import StridedMemoryView

KERNEL = (Path(__file__).parents[2] / "kernels" / "random_subset_mean_tuned.cu").read_text()
BLOCKS, THREADS = 2**16, 128  # at most; below that, one block per row: the last to end leave little of the GPU idle

device = Device()
device.set_current()
stream = device.create_stream(options=StreamOptions(nonblocking=False))  # in order with other libraries' default stream
code = Program(KERNEL, "c++").compile("cubin")
add_subset, mean = code.get_kernel("add_subset"), code.get_kernel("mean")
last = LaunchConfig(grid=1, block=THREADS)


def empty(shape):
    buffer = device.allocate(8 * math.prod(shape), stream=stream)
    return StridedMemoryView.from_buffer(buffer, shape, dtype=np.dtype(np.float64))


def on_host(x):
    return Buffer.from_handle(x.ctypes.data, x.nbytes, owner=x)


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:  # chunk is not used, as nothing is stored
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)  # 0 / 0 is NaN in the last kernel
    blocks = max(1, min(BLOCKS, (rows + 1) // 2))
    partial, result = empty((blocks,)), empty(())
    # NumPy's integers, because a Python int is an address to launch().
    sizes = np.int64(0), np.int64(rows), np.int64(columns), np.uint64(seed)
    launch(stream, LaunchConfig(grid=blocks, block=THREADS), add_subset, *sizes, partial.ptr)
    launch(stream, last, mean, partial.ptr, np.int64(blocks), np.int64(count), result.ptr)
    return result


def wait(mean):
    stream.sync()


def download(mean):
    host = np.empty(1)
    Buffer.from_handle(mean.ptr, host.nbytes, owner=mean).copy_to(on_host(host), stream=stream)
    stream.sync()
    return float(host[0])


if __name__ == "__main__":
    result = download(random_subset_mean(4_000, 4_000))
    assert abs(result - 11) < 6 / 2_000, result  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, cuda.core tuned: 4,000 × 4,000 samples, all right")
