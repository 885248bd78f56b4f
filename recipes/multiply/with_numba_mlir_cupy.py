"""Multiply two arrays of CuPy in numba-cuda-mlir: a kernel in Python, launched in CuPy's current stream.

Framework: numba-cuda-mlir
Runs on: NVIDIA GPU
Install: pip install "numba-cuda-mlir[cu13]" "cupy-cuda13x[ctk]"
Environment: numba_mlir
Follows: https://nvidia.github.io/numba-cuda-mlir/latest/user/memory.html
Follows: https://nvidia.github.io/numba-cuda-mlir/latest/reference/envvars.html

At each launch, the host waits until all that is in CuPy's stream is done, once for each array. It need not, as the
kernel is launched in that stream: with NUMBA_CUDA_ARRAY_INTERFACE_SYNC=0, set before Python starts, it does not. Nor
does it in prepared(), which wraps the arrays once in numba-cuda-mlir's own, without a copy, and launches with those.
"""

import cupy as cp
import numpy as np
from numba_cuda_mlir import cuda

THREADS = 256  # per block; a multiple of the 32 of a warp


@cuda.jit
def kernel(a, b, c):
    i = cuda.blockIdx.x * THREADS + cuda.threadIdx.x  # 64-bit; cuda.grid(1) wraps at 2**31
    if i < c.size:  # the last block is rarely full
        c[i] = a[i] * b[i]


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def output_for(a, b, out):
    out = cp.empty(a.shape, a.dtype) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    if not all(x.flags.c_contiguous for x in (a, b, out)):
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    here, places = cp.cuda.Device().id, [x.device.id for x in (a, b, out)]
    if any(place != here for place in places):  # it would be launched where the first one is, in a stream of this GPU
        raise ValueError(f"multiply takes arrays of the current GPU, {here}, not of {places}")
    return out


def multiply(a, b, out=None):
    out = output_for(a, b, out)
    if a.size:  # a grid of no blocks is an error
        # In CuPy's current stream, as the arrays are CuPy's. The kernel is for one axis: reshape() makes views.
        kernel[(a.size + THREADS - 1) // THREADS, THREADS](*(x.reshape(-1) for x in (a, b, out)))
    return out


def wait(c):
    cp.cuda.get_current_stream().synchronize()


def download(c):
    return cp.asnumpy(c)


def prepared(a, b, out=None):
    """Return a function without arguments: each call multiplies what a and b then hold, and returns the same out."""
    out = output_for(a, b, out)
    if not a.size:
        return lambda: out
    # Without sync=False, the host would wait for the stream. Each of these keeps the memory of its array.
    flat = [cuda.as_cuda_array(x.reshape(-1), sync=False) for x in (a, b, out)]
    blocks = (a.size + THREADS - 1) // THREADS

    def replay():
        # None of these arrays is CuPy's: without its stream, the kernel would be launched in the default one.
        kernel[blocks, THREADS, cp.cuda.get_current_stream().ptr](*flat)
        return out

    return replay


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, numba-cuda-mlir on CuPy's arrays: 1,000,003 elements, all right")
