"""Add one to an array in place in Numba, tuned: a kernel in Python, four loads per thread, and a CUDA graph.

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

THREADS = 128  # per block; a multiple of the 32 of a warp


@cuda.jit
def kernel(a):
    # In strides, so that neighbours read neighbours. Loads first, so that four are in flight together.
    n, one = a.size, np.float32(1)  # Numba would add a plain 1 in float64
    i = cuda.blockIdx.x * (4 * THREADS) + cuda.threadIdx.x
    j, k, m = i + THREADS, i + 2 * THREADS, i + 3 * THREADS
    if m < n:
        x, y, z, w = a[i] + one, a[j] + one, a[k] + one, a[m] + one
        a[i], a[j], a[k], a[m] = x, y, z, w
    else:  # the last block is rarely full
        for p in range(i, n, THREADS):
            a[p] += one


def upload(*arrays):
    # Flat, then in shape: Numba refuses the stride, 0 or less, that NumPy may give an axis of one element.
    return tuple(cuda.to_device(np.asarray(x, np.float32).ravel().reshape(np.shape(x))) for x in arrays)


def validate(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    if not a.is_c_contiguous():
        raise ValueError("increment takes a C-contiguous array, as upload() makes it")


def launch(a, stream=0):
    kernel[-(-a.size // (4 * THREADS)), THREADS, stream](a if a.ndim == 1 else a.ravel())


def increment(a):
    validate(a)
    if a.size:  # a grid of no blocks is an error
        launch(a)
    return a


def wait(a):
    checked(cu.cuCtxSynchronize())  # cuda.synchronize() does more


def download(a):
    return a.copy_to_host()


def prepared(a):
    """Return a function without arguments: each call adds one to what a then holds, and returns a."""
    validate(a)
    if not a.size:
        return lambda: a
    # The first launch compiles the kernel, which a capture may not. Zeros: initcheck names reads of unwritten memory.
    launch(cuda.to_device(np.zeros(1, np.float32)))
    stream = cuda.stream()  # the default stream cannot be captured
    checked(cu.cuStreamBeginCapture(int(stream.handle), cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    launch(a, stream)  # recorded, not run
    captured = checked(cu.cuStreamEndCapture(int(stream.handle)))
    graph = checked(cu.cuGraphInstantiate(captured, 0))
    checked(cu.cuGraphDestroy(captured))

    def replay():
        checked(cu.cuGraphLaunch(graph, 0))
        return a

    weakref.finalize(replay, cu.cuGraphExecDestroy, graph).atexit = False
    return replay


def checked(answer):
    if answer[0]:  # the error code; behind it, what was asked for
        raise RuntimeError(answer[0].name)
    return answer[-1]


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print("increment, Numba tuned: 1,000,003 elements, all right")
