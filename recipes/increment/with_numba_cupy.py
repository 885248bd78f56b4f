"""Add one to an array of CuPy in place in Numba: a kernel in Python, launched in CuPy's current stream.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" "cupy-cuda13x[ctk]" "numpy<2.5"
Follows: https://docs.cupy.dev/en/stable/user_guide/interoperability.html#numba
Follows: https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html

At each launch, Numba asks the array anew what it is and where it is. prepared() wraps it once in an array of Numba's
own, without a copy, and launches with that.
"""

import cupy as cp
import numpy as np
from numba import cuda

THREADS = 256  # per block; a multiple of the 32 of a warp


@cuda.jit
def kernel(a):
    i = cuda.grid(1)  # 64-bit, as sizes are
    if i < a.size:  # the last block is rarely full
        a[i] += np.float32(1)  # Numba would add a plain 1 in float64


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def validate(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    if not a.flags.c_contiguous:
        raise ValueError("increment takes a C-contiguous array, as upload() makes it")
    here, place = cp.cuda.Device().id, a.device.id
    if place != here:  # Numba does not look, and the kernel would fail
        raise ValueError(f"increment takes an array of the current GPU, {here}, not of {place}")


def launch(flat):
    # Not Numba's default stream: CuPy's next work, and what its pool of memory hands out, come after the kernel.
    stream = cp.cuda.get_current_stream().ptr
    blocks = (flat.shape[0] + THREADS - 1) // THREADS
    # 0 is the default stream, for Numba too.
    kernel[blocks, THREADS, stream and cuda.external_stream(stream)](flat)


def increment(a):
    validate(a)
    if a.size:  # a grid of no blocks is an error
        launch(a.reshape(-1))  # a view: the kernel is for one axis
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

    def replay():
        launch(flat)
        return a

    return replay


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print("increment, Numba on CuPy's arrays: 1,000,003 elements, all right")
