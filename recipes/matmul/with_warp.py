"""Multiply two matrices in Warp: a kernel in Python that computes a tile with wp.tile_matmul, on a GPU or on the CPU.

Framework: Warp
Runs on: NVIDIA GPU or CPU
Install: pip install warp-lang
Follows: https://nvidia.github.io/warp/stable/user_guide/programming_model/tiles.html
Follows: https://nvidia.github.io/warp/stable/user_guide/runtime.html
Math: float32, TF32 off (tile_matmul's default)
Shapes: 1 to 4 dimensions, rows of fewer than 2**31 bytes

Warp's strides and sizes have 32 bits. When it is first used, it prints what it finds, and then each module that it
compiles, unless the program sets wp.config.log_level = wp.LOG_WARNING. It keeps compiled kernels in ~/.cache/warp, or
where WARP_CACHE_PATH says.

On a CPU, calls from several threads must take turns: Warp's tiles share their memory there, and the process may crash.
"""

import math

import numpy as np
import warp as wp

TILE = 32  # rows and columns that a block of threads computes, and elements of a row of a that it takes at a time
THREADS = 128  # per block; on a CPU Warp has one


# wp.tile_matmul looks at its module's options, not at the kernel's: without this one, two more products, for gradients,
# are compiled for a GPU as well. So the kernel has a module of its own.
@wp.kernel(module="unique", module_options={"enable_backward": False})
def kernel(a: wp.array2d[wp.float32], b: wp.array2d[wp.float32], c: wp.array2d[wp.float32]):
    i, j = wp.tid()
    total = wp.tile_zeros(shape=(TILE, TILE), dtype=wp.float32)
    for k in range(0, a.shape[1], TILE):
        # Zeros outside a and b add nothing.
        left = wp.tile_load(a, shape=(TILE, TILE), offset=(i * TILE, k))
        right = wp.tile_load(b, shape=(TILE, TILE), offset=(k, j * TILE))
        wp.tile_matmul(left, right, total)
    wp.tile_store(c, total, offset=(i * TILE, j * TILE))  # nothing outside c


def pinned(shape):
    size = int(np.prod(shape))
    return wp.empty(size, dtype=wp.float32, device="cpu", pinned=wp.is_cuda_available()).numpy().reshape(shape)


def upload(*arrays):
    for x in arrays:
        check_size(np.shape(x))
    there = tuple(wp.array(np.asarray(x, np.float32, order="C"), dtype=wp.float32) for x in arrays)
    wp.synchronize_device()  # from a page-locked array the copy goes on after the call, and the caller may change it
    return there


def check_size(shape):
    # The last tile ends beyond the matrix, by fewer than TILE elements.
    if not 1 <= len(shape) <= 4 or max(*shape[:-1], 4 * shape[-1], 0) > 2**31 - 4 * TILE:
        limits = "1 to 4 dimensions, fewer than 2**31 rows, and rows of fewer than 2**31 bytes"
        raise ValueError(f"Warp takes {limits}, not {shape} of float32")


def fits(x):  # another library's array may have any strides along axes of one element, which say nothing
    c_order = (n == 1 or x.strides[i] == 4 * math.prod(x.shape[i + 1 :]) for i, n in enumerate(x.shape))
    return x.is_contiguous or x.size == 0 or all(c_order)


def checked(a, b, out):
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == wp.float32
    if right and out is not None:
        right = out.shape == (a.shape[0], b.shape[1]) and out.dtype == wp.float32
    if not right:
        raise ValueError(
            f"matmul takes float32 arrays of M×K and K×N, not {a.dtype.__name__} {a.shape} and {b.dtype.__name__}"
            f" {b.shape}" + ("" if out is None else f" into {out.dtype.__name__} {out.shape}")
        )
    out = wp.empty((a.shape[0], b.shape[1]), dtype=wp.float32, device=a.device) if out is None else out
    for x in (a, b, out):
        check_size(x.shape)
    if not all(map(fits, (a, b, out))):
        raise ValueError("matmul takes C-contiguous arrays, as upload() makes them")
    if not a.device == b.device == out.device:  # Warp itself does not look, and the kernel would read anywhere
        raise ValueError(f"matmul takes arrays on one device, not on {a.device}, {b.device} and {out.device}")
    if out.size and out.ptr in (a.ptr, b.ptr):
        raise ValueError("matmul takes an out that is neither a nor b")
    return out


def matmul(a, b, out=None):
    out = checked(a, b, out)
    tiles = -(-out.shape[0] // TILE), -(-out.shape[1] // TILE)
    wp.launch_tiled(kernel, dim=tiles, inputs=[a, b, out], block_dim=THREADS, device=out.device)
    return out


def prepared(a, b, out=None):
    """Return a function without arguments: each call multiplies what a and b then hold, and returns the same out."""
    arrays = a, b, checked(a, b, out)  # the command has only their addresses
    tiles = -(-arrays[2].shape[0] // TILE), -(-arrays[2].shape[1] // TILE)
    options = {"block_dim": THREADS, "device": a.device, "record_cmd": True}
    command = wp.launch_tiled(kernel, dim=tiles, inputs=arrays, **options)

    def replay():
        if command:  # None, if there is nothing to do
            command.launch()
        return arrays[2]

    return replay


def wait(c):
    wp.synchronize_device(c.device)


def download(c, out=None):
    if out is None:
        return c.numpy()
    if not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    wp.copy(wp.array(out, dtype=wp.float32, device="cpu", copy=False), c)
    wp.synchronize_device(c.device)
    return out


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print(f"matmul, Warp on {wp.get_device()}: 200×200×200, all right")
