"""Norm of an array in CuPy: a CUDA C kernel in which every thread adds its square to one number, atomically.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.cupy.dev/en/stable/user_guide/kernel.html#raw-modules
Follows: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#atomic-functions
"""

from pathlib import Path

import cupy as cp
import numpy as np

KERNEL = (Path(__file__).parents[2] / "kernels" / "norm_atomics.cu").read_text()
THREADS = 256  # per block

module = cp.RawModule(code=KERNEL)
add_squares, root = module.get_function("add_squares"), module.get_function("root")


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    if not x.flags.c_contiguous:
        raise ValueError("norm takes a C-contiguous array, as upload() makes it")
    total, result = cp.zeros(1), cp.empty((), np.float32)  # total is a float64
    if x.size:  # a grid of no blocks is an error
        blocks = (x.size + THREADS - 1) // THREADS
        add_squares((blocks,), (THREADS,), (x, np.int64(x.size), total))
    root((1,), (1,), (total, result))
    return result


def wait(norm):
    cp.cuda.get_current_stream().synchronize()


def download(norm):
    return cp.asnumpy(norm)


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, CuPy, atomics: 1,000,003 elements, all right")
