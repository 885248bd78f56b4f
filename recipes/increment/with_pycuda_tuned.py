"""Add one to an array in place in PyCUDA, tuned: a CUDA C kernel with loads of 16 bytes, and a CUDA graph to replay.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy "cuda-bindings>=13"
Needs: nvcc

Each thread loads four elements at once, 16 bytes, which keeps more loads in flight. On an NVIDIA H200: 4,260 GB/s
instead of 2,770 (with_pycuda.py). prepared() records the launch as a CUDA graph: replaying it costs the CPU less than a
launch. PyCUDA has no graphs of its own, so a third of the file is the CUDA driver's calls that record one.
"""

import weakref
from pathlib import Path

import numpy as np
from cuda.bindings import driver as cu  # for graphs, which PyCUDA does not have
from pycuda import autoprimaryctx, driver, gpuarray  # autoprimaryctx: the context that CuPy, PyTorch and Numba use
from pycuda.compiler import SourceModule

KERNEL = (Path(__file__).parents[2] / "kernels" / "increment_tuned.cu").read_text()
THREADS = 256  # per block; a multiple of the 32 of a warp

kernel = SourceModule(KERNEL, no_extern_c=True).get_function("increment")
kernel.prepare("Pq")  # the types of the arguments, once: a pointer and a 64-bit integer


def upload(*arrays):
    return tuple(gpuarray.to_gpu(np.asarray(x, np.float32, order="C")) for x in arrays)


def validate(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    if not a.flags.c_contiguous:
        raise ValueError("increment takes a C-contiguous array, as upload() makes it")


def launch(a, stream=None):
    blocks = -(-a.size // (4 * THREADS))
    kernel.prepared_async_call((blocks, 1), (THREADS, 1, 1), stream, a.gpudata, a.size)


def increment(a):
    validate(a)
    if a.size:  # a grid of no blocks is an error
        launch(a)
    return a


def wait(a):
    autoprimaryctx.context.synchronize()


def download(a):
    return a.get()


def prepared(a):
    """Return a function without arguments: each call adds one to what a then holds, and returns a."""
    validate(a)
    if not a.size:
        return lambda: a
    # The first launch loads the kernel, which a capture may not. Zeros: initcheck names reads of unwritten memory.
    launch(gpuarray.zeros(1, np.float32))
    stream = driver.Stream(1)  # CU_STREAM_NON_BLOCKING; the default stream cannot be captured
    checked(cu.cuStreamBeginCapture(stream.handle, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    launch(a, stream)  # recorded, not run
    captured = checked(cu.cuStreamEndCapture(stream.handle))
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
    print("increment, PyCUDA tuned: 1,000,003 elements, all right")
