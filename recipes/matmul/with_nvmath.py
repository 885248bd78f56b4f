"""Multiply two matrices in nvmath: cuBLASLt, on CuPy's arrays.

Framework: nvmath-python
Runs on: NVIDIA GPU
Install: pip install "nvmath-python[cu13]" "cupy-cuda13x[ctk]"
Environment: nvmath
Follows: https://docs.nvidia.com/cuda/nvmath-python/latest/host-apis/linalg/generated/nvmath.linalg.advanced.matmul.html
Follows: https://docs.nvidia.com/cuda/nvmath-python/latest/host-apis/linalg/generated/nvmath.linalg.advanced.Matmul.html
Math: float32, TF32 off (nvmath's default for float32)

Each call plans its product, for which nvmath waits for the stream; what prepared() returns has planned it once. Do not
call that after the thread that prepared it has ended: nvmath then destroys the library's handle.
"""

from weakref import finalize

import cupy as cp
import numpy as np
from nvmath.linalg.advanced import Matmul
from nvmath.linalg.advanced import matmul as product


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def refuse_wrong(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if not (a.flags.c_contiguous and b.flags.c_contiguous):  # of strides of 0 or less nvmath takes no notice
        raise ValueError("matmul takes C-contiguous arrays, as upload() makes them")


def matmul(a, b):
    refuse_wrong(a, b)
    if not (a.size and b.size):  # cuBLASLt has no matrices without elements
        return cp.zeros((a.shape[0], b.shape[1]), np.float32)
    return cp.ascontiguousarray(product(a, b))  # a single column times a row is in Fortran order


def prepared(a, b):
    """Return a function without arguments: each call multiplies what a and b then hold, and returns a new array."""
    refuse_wrong(a, b)
    if not (a.size and b.size):
        return lambda: matmul(a, b)
    planned = Matmul(a, b)
    planned.plan()

    def replay():
        return cp.ascontiguousarray(planned.execute())

    finalize(replay, planned.free)  # nothing else would free cuBLASLt's handle and descriptors
    return replay


def wait(c):
    cp.cuda.get_current_stream().synchronize()


def download(c):
    return cp.asnumpy(c)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, nvmath: 200×200×200, all right")
