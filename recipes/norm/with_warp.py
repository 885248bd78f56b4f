"""Norm of an array in Warp: two kernels in Python, compiled for the GPU where there is one, else for the CPU.

Framework: Warp
Runs on: NVIDIA GPU or CPU
Install: pip install warp-lang
Follows: https://nvidia.github.io/warp/stable/user_guide/programming_model/tiles.html
Follows: https://nvidia.github.io/warp/stable/user_guide/runtime.html
Shapes: 1 to 4 dimensions, fewer than 2**31 elements

When Warp is first used, it prints what it finds, and then each module that it compiles, unless the program sets
wp.config.log_level = wp.LOG_WARNING. It keeps compiled kernels in ~/.cache/warp, or where WARP_CACHE_PATH says.
On a CPU, calls from several threads must take turns: Warp's tiles share their memory there, and the process may crash.
"""

import math

import numpy as np
import warp as wp

BLOCKS = 1024  # at most
THREADS = 256  # per block; on a CPU Warp has one


# In float64: on a CPU, where a block has one thread, a float32 would lose what the last of many squares add.
@wp.kernel(enable_backward=False)
def add_squares(x: wp.array[wp.float32], sums: wp.array[wp.float64]):
    block, thread = wp.tid()
    # Each block adds up a part of its own. Counted from the part's first element, no index wraps at 2**31.
    size, rest = x.shape[0] // sums.shape[0], x.shape[0] % sums.shape[0]
    first = block * size + wp.min(block, rest)
    total = wp.float64(0.0)
    for i in range(thread, wp.where(block < rest, size + 1, size), wp.block_dim()):
        value = wp.float64(x[first + i])
        total += value * value
    wp.tile_store(sums, wp.tile_sum(wp.tile(total)), offset=block)  # no atomics: the same answer every time


@wp.kernel(enable_backward=False)
def root(sums: wp.array[wp.float64], norm: wp.array[wp.float32]):
    _, thread = wp.tid()
    total = wp.float64(0.0)
    for i in range(thread, sums.shape[0], wp.block_dim()):
        total += sums[i]
    whole = wp.tile_extract(wp.tile_sum(wp.tile(total)), 0)  # the same in every thread
    if thread == 0:
        norm[0] = wp.float32(wp.sqrt(whole))


def pinned(shape):
    size = int(np.prod(shape))
    return wp.empty(size, dtype=wp.float32, device="cpu", pinned=wp.is_cuda_available()).numpy().reshape(shape)


def upload(*arrays):
    for x in arrays:
        if not 1 <= np.ndim(x) <= 4 or np.size(x) >= 2**31:
            raise ValueError(f"Warp takes 1 to 4 dimensions and, here, fewer than 2**31 elements, not {np.shape(x)}")
    there = tuple(wp.array(np.asarray(x, np.float32, order="C"), dtype=wp.float32) for x in arrays)
    wp.synchronize_device()  # from a page-locked array the copy goes on after the call, and the caller may change it
    return there


def fits(x):  # another library's array may have any strides along axes of one element, which say nothing
    c_order = (n == 1 or x.strides[i] == 4 * math.prod(x.shape[i + 1 :]) for i, n in enumerate(x.shape))
    return x.is_contiguous or x.size == 0 or all(c_order)


def norm(x):
    if x.dtype != wp.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype.__name__} {x.shape}")
    if not fits(x) or x.size >= 2**31:
        raise ValueError("norm takes a C-contiguous array of fewer than 2**31 elements, as upload() makes it")
    # A view of one axis, for which the kernel is; flatten() would refuse such strides.
    line = x if x.ndim == 1 else wp.array(ptr=x.ptr, shape=x.size, dtype=wp.float32, device=x.device)
    sums = wp.empty(max(1, min(BLOCKS, -(-x.size // THREADS))), dtype=wp.float64, device=x.device)
    result = wp.empty(1, dtype=wp.float32, device=x.device)
    wp.launch_tiled(add_squares, dim=sums.size, inputs=[line, sums], block_dim=THREADS, device=x.device)
    wp.launch_tiled(root, dim=1, inputs=[sums, result], block_dim=THREADS, device=x.device)
    return result


def wait(norm):
    wp.synchronize_device(norm.device)


def download(norm):
    return norm.numpy()[0]


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print(f"norm, Warp on {wp.get_device()}: 1,000,003 elements, all right")
