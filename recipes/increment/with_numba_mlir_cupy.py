"""Add one to an array of CuPy in place in numba-cuda-mlir: a kernel in Python, launched in CuPy's current stream.

Framework: numba-cuda-mlir
Runs on: NVIDIA GPU
Install: pip install "numba-cuda-mlir[cu13]" "cupy-cuda13x[ctk]"
Environment: numba_mlir
Follows: https://nvidia.github.io/numba-cuda-mlir/latest/user/memory.html
Follows: https://nvidia.github.io/numba-cuda-mlir/latest/reference/envvars.html

At each launch, the host waits until all that is in CuPy's stream is done. It need not, as the kernel is launched in
that stream: with NUMBA_CUDA_ARRAY_INTERFACE_SYNC=0, set before Python starts, it does not. Nor does it in prepared(),
which wraps the array once in one of numba-cuda-mlir's own, without a copy, and launches with that.
"""

import cupy as cp
import numpy as np
from numba_cuda_mlir import cuda

THREADS = 256  # per block; a multiple of the 32 of a warp


@cuda.jit
def kernel(a):
    i = cuda.blockIdx.x * THREADS + cuda.threadIdx.x  # 64-bit; cuda.grid(1) wraps at 2**31
    if i < a.size:  # the last block is rarely full
        a[i] += np.float32(1)  # numba-cuda-mlir would add a plain 1 in float64


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def validate(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    if not a.flags.c_contiguous:
        raise ValueError("increment takes a C-contiguous array, as upload() makes it")
    here, place = cp.cuda.Device().id, a.device.id
    if place != here:  # it would be launched where the array is, in a stream of this GPU
        raise ValueError(f"increment takes an array of the current GPU, {here}, not of {place}")


def increment(a):
    validate(a)
    if a.size:  # a grid of no blocks is an error
        # In CuPy's current stream, as the array is CuPy's. The kernel is for one axis: reshape() makes a view.
        kernel[(a.size + THREADS - 1) // THREADS, THREADS](a.reshape(-1))
    return a


def wait(a):
    cp.cuda.get_current_stream().synchronize()


def download(a):
    return cp.asnumpy(a)


def prepared(a):
    """Return a function without arguments: each call adds one to what a then holds, and returns a."""
    validate(a)
    if not a.size:
        return lambda: a
    flat = cuda.as_cuda_array(a.reshape(-1), sync=False)  # else the host would wait for the stream
    blocks = (a.size + THREADS - 1) // THREADS

    def replay():
        # This array is not CuPy's: without its stream, the kernel would be launched in the default one.
        kernel[blocks, THREADS, cp.cuda.get_current_stream().ptr](flat)
        return a

    return replay


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print("increment, numba-cuda-mlir on CuPy's arrays: 1,000,003 elements, all right")
