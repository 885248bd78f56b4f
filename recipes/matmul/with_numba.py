"""Multiply two matrices in Numba: a kernel in Python with 16×16 tiles in shared memory, compiled at the first launch.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" "numpy<2.5"
Follows: https://nvidia.github.io/numba-cuda/user/examples.html#matrix-multiplication
Follows: https://nvidia.github.io/numba-cuda/user/memory.html#pinned-memory
"""

import numpy as np
from numba import cuda

TILE = 16  # a block of threads makes a 16×16 tile of c, one thread per element


@cuda.jit
def kernel(a, b, c):
    a_tile = cuda.shared.array((TILE, TILE), np.float32)
    b_tile = cuda.shared.array((TILE, TILE), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tiles_across = (c.shape[1] + TILE - 1) // TILE
    row, column = cuda.blockIdx.x // tiles_across * TILE + y, cuda.blockIdx.x % tiles_across * TILE + x
    zero = np.float32(0)  # a plain 0.0 would make the sum float64
    total = zero
    for start in range(0, a.shape[1], TILE):
        # Zeros outside a and b add nothing. No thread may return early: all of them fill the tiles.
        a_tile[y, x] = a[row, start + x] if row < a.shape[0] and start + x < a.shape[1] else zero
        b_tile[y, x] = b[start + y, column] if start + y < b.shape[0] and column < b.shape[1] else zero
        cuda.syncthreads()  # both tiles are full
        for i in range(TILE):
            total += a_tile[y, i] * b_tile[i, x]
        cuda.syncthreads()  # no thread needs them any more
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


def pinned(shape):
    size = int(np.prod(shape))
    return cuda.pinned_array(size or 1, np.float32)[:size].reshape(shape)  # no bytes are an error


def upload(*arrays):
    # Flat, then in shape: Numba refuses the stride, 0 or less, that NumPy may give an axis of one element.
    return tuple(cuda.to_device(np.asarray(x, np.float32).ravel().reshape(np.shape(x))) for x in arrays)


def matmul(a, b, out=None):
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32
    if right and out is not None:
        right = out.shape == (a.shape[0], b.shape[1]) and out.dtype == np.float32
    if not right:
        raise ValueError(
            f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            + ("" if out is None else f" into {out.dtype} {out.shape}")
        )
    m, n = a.shape[0], b.shape[1]
    out = cuda.device_array((m, n), np.float32) if out is None else out
    if out.size and out.device_ctypes_pointer.value in (a.device_ctypes_pointer.value, b.device_ctypes_pointer.value):
        raise ValueError("matmul takes an out that is neither a nor b")
    if out.size:  # a grid of no blocks is an error
        tiles = -(-m // TILE) * -(-n // TILE)  # each division rounds up
        kernel[tiles, (TILE, TILE)](a, b, out)  # one axis: the second is limited to 65,535 blocks
    return out


def wait(c):
    cuda.synchronize()


def download(c, out=None):
    if out is not None and not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    return c.copy_to_host(out)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, Numba: 200×200×200, all right")
