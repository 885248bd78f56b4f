"""Multiply two matrices in PyCUDA, tuned: a CUDA C kernel for small ones, cuBLAS for the rest.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy cuda-pathfinder nvidia-cublas
Needs: nvcc
Math: float32, TF32 off

A small product spends its time waiting for memory, so the kernel waits once: it fetches all of K at once, and groups of
threads share K. Small means K up to 256 and at most one tile of 20 × 16 per multiprocessor. On an NVIDIA H200 a 200×200
product takes the GPU 3.9 µs instead of 8.0 (with_pycuda.py). The file is longer than 60 lines because PyCUDA has no
cuBLAS, which is called through ctypes.
"""

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
from cuda.pathfinder import load_nvidia_dynamic_lib
from pycuda import autoprimaryctx, gpuarray  # the first: the context that CuPy, PyTorch and Numba use too
from pycuda.compiler import SourceModule

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul_tuned.cu").read_text()
ROWS, COLUMNS, MOST_K, THREADS = 20, 16, 256, 224  # as in the kernel

kernel = SourceModule(KERNEL, no_extern_c=True).get_function("matmul")
kernel.prepare("PPPiii")  # the arguments' types, once: three pointers and three integers
multiprocessors = autoprimaryctx.device.multiprocessor_count
one, zero = ctypes.c_float(1), ctypes.c_float(0)


def upload(*arrays):
    return tuple(gpuarray.to_gpu(np.asarray(x, np.float32, order="C")) for x in arrays)


@cache  # started by the first large product
def cublas():
    library, handle = ctypes.CDLL(load_nvidia_dynamic_lib("cublas").abs_path), ctypes.c_void_p()
    if library.cublasCreate_v2(ctypes.byref(handle)):
        raise RuntimeError("cuBLAS could not be started")
    return library, handle


def launch(a, b, out, m, k, n):  # addresses and sizes
    tiles = -(-m // ROWS) * -(-n // COLUMNS)
    if k == 0 or (k <= MOST_K and tiles <= multiprocessors):  # each tile has a multiprocessor to itself
        kernel.prepared_call((tiles, 1), (THREADS, 1, 1), a, b, out, m, k, n)
        return
    # cuBLAS stores matrices column by column, so it sees the transposes: out.T = b.T @ a.T.
    library, handle = cublas()
    a, b, out = map(ctypes.c_void_p, (a, b, out))
    m, k, n = map(ctypes.c_int64, (m, k, n))
    if library.cublasSgemm_v2_64(handle, 0, 0, n, m, k, ctypes.byref(one), b, n, a, k, ctypes.byref(zero), out, n):
        raise RuntimeError("cuBLAS could not multiply")


def matmul(a, b, out=None):
    return prepared(a, b, out)()


def wait(c):
    autoprimaryctx.context.synchronize()


def download(c):
    return c.get()


def prepared(a, b, out=None):
    """Return a function without arguments that multiplies the current contents of a and b into the same out."""
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
    pointers = [int(x.gpudata) if x.size else 0 for x in (a, b, out)]  # gpudata of an empty array is None
    if out.size and pointers[2] in pointers[:2]:
        raise ValueError("matmul takes an out that is neither a nor b")

    def product(kept=(a, b)):  # the pointers do not keep them alive
        if out.size:  # a grid of no blocks is an error
            launch(*pointers, m, k, n)
        return out

    return product


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, PyCUDA tuned: 200×200×200, all right")
