"""Multiply two arrays in Numba, tuned: a kernel in Python, four elements per thread, and a CUDA graph to replay.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" "numpy<2.5"

Each thread starts four loads before its first store, so that more of them are in flight. prepared() replays a CUDA
graph, which a third of the file records: Numba has none. A new thread needs numba.cuda.current_context() to wait().
"""

import weakref

import numpy as np
from cuda.bindings import driver as cu  # Numba launches through it
from numba import cuda

THREADS = 256  # per block; a multiple of the 32 of a warp


@cuda.jit
def kernel(a, b, c):
    # In strides, so that neighbours read neighbours. Loads first: for all that Numba knows, c may be a or b.
    n, i = a.size, cuda.blockIdx.x * (4 * THREADS) + cuda.threadIdx.x
    j, k, m = i + THREADS, i + 2 * THREADS, i + 3 * THREADS
    if m < n:
        x, y, z, w = a[i] * b[i], a[j] * b[j], a[k] * b[k], a[m] * b[m]
        c[i], c[j], c[k], c[m] = x, y, z, w
    else:  # the last block is rarely full
        for p in range(i, n, THREADS):
            c[p] = a[p] * b[p]


def upload(*arrays):
    # Flat, then in shape: Numba refuses the stride, 0 or less, that NumPy may give an axis of one element.
    return tuple(cuda.to_device(np.asarray(x, np.float32).ravel().reshape(np.shape(x))) for x in arrays)


def output_for(a, b, out):
    out = cuda.device_array(a.shape, a.dtype) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    if not (a.is_c_contiguous() and b.is_c_contiguous() and out.is_c_contiguous()):
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    return out


def launch(a, b, out, stream=0):
    kernel[-(-a.size // (4 * THREADS)), THREADS, stream](*(x if x.ndim == 1 else x.ravel() for x in (a, b, out)))


def multiply(a, b, out=None):
    out = output_for(a, b, out)
    if a.size:  # a grid of no blocks is an error
        launch(a, b, out)
    return out


def wait(c):
    checked(cu.cuCtxSynchronize())  # cuda.synchronize() does more


def download(c):
    return c.copy_to_host()


def prepared(a, b, out=None):
    """Return a function without arguments: each call multiplies what a and b then hold, and returns the same out."""
    out = output_for(a, b, out)
    if not a.size:
        return lambda: out
    launch(*3 * [cuda.to_device(np.zeros(1, np.float32))])  # the first compiles, which a capture may not
    stream = cuda.stream()  # the default stream cannot be captured
    checked(cu.cuStreamBeginCapture(int(stream.handle), cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    launch(a, b, out, stream)  # recorded, not run
    captured = checked(cu.cuStreamEndCapture(int(stream.handle)))
    graph = checked(cu.cuGraphInstantiate(captured, 0))
    checked(cu.cuGraphDestroy(captured))

    def replay():
        checked(cu.cuGraphLaunch(graph, 0))
        return out

    weakref.finalize(replay, lambda *arrays: cu.cuGraphExecDestroy(graph), a, b).atexit = False  # keeps a and b
    return replay


def checked(answer):
    if answer[0]:  # the error code; behind it, what was asked for
        raise RuntimeError(answer[0].name)
    return answer[-1]


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, Numba tuned: 1,000,003 elements, all right")
