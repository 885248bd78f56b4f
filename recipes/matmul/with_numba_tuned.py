"""Multiply two matrices in Numba, tuned: Numba's arrays, multiplied by cuBLAS, which is called through ctypes.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" "numpy<2.5" nvidia-cublas cuda-pathfinder
Math: float32, TF32 off

Numba has no matrix product of its own, but its arrays have addresses, and cuBLAS takes those. On an NVIDIA H200 a
4,096×4,096 product takes 2.7 ms instead of 17.8 (with_numba.py). This file is longer than 60 lines because it loads
cuBLAS itself and describes its call.
"""

import ctypes
from functools import cache

import numpy as np
from cuda.pathfinder import load_nvidia_dynamic_lib
from numba import cuda

one, zero = ctypes.c_float(1), ctypes.c_float(0)


def upload(*arrays):
    # Flat, then in shape: Numba refuses the stride, 0 or less, that NumPy may give an axis of one element.
    return tuple(cuda.to_device(np.asarray(x, np.float32).ravel().reshape(np.shape(x))) for x in arrays)


@cache  # started by the first product on that GPU, which is the current one
def cublas(gpu):
    library, handle = ctypes.CDLL(load_nvidia_dynamic_lib("cublas").abs_path), ctypes.c_void_p()
    if library.cublasCreate_v2(ctypes.byref(handle)):
        raise RuntimeError("cuBLAS could not be started")
    return library, handle


def launch(started, a, b, out, m, k, n):  # addresses and sizes
    # cuBLAS stores matrices column by column, so it sees the transposes: out.T = b.T @ a.T.
    library, handle = started
    a, b, out = map(ctypes.c_void_p, (a, b, out))
    m, k, n = map(ctypes.c_int64, (m, k, n))
    if library.cublasSgemm_v2_64(handle, 0, 0, n, m, k, ctypes.byref(one), b, n, a, k, ctypes.byref(zero), out, n):
        raise RuntimeError("cuBLAS could not multiply")


def matmul(a, b, out=None):
    return prepared(a, b, out)()


def wait(c):
    cuda.synchronize()


def download(c):
    return c.copy_to_host()


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
    out = cuda.device_array((m, n), np.float32) if out is None else out
    if not (a.is_c_contiguous() and b.is_c_contiguous() and out.is_c_contiguous()):
        raise ValueError("matmul takes C-contiguous arrays, as upload() makes them")
    pointers = [x.device_ctypes_pointer.value or 0 for x in (a, b, out)]
    if out.size and pointers[2] in pointers[:2]:
        raise ValueError("matmul takes an out that is neither a nor b")

    started = cublas(cuda.get_current_device().id)

    def product(kept=(a, b)):  # the pointers do not keep them alive
        if out.size and k:
            launch(started, *pointers, m, k, n)
        elif out.size:  # cuBLAS refuses rows of no elements
            out[:] = 0
        return out

    return product


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, Numba tuned: 200×200×200, all right")
