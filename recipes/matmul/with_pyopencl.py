"""Multiply two matrices in PyOpenCL: an OpenCL C kernel with 16×16 tiles in local memory, on a GPU or on the CPU.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"
Follows: https://documen.tician.de/pyopencl/
Follows: https://documen.tician.de/pyopencl/runtime_memory.html#mapping-memory-into-host-address-space

Calls from several threads must take turns: a kernel of OpenCL has one set of arguments for all of them.
"""

from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul.cl").read_text()
TILE = 16  # as in the kernel

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
kernel = cl.Kernel(cl.Program(queue.context, KERNEL).build(), "matmul")  # once: program.matmul would make one per call


def pinned(shape):
    size, flags = int(np.prod(shape)), cl.map_flags.READ | cl.map_flags.WRITE
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR, 4 * (size or 1))
    memory, _ = cl.enqueue_map_buffer(queue, buffer, flags, 0, size or 1, np.float32)  # no bytes are an error
    return memory[:size].reshape(shape)


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float32, order="C")) for x in arrays)


def matmul(a, b, out=None):
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32
    if right and out is not None:
        right = out.shape == (a.shape[0], b.shape[1]) and out.dtype == np.float32
    if not right:
        raise ValueError(
            f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            + ("" if out is None else f" into {out.dtype} {out.shape}")
        )
    (m, k), n = a.shape, b.shape[1]
    out = cl.array.empty(queue, (m, n), np.float32) if out is None else out
    if not all(x.flags.c_contiguous and x.offset == 0 for x in (a, b, out)):
        raise ValueError("matmul takes C-contiguous arrays, as upload() makes them")
    if out.size:  # a launch of no work-items is an error
        if out.data in (a.data, b.data):
            raise ValueError("matmul takes an out that is neither a nor b")
        tiles = -(-m // TILE) * -(-n // TILE)  # each division rounds up
        sizes = np.int64(m), np.int64(k), np.int64(n)
        kernel(queue, (tiles * TILE, TILE), (TILE, TILE), a.data, b.data, out.data, *sizes)
    return out


def wait(c):
    queue.finish()


def download(c, out=None):
    if out is not None and not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    return c.get(ary=out)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print(f"matmul, PyOpenCL on {device.name.strip()}: 200×200×200, all right")
