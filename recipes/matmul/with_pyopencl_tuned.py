"""Multiply two matrices in PyOpenCL, tuned: OpenCL C kernels for small and for large ones, on GPU or CPU.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"

A work-item computes a block of c, so that each number it reads from local memory goes into four to eight products. For
a small c the tiles are small, so that each compute unit has one, and groups of work-items share K; for a large c the
next tiles are loaded during the work. On an NVIDIA H200 200×200 takes the GPU 6.0 µs, not 11.3 (with_pyopencl.py), and
4,096×4,096 3.7 ms, not 21. Three kernels make it long. Threads must take turns: all calls share a kernel's arguments.
"""

from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul_tuned.cl").read_text()
GROUP, MOST_K = 256, 256  # as in the kernels
SMALL, MIDDLE, LARGE = (20, 16), (64, 64), (128, 128)  # the tiles of c, one per work-group

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
program = cl.Program(queue.context, KERNEL).build()
kernels = {SMALL: cl.Kernel(program, "matmul_small"), LARGE: cl.Kernel(program, "matmul_large")}  # made only once
kernels[MIDDLE] = cl.Kernel(cl.Program(queue.context, KERNEL).build(["-DTILE=64"]), "matmul_large")
for kernel in kernels.values():
    kernel.set_scalar_arg_dtypes([None] * 3 + [np.int64] * 3)  # otherwise each call inspects its arguments
pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))  # memory that is freed goes to the next array
units = device.max_compute_units if device.type & cl.device_type.GPU else float("inf")  # a CPU likes smaller tiles


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float32, order="C"), allocator=pool) for x in arrays)


def tiles(tile, m, n):
    return -(-m // tile[0]) * -(-n // tile[1])  # each division rounds up


def tile_for(m, k, n):
    if k <= MOST_K and tiles(SMALL, m, n) <= units:
        return SMALL
    return LARGE if tiles(LARGE, m, n) >= units else MIDDLE


def matmul(a, b, out=None):
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32
    if right and out is not None:
        right = out.shape == (a.shape[0], b.shape[1]) and out.dtype == np.float32
    if not right:
        raise ValueError(
            f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            + ("" if out is None else f" into {out.dtype} {out.shape}")
        )
    (m, k), n = a.shape, b.shape[1]
    out = cl.array.empty(queue, (m, n), np.float32, allocator=pool) if out is None else out
    if not all(x.flags.c_contiguous and x.offset == 0 for x in (a, b, out)):
        raise ValueError("matmul takes C-contiguous arrays, as upload() makes them")
    if out.size:  # a launch of no work-items is an error
        if out.base_data in (a.base_data, b.base_data):
            raise ValueError("matmul takes an out that is neither a nor b")
        tile = tile_for(m, k, n)
        kernels[tile](queue, (tiles(tile, m, n) * GROUP,), (GROUP,), a.base_data, b.base_data, out.base_data, m, k, n)
    return out


def wait(c):
    queue.finish()


def download(c):
    return c.get()


def prepared(a, b, out=None):
    """Return a function without arguments that multiplies the current contents of a and b into the same out."""
    out = matmul(a, b, out)
    sizes = *a.shape, b.shape[1]
    tile = tile_for(*sizes)
    kernel = cl.Kernel(kernels[tile].program, kernels[tile].function_name)  # matmul() sets the arguments of the other
    kernel.set_args(a.base_data, b.base_data, out.base_data, *map(np.int64, sizes))
    work_items = tiles(tile, *out.shape) * GROUP

    def product(kept=(a, b)):  # the kernel does not keep them alive
        if out.size:
            cl.enqueue_nd_range_kernel(queue, kernel, (work_items,), (GROUP,))
        return out

    return product


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print(f"matmul, PyOpenCL on {device.name.strip()}: 200×200×200, all right")
