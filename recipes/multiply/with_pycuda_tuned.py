"""Multiply two arrays in PyCUDA, tuned: a CUDA C kernel with loads of 16 bytes, and a CUDA graph to replay.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy "cuda-bindings>=13"
Needs: nvcc

Each thread loads four elements at once, 16 bytes, which keeps more loads in flight. On an NVIDIA H200: 4,380 GB/s
instead of 3,490 (with_pycuda.py). prepared() records the launch as a CUDA graph: replaying it costs the CPU less than a
launch. PyCUDA has no graphs of its own, so a third of the file is the CUDA driver's calls that record one.
"""

import weakref
from pathlib import Path

import numpy as np
from cuda.bindings import driver as cu  # for graphs, which PyCUDA does not have
from pycuda import autoprimaryctx, driver, gpuarray  # autoprimaryctx: the context that CuPy, PyTorch and Numba use
from pycuda.compiler import SourceModule

KERNEL = (Path(__file__).parents[2] / "kernels" / "multiply_tuned.cu").read_text()
THREADS = 256  # per block; a multiple of the 32 of a warp

kernel = SourceModule(KERNEL, no_extern_c=True).get_function("multiply")
kernel.prepare("PPPq")  # the types of the arguments, once: three pointers and a 64-bit integer


def upload(*arrays):
    return tuple(gpuarray.to_gpu(np.asarray(x, np.float32, order="C")) for x in arrays)


def output_for(a, b, out):
    out = gpuarray.empty(a.shape, a.dtype) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    if not (a.flags.c_contiguous and b.flags.c_contiguous and out.flags.c_contiguous):
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    return out


def launch(a, b, out, stream=None):
    blocks = -(-a.size // (4 * THREADS))
    kernel.prepared_async_call((blocks, 1), (THREADS, 1, 1), stream, a.gpudata, b.gpudata, out.gpudata, a.size)


def multiply(a, b, out=None):
    out = output_for(a, b, out)
    if a.size:  # a grid of no blocks is an error
        launch(a, b, out)
    return out


def wait(c):
    autoprimaryctx.context.synchronize()


def download(c):
    return c.get()


def prepared(a, b, out=None):
    """Return a function without arguments: each call multiplies what a and b then hold, and returns the same out."""
    out = output_for(a, b, out)
    if not a.size:
        return lambda: out
    # The first launch loads the kernel, which a capture may not. Zeros: initcheck names reads of unwritten memory.
    launch(*3 * [gpuarray.zeros(1, np.float32)])
    stream = driver.Stream(1)  # CU_STREAM_NON_BLOCKING; the default stream cannot be captured
    checked(cu.cuStreamBeginCapture(stream.handle, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    launch(a, b, out, stream)  # recorded, not run
    captured = checked(cu.cuStreamEndCapture(stream.handle))
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
    print("multiply, PyCUDA tuned: 1,000,003 elements, all right")
