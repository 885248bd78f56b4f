"""Multiply two matrices in PyCUDA: a CUDA C kernel with 16×16 tiles in shared memory, compiled when the file runs.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy
Needs: nvcc
Follows: https://documen.tician.de/pycuda/tutorial.html
Follows: https://documen.tician.de/pycuda/driver.html#pagelocked-host-memory
"""

from pathlib import Path

import numpy as np
from pycuda import autoprimaryctx, driver, gpuarray  # the first: the context that CuPy, PyTorch and Numba use too
from pycuda.compiler import SourceModule

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul.cu").read_text()
TILE = 16  # as in the kernel
kernel = SourceModule(KERNEL, no_extern_c=True).get_function("matmul")
kernel.prepare("PPPqqq")  # the arguments' types, once: three pointers and three 64-bit integers


def pinned(shape):
    # PyCUDA frees it in the thread that imported this file. Dropped in another, it stays, with a warning.
    size = int(np.prod(shape))
    return driver.pagelocked_empty(size or 1, np.float32)[:size].reshape(shape)  # no bytes are an error


def upload(*arrays):
    return tuple(gpuarray.to_gpu(np.asarray(x, np.float32, order="C")) for x in arrays)


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
    out = gpuarray.empty((m, n), np.float32) if out is None else out
    if not all(x.flags.c_contiguous for x in (a, b, out)):
        raise ValueError("matmul takes C-contiguous arrays, as upload() makes them")
    if out.size:  # a grid of no blocks is an error
        pointers = [int(x.gpudata) if x.size else 0 for x in (a, b, out)]  # gpudata of an empty array is None
        if pointers[2] in pointers[:2]:
            raise ValueError("matmul takes an out that is neither a nor b")
        kernel.prepared_call((-(-m // TILE) * -(-n // TILE), 1), (TILE, TILE, 1), *pointers, m, k, n)
    return out


def wait(c):
    autoprimaryctx.context.synchronize()


def download(c, out=None):
    if out is not None and not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    return c.get(out)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, PyCUDA: 200×200×200, all right")
