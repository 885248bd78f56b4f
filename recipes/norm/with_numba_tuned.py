"""Norm of an array in Numba, tuned: four loads at a time, and a CUDA graph to replay.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" "numpy<2.5"

Each thread has four loads in flight, not one. For small arrays, what Numba does on the host takes longer than the
kernels: prepared() does that once, and replays both launches as one graph. The file is long because Numba has no sum
over a block and no graphs: both are written out. A new thread needs numba.cuda.current_context() to wait().
"""

import math
import weakref

import numpy as np
from cuda.bindings import driver as cu  # Numba launches through it
from numba import cuda

BLOCKS = 4096  # at most: they fill any GPU
THREADS = 256  # per block


@cuda.jit
def norms_of_blocks(x, norms):
    sums = cuda.shared.array(THREADS, np.float32)
    thread, half = cuda.threadIdx.x, THREADS // 2
    i, step = cuda.grid(1), cuda.gridsize(1)  # 64-bit, as sizes are
    # Four sums: an addition need not wait for the one before it, nor a load. Plain zeros would make them float64.
    s = t = u = v = np.float32(0)
    while i + 3 * step < x.size:
        a, b, c, d = x[i], x[i + step], x[i + 2 * step], x[i + 3 * step]
        s += a * a
        t += b * b
        u += c * c
        v += d * d
        i += 4 * step
    while i < x.size:
        s += x[i] * x[i]
        i += step
    sums[thread] = (s + t) + (u + v)
    while half > 0:
        cuda.syncthreads()
        if thread < half:
            sums[thread] += sums[thread + half]
        half //= 2
    if thread == 0:
        norms[cuda.blockIdx.x] = math.sqrt(sums[0])  # no atomics: the same answer every time


def upload(*arrays):
    # Flat, then in shape: Numba refuses the stride, 0 or less, that NumPy may give an axis of one element.
    return tuple(cuda.to_device(np.asarray(x, np.float32).ravel().reshape(np.shape(x))) for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    if not x.is_c_contiguous():
        raise ValueError("norm takes a C-contiguous array, as upload() makes it")
    if x.size == 0:  # a grid of no blocks is an error
        return cuda.to_device(np.zeros(1, np.float32))
    norms, result = room(x), cuda.device_array(1, np.float32)
    launch(x, norms, result)
    return result


def room(x):  # for the norm of each block
    return cuda.device_array(min(BLOCKS, -(-x.size // (4 * THREADS))), np.float32)


def launch(x, norms, result, stream=0):
    norms_of_blocks[norms.size, THREADS, stream](x if x.ndim == 1 else x.ravel(), norms)
    norms_of_blocks[1, THREADS, stream](norms, result)  # the norm of the norms is that of x


def wait(norm):
    checked(cu.cuCtxSynchronize())  # cuda.synchronize() does more


def download(norm):
    return norm.copy_to_host()[0]


def prepared(x):
    """A function that makes the norm of what x holds when it is called, in one graph; all calls share one result."""
    result = norm(x)  # refuses what it refuses, and compiles
    if x.size == 0:
        return lambda: result
    norms, stream = room(x), cuda.stream()  # the default stream cannot be captured
    checked(cu.cuStreamBeginCapture(int(stream.handle), cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    launch(x, norms, result, stream)  # recorded, not run
    captured = checked(cu.cuStreamEndCapture(int(stream.handle)))
    graph = checked(cu.cuGraphInstantiate(captured, 0))
    checked(cu.cuGraphDestroy(captured))

    def replay():
        checked(cu.cuGraphLaunch(graph, 0))
        return result

    weakref.finalize(replay, lambda *arrays: cu.cuGraphExecDestroy(graph), x, norms).atexit = False  # keeps both
    return replay


def checked(answer):
    if answer[0]:  # the error code; behind it, what was asked for
        raise RuntimeError(answer[0].name)
    return answer[-1]


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, Numba tuned: 1,000,003 elements, all right")
