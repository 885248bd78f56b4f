"""Mean of a subset of random samples in Warp, chunk by chunk: wp.randn in a kernel, on the GPU where there is one.

Framework: Warp
Runs on: NVIDIA GPU or CPU
Install: pip install warp-lang
Follows: https://nvidia.github.io/warp/stable/user_guide/runtime.html
Follows: https://nvidia.github.io/warp/stable/user_guide/programming_model/tiles.html
Math: float64, but wp.randn makes float32 samples
Shapes: at most 2**32 samples

Warp's generator has a state of 32 bits, and so makes at most 2**32 different samples: an array of more is refused.
Until then wp.rand_init makes another state of each place in the whole array, so that no two chunks share a sample, and
chunk has no say in what they are. When Warp is first used, it prints what it finds, and then each module that it
compiles, unless the program sets wp.config.log_level = wp.LOG_WARNING. It keeps compiled kernels in ~/.cache/warp, or
where WARP_CACHE_PATH says.

On a CPU, calls from several threads must take turns: Warp's tiles share their memory there, and the process may crash.
"""

from operator import index

import numpy as np
import warp as wp

BLOCKS = 1024  # at most
THREADS = 256  # per block; on a CPU Warp has one


@wp.kernel(enable_backward=False)
def fill_normal(seed: wp.uint32, first: wp.uint32, step: wp.uint32, x: wp.array2d[wp.float64]):
    i, j = wp.tid()
    place = first + wp.uint32(i) * step + wp.uint32(j)  # of the sample in the whole array
    state = wp.rand_init(wp.int32(seed), wp.int32(place))
    x[i, j] = wp.float64(10.0) + wp.float64(wp.randn(state))


@wp.kernel(enable_backward=False)
def add_subset(x: wp.array2d[wp.float64], sums: wp.array[wp.float64]):  # rows are shared out among blocks
    block, thread = wp.tid()
    total = wp.float64(0.0)
    for row in range(block, x.shape[0], sums.shape[0]):
        for column in range(thread, x.shape[1], wp.block_dim()):
            total += x[row, column] + wp.float64(1.0)
    before = wp.tile_load(sums, shape=1, offset=block)
    wp.tile_store(sums, before + wp.tile_sum(wp.tile(total)), offset=block)  # no atomics: the same answer every time


@wp.kernel(enable_backward=False)
def mean_of_sums(sums: wp.array[wp.float64], count: wp.float64, mean: wp.array[wp.float64]):
    _, thread = wp.tid()
    total = wp.float64(0.0)
    for i in range(thread, sums.shape[0], wp.block_dim()):
        total += sums[i]
    whole = wp.tile_extract(wp.tile_sum(wp.tile(total)), 0)  # the same in every thread
    if thread == 0:
        mean[0] = whole / count


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**32 or rows * columns > 2**32:
        raise ValueError(f"Warp has seeds of 32 bits and 2**32 samples, not {rows} × {columns} of the seed {seed}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    if count == 0:
        return wp.full(1, np.nan, dtype=wp.float64)
    chunk = min(chunk, 2**26)  # every other row of 2**27 columns would begin 2**31 bytes after the last: too far
    samples = wp.empty((min(chunk, rows), min(chunk, columns)), dtype=wp.float64)
    sums = wp.zeros(BLOCKS, dtype=wp.float64)
    mean = wp.empty(1, dtype=wp.float64)
    for row in range(0, rows, chunk):
        for column in range(0, columns, chunk):
            x = samples[: min(chunk, rows - row), : min(chunk, columns - column)]
            wp.launch(fill_normal, dim=x.shape, inputs=[seed, row * columns + column, columns, x])
            if x.shape[0] > row % 2 and x.shape[1] > column % 2:  # Warp refuses an empty slice
                subset = x[row % 2 :: 2, column % 2 :: 2]
                wp.launch_tiled(add_subset, dim=BLOCKS, inputs=[subset, sums], block_dim=THREADS)
    wp.launch_tiled(mean_of_sums, dim=1, inputs=[sums, count, mean], block_dim=THREADS)
    return mean


def wait(mean):
    wp.synchronize_device(mean.device)


def download(mean):
    return float(mean.numpy()[0])


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print(f"random_subset_mean, Warp on {wp.get_device()}: 4,000 × 4,000 samples, all right")
