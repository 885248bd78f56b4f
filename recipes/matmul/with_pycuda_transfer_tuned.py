"""Multiply two matrices in PyCUDA, tuned for host arrays: small ones over the bus by a kernel, large ones in pieces.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy cuda-pathfinder nvidia-cublas
Needs: nvcc
Math: float32, TF32 off

Of small matrices (K up to 256, a tile of 20 × 16 per multiprocessor), one kernel fetches both from page-locked memory,
and another writes the product there. Of large ones (a of more than 8 MiB, or 64 if all are in such memory), b goes up
first, then a in pieces: while one is multiplied, others are under way. Arrays that pinned() made are used as they are,
others pass through page-locked memory. What is neither small nor large is copied whole. Up to 144 MiB of that memory,
and 96 on the GPU, stay until inside(lane.cache_clear).
On an NVIDIA H200, 4,096×4,096 matrices take 22 ms, page-locked ones, copied whole, 7.7.
"""

from concurrent.futures import ThreadPoolExecutor
from ctypes import CDLL, byref, c_float, c_int64, c_void_p
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from weakref import finalize

import numpy as np
from cuda.pathfinder import load_nvidia_dynamic_lib
from pycuda import autoprimaryctx, compiler, driver, gpuarray  # the first: the context that others use, too

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul_tuned.cu").read_text()
ROWS, COLUMNS, MOST_K, THREADS = 20, 16, 256, (224, 1, 1)  # as in the kernel
PIECE, LANES, lock, handle_lock = 2**20, 12, Lock(), Lock()  # elements; lanes, which all callers share; of the handle
module, multiprocessors = compiler.SourceModule(KERNEL, no_extern_c=True), autoprimaryctx.device.multiprocessor_count
fetch, multiply = module.get_function("fetch").prepare("PPPii"), module.get_function("matmul").prepare("PPPiii")
cublas, handle = CDLL(load_nvidia_dynamic_lib("cublas").abs_path), c_void_p()
one, zero = byref(c_float(1)), byref(c_float(0))
if cublas.cublasCreate_v2(byref(handle)):
    raise RuntimeError("cuBLAS could not be started")


@lru_cache
def lane(number):  # a stream, which waits for to_gpu(), and room for three pieces, or for two on the GPU
    return driver.Stream(), pinned((3, PIECE)), *map(driver.mem_alloc, 2 * [4 * PIECE])


def inside(function, *arguments):  # PyCUDA's context, which only the importing thread has; no other may keep it
    autoprimaryctx.context.push()
    try:
        return function(*arguments)
    finally:
        autoprimaryctx.context.pop()


def pinned(shape):
    memory = inside(driver.pagelocked_empty, int(np.prod(shape)) or 1, np.float32)
    finalize(memory, inside, memory.base.free).atexit = False  # in other threads, PyCUDA itself would not free it
    return np.ndarray(shape, np.float32, memory)


def is_pinned(x):  # and fit for a kernel
    return x.flags.carray and is_pinned(x.base) if type(x) is np.ndarray else type(x) is driver.PagelockedHostAllocation


def upload(*arrays):
    return tuple(gpuarray.to_gpu(np.asarray(x, np.float32, order="C")) for x in arrays)


def matmul(a, b, c=None, stream=0):  # the last two: for round_trip()
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if not (a.flags.c_contiguous and b.flags.c_contiguous):
        raise ValueError("matmul takes C-contiguous arrays, as upload() makes them")
    if not (a.size and b.size):  # cuBLAS refuses rows of no elements
        return gpuarray.to_gpu(np.zeros(a.shape[:1] + b.shape[1:], np.float32))
    c = gpuarray.empty(a.shape[:1] + b.shape[1:], np.float32) if c is None else c
    (m, k, n), (x, y, z) = map(c_int64, a.shape + b.shape[1:]), (c_void_p(int(each.gpudata)) for each in (a, b, c))
    with handle_lock:  # to cuBLAS, which stores columns, these are the transposes: c.T = b.T @ a.T
        fault = cublas.cublasSetStream_v2(handle, c_void_p(stream))
        if fault or cublas.cublasSgemm_v2_64(handle, 0, 0, n, m, k, one, y, n, x, k, zero, z, n):
            raise RuntimeError("cuBLAS could not multiply")
    return c


def wait(c):
    autoprimaryctx.context.synchronize()


def download(c, out=None):
    if out is not None and not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    return c.get(out)


def round_trip(a, b, out=None):
    a, b = (np.asarray(x, np.float32, order="C") for x in (a, b))
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]):
        raise ValueError(f"matmul takes arrays of M×K and K×N, not {a.shape} and {b.shape}")
    out = np.empty((len(a), b.shape[1]), np.float32) if out is None else out
    if not (out.shape == (len(a), b.shape[1]) and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"matmul fills writeable C-order float32 {(len(a), b.shape[1])}, not {out.dtype} {out.shape}")
    tiles = -(-len(a) // ROWS) * -(-b.shape[1] // COLUMNS)
    whole = a.size <= (16 if all(map(is_pinned, (a, b, out))) else 2) * PIECE or not b.size or max(b.shape) > PIECE
    with lock:
        try:
            if 0 < tiles <= multiprocessors and 0 < len(b) <= MOST_K and max(a.size + b.size, out.size) <= PIECE:
                inside(small, a, b, out, tiles)
            elif whole:
                inside(lambda: download(matmul(*upload(a, b)), out))  # since threads would cost more than they save
            else:
                a, (factor,) = a.copy() if np.may_share_memory(a, out) else a, inside(upload, b)
                finalize(factor, inside, factor.gpudata.free).atexit = False  # as pinned memory
                lanes = [inside(lane, number) for number in range(LANES)]
                with ThreadPoolExecutor(LANES) as pool:
                    list(pool.map(partial(inside, run, a, factor, out), lanes, range(LANES)))
        except BaseException:  # nobody may free the arrays before; after a second Ctrl-C, threads may use these lanes
            inside(wait, out)
            inside(lane.cache_clear)
            raise
    return out


def small(a, b, out, tiles):
    stream, rooms, on_gpu, _ = lane(0)
    hosts = zip((a, b, out), rooms, strict=True)
    x, y, z = (host if is_pinned(host) else room[: host.size].reshape(host.shape) for host, room in hosts)
    np.copyto(x, a)  # nothing to do if they are one
    np.copyto(y, b)
    blocks, second = -(-(a.size + b.size) // 256), int(on_gpu) + a.nbytes  # page-locked memory has one address for both
    fetch.prepared_async_call((blocks, 1), (256, 1, 1), stream, x.ctypes.data, y.ctypes.data, on_gpu, a.size, b.size)
    multiply.prepared_async_call((tiles, 1), THREADS, stream, on_gpu, second, z.ctypes.data, *a.shape, b.shape[1])
    stream.synchronize()
    np.copyto(out, z)


def run(a, factor, out, lane, first):  # the pieces first, first + LANES, … of a
    (stream, rooms, u, v), rows = lane, PIECE // max(factor.shape)
    for i in range(first * rows, len(a), LANES * rows):
        hosts = a[i : i + rows], out[i : i + rows]
        x, z = (h if is_pinned(h) else room[: h.size].reshape(h.shape) for h, room in zip(hosts, rooms, strict=False))
        left, right = (gpuarray.GPUArray(host.shape, np.float32, gpudata=room) for host, room in ((x, u), (z, v)))
        np.copyto(x, hosts[0])
        driver.memcpy_htod_async(u, x, stream)
        matmul(left, factor, right, stream.handle)
        driver.memcpy_dtoh_async(z, v, stream)
        stream.synchronize()
        np.copyto(hosts[1], z)


if __name__ == "__main__":
    a, b = (np.random.default_rng(0).standard_normal(n, np.float32) for n in ((4_003, 2_003), (2_003, 503)))
    np.testing.assert_allclose(round_trip(a, b), a.astype(np.float64) @ b, rtol=0, atol=1e-3)
    print("matmul, PyCUDA from host arrays: 4,003×2,003×503, all right")
