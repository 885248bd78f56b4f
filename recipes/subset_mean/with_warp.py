"""Mean of every other row and column, plus one, in Warp: two kernels in Python, on the GPU where there is one.

Framework: Warp
Runs on: NVIDIA GPU or CPU
Install: pip install warp-lang
Follows: https://nvidia.github.io/warp/stable/user_guide/programming_model/tiles.html
Follows: https://nvidia.github.io/warp/stable/user_guide/runtime.html
Shapes: 1 to 4 dimensions, rows of fewer than 2**30 bytes

Warp's strides and sizes have 32 bits. When it is first used, it prints what it finds, and then each module that it
compiles, unless the program sets wp.config.log_level = wp.LOG_WARNING. It keeps compiled kernels in ~/.cache/warp, or
where WARP_CACHE_PATH says.
On a CPU, calls from several threads must take turns: Warp's tiles share their memory there, and the process may crash.
"""

import math

import numpy as np
import warp as wp

BLOCKS = 1024  # at most
THREADS = 256  # per block; on a CPU Warp has one


@wp.kernel(enable_backward=False)
def add_subset(x: wp.array2d[wp.float64], sums: wp.array[wp.float64]):  # rows are shared out among blocks
    block, thread = wp.tid()
    total = wp.float64(0.0)
    for row in range(block, x.shape[0], sums.shape[0]):
        for column in range(thread, x.shape[1], wp.block_dim()):
            total += x[row, column] + wp.float64(1.0)
    wp.tile_store(sums, wp.tile_sum(wp.tile(total)), offset=block)  # no atomics: the same answer every time


@wp.kernel(enable_backward=False)
def mean_of_sums(sums: wp.array[wp.float64], count: wp.float64, mean: wp.array[wp.float64]):
    _, thread = wp.tid()
    total = wp.float64(0.0)
    for i in range(thread, sums.shape[0], wp.block_dim()):
        total += sums[i]
    whole = wp.tile_extract(wp.tile_sum(wp.tile(total)), 0)  # the same in every thread
    if thread == 0:
        mean[0] = whole / count


def pinned(shape):
    size = int(np.prod(shape))
    return wp.empty(size, dtype=wp.float64, device="cpu", pinned=wp.is_cuda_available()).numpy().reshape(shape)


def upload(*arrays):
    for x in arrays:
        check_size(np.shape(x))
    there = tuple(wp.array(np.asarray(x, np.float64, order="C"), dtype=wp.float64) for x in arrays)
    wp.synchronize_device()  # from a page-locked array the copy goes on after the call, and the caller may change it
    return there


def check_size(shape):
    # A row of the subset begins two rows after the one before it.
    if not 1 <= len(shape) <= 4 or max(*shape[:-1], 16 * shape[-1], 0) >= 2**31:
        limits = "1 to 4 dimensions, fewer than 2**31 rows, and rows of fewer than 2**30 bytes"
        raise ValueError(f"Warp takes {limits}, not {shape} of float64")


def fits(x):  # another library's array may have any strides along axes of one element, which say nothing
    c_order = (n == 1 or x.strides[i] == 8 * math.prod(x.shape[i + 1 :]) for i, n in enumerate(x.shape))
    return x.is_contiguous or x.size == 0 or all(c_order)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != wp.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype.__name__} {x.shape}")
    check_size(x.shape)
    if not fits(x):
        raise ValueError("subset_mean takes a C-contiguous array, as upload() makes it")
    if x.size == 0:
        return wp.full(1, np.nan, dtype=wp.float64, device=x.device)
    subset = x[::2, ::2]  # a view
    sums = wp.empty(min(BLOCKS, subset.shape[0]), dtype=wp.float64, device=x.device)
    mean = wp.empty(1, dtype=wp.float64, device=x.device)
    wp.launch_tiled(add_subset, dim=sums.size, inputs=[subset, sums], block_dim=THREADS, device=x.device)
    wp.launch_tiled(mean_of_sums, dim=1, inputs=[sums, subset.size, mean], block_dim=THREADS, device=x.device)
    return mean


def wait(mean):
    wp.synchronize_device(mean.device)


def download(mean):
    return float(mean.numpy()[0])


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print(f"subset_mean, Warp on {wp.get_device()}: 333 × 1,001 elements, all right")
