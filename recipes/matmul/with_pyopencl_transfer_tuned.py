"""Multiply two matrices in PyOpenCL, tuned for host arrays: in pieces, so that transfers take place during the work.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"

A large a (of more than 8 MiB, or 64 if all are page-locked) goes up in pieces, after b; others whole. 96 MiB of
buffers, and 96 on the device, stay until lane.cache_clear().
On an NVIDIA H200, 4,096×4,096 matrices take 19 ms, page-locked ones, copied whole, 8.3.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock

import numpy as np
import pyopencl as cl
import pyopencl.array

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul_tuned.cl").read_text()
GROUP, PIECE, LANES, lock = 256, 2**20, 12, Lock()  # work-items per group; elements; lanes, which all callers share
enqueuing = Lock()  # two threads must not set arguments of one kernel; PoCL crashed where both used one buffer
devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
kernels = {tile: cl.Program(queue.context, KERNEL).build([f"-DTILE={tile}"]).matmul_large for tile in (64, 128)}
for kernel in kernels.values():
    kernel.set_scalar_arg_dtypes([None] * 3 + [np.int64] * 3)  # otherwise each call inspects its arguments
units = device.max_compute_units if device.type & cl.device_type.GPU else float("inf")  # a CPU likes smaller tiles


@lru_cache
def lane(number):  # a queue, page-locked room for a piece and its product, and room for both on the device
    x, c = (cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 4 * PIECE) for _ in range(2))
    return cl.CommandQueue(queue.context), pinned((2, PIECE)), x, c


def pinned(shape):
    size, flags = int(np.prod(shape, dtype=np.int64)), cl.map_flags.READ | cl.map_flags.WRITE  # no bytes are an error
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR, 4 * max(1, size))
    return cl.enqueue_map_buffer(queue, buffer, flags, 0, max(1, size), np.float32)[0][:size].reshape(shape)


def is_pinned(x):
    return is_pinned(x.base) if isinstance(x, np.ndarray) else isinstance(x, cl.MemoryMap)


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float32, order="C")) for x in arrays)


def launch(queue, a, b, c, m, k, n):
    tile = 128 if -(-m // 128) * -(-n // 128) >= units else 64  # every compute unit is to have work
    with enqueuing:
        kernels[tile](queue, (-(-m // tile) * -(-n // tile) * GROUP,), (GROUP,), a, b, c, m, k, n)


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if not all(x.flags.c_contiguous and x.offset == 0 for x in (a, b)):
        raise ValueError("matmul takes C-contiguous arrays, as upload() makes them")
    c = cl.array.empty(queue, (a.shape[0], b.shape[1]), np.float32)
    if c.size:  # a launch of no work-items is an error
        launch(queue, a.base_data, b.base_data, c.base_data, *a.shape, b.shape[1])
    return c


def wait(c):
    queue.finish()


def download(c, out=None):
    if out is not None and not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    return c.get(ary=out)


def round_trip(a, b, out=None):
    a, b = (np.require(x, np.float32, "CAE") for x in (a, b))  # C-contiguous, aligned, no subclass
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]):
        raise ValueError(f"matmul takes arrays of M×K and K×N, not {a.shape} and {b.shape}")
    out = np.empty((len(a), b.shape[1]), np.float32) if out is None else out
    if not (out.shape == (len(a), b.shape[1]) and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"matmul fills writeable C-order float32 {(len(a), b.shape[1])}, not {out.dtype} {out.shape}")
    with lock:
        if a.size and b.size and max(a.size, b.size, out.size) <= PIECE:
            return small(a, b, out)
        if a.size <= (16 if all(map(is_pinned, (a, b, out))) else 2) * PIECE or not b.size or max(b.shape) > PIECE:
            return download(matmul(*upload(a, b)), out)  # since threads would cost more than they save
        a, b = (x.copy() if np.may_share_memory(x, out) else x for x in (a, b))
        factor = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, b.nbytes)
        rows, lanes = PIECE // max(b.shape), [lane(number) for number in range(LANES)]
        try:
            with ThreadPoolExecutor(LANES) as pool:
                list(pool.map(partial(send, b, factor, rows), lanes, range(LANES)))
                list(pool.map(partial(run, a, factor, out, rows), lanes, range(LANES)))
        except BaseException:  # after a second Ctrl-C, threads may still use these lanes
            lane.cache_clear()
            raise
    return out


def small(a, b, out):
    (queue, rooms, x, c), (_, (other, _), y, _) = lane(0), lane(1)
    result = out if is_pinned(out) else rooms[1, : out.size].reshape(out.shape)
    hosts = (x, staged(rooms[0], a)), (y, staged(other, b))
    try:
        _ = [cl.enqueue_copy(queue, to, host, is_blocking=False) for to, host in hosts]  # kept: dropped, it waits
        launch(queue, x, y, c, *a.shape, b.shape[1])
        cl.enqueue_copy(queue, result, c)
    finally:  # also after Ctrl-C: nobody may free the arrays before
        queue.finish()
    np.copyto(out, result)  # nothing to do if they are one
    return out


def send(b, factor, rows, lane, first):  # the pieces first, first + LANES, …
    queue, room, *_ = lane
    for i in range(first * rows, len(b), LANES * rows):
        host, where = staged(room[0], b[i : i + rows]), 4 * i * b.shape[1]
        with enqueuing:
            copied = cl.enqueue_copy(queue, factor, host, dst_offset=where, is_blocking=False)
        copied.wait()


def run(a, factor, out, rows, lane, first):  # the pieces first, first + LANES, …
    queue, room, x, c = lane
    for i in range(first * rows, len(a), LANES * rows):
        product = out[i : i + rows]
        cl.enqueue_copy(queue, x, staged(room[0], a[i : i + rows]))  # which waits for it
        launch(queue, x, factor, c, len(product), a.shape[1], product.shape[1])
        result = product if is_pinned(product) else room[1, : product.size].reshape(product.shape)
        cl.enqueue_copy(queue, result, c)
        np.copyto(product, result)  # nothing to do if they are one


def staged(room, x):  # the array itself, if it is page-locked, or a copy that is
    host = x if is_pinned(x) else room[: x.size].reshape(x.shape)
    np.copyto(host, x)
    return host


if __name__ == "__main__":
    a, b = (np.random.default_rng(0).standard_normal(n, np.float32) for n in ((4_003, 2_003), (2_003, 503)))
    np.testing.assert_allclose(round_trip(a, b), a.astype(np.float64) @ b, rtol=0, atol=1e-3)
    print(f"matmul, PyOpenCL on {device.name.strip()}, from host arrays: 4,003×2,003×503, all right")
