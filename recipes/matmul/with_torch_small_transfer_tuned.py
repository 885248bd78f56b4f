"""Multiply two small matrices in PyTorch, tuned for host arrays: kernels read them and write the product over the bus.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install "torch>=2.9" numpy
Math: float32, TF32 off (PyTorch's default; torch.set_float32_matmul_precision turns it on for cuBLAS)

One kernel fetches both factors from page-locked memory, another writes the product into such memory. Arrays that
pinned() made are used as they are; others are copied while the launch is under way. Up to eight results stay where the
GPU wrote them. For K up to 256, and at most one tile of 20 × 16 per multiprocessor; others go the usual way. Buffers,
of 4 MiB on each side, stay until desk.cache_clear().
"""

from functools import lru_cache
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

import numpy as np
import torch

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul_tuned.cu").read_text()
ROWS, COLUMNS, MOST_K, THREADS, FETCHERS, READY, LATE = 20, 16, 256, 224, 512, 6, 7  # as in the kernels
ROOM, lent, MOST_LENT, lock = 2**20, WeakValueDictionary(), 8, Lock()  # elements; page-locked results that callers have


@lru_cache
def desk(device):  # how many tiles are small, a job, page-locked room for factors, and a graph that does the job
    tiles = torch.cuda.get_device_properties(device).multi_processor_count
    job, staged, on_gpu = pinned(16), pinned(ROOM), torch.empty(32 + ROOM, dtype=torch.float32, device="cuda")
    fetch, multiply = (torch.cuda._compile_kernel(KERNEL, name) for name in ("fetch", "matmul_fetched"))
    with torch.cuda.graph(graph := torch.cuda.CUDAGraph(), capture_error_mode="relaxed"):  # recorded, not run
        fetch((2 * tiles, 1, 1), (FETCHERS, 1, 1), (torch.from_numpy(job), on_gpu))
        multiply((tiles, 1, 1), (THREADS, 1, 1), (on_gpu,))
    return tiles, job.view(np.int64), staged, graph, on_gpu


def pinned(shape):
    return torch.empty(shape, dtype=torch.float32, device="cpu", pin_memory=True).numpy()


def is_pinned(x):  # no more than the memory that PyTorch made
    return is_pinned(x.base) if isinstance(x, np.ndarray) else isinstance(x, torch.Tensor) and x.is_pinned()


def upload(*arrays):
    return tuple(torch.tensor(np.asarray(x, np.float32).ravel(), device="cuda").reshape(np.shape(x)) for x in arrays)


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == torch.float32):
        what = f"{a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {what}")
    return a @ b


def wait(c):
    torch.cuda.current_stream().synchronize()


def download(c, out=None):
    return c.cpu().numpy() if out is None else np.positive(c.cpu().numpy(), out=out)


def round_trip(a, b, out=None):
    a, b = (np.asarray(x, np.float32) for x in (a, b))
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]
    if right and out is not None:
        right = out.shape == (len(a), b.shape[1]) and out.dtype == np.float32 and out.flags.carray
    if not right or out is not None and (np.may_share_memory(a, out) or np.may_share_memory(b, out)):
        what = f"{a.shape} and {b.shape}" + ("" if out is None else f" into {out.dtype} {out.shape}")
        raise ValueError(f"matmul takes M×K and K×N, and a C-contiguous float32 M×N apart from them, not {what}")
    (m, k), n, (most, job, staged, graph, _) = a.shape, b.shape[1], desk(torch.cuda.current_device())
    tiles = -(-m // ROWS) * -(-n // COLUMNS)
    if not 0 < tiles <= most or k > MOST_K or a.size + b.size > ROOM:
        return download(matmul(*upload(a, b)), out)
    with lock:  # the desk is shared by all callers
        direct = all(is_pinned(x) and x.flags.c_contiguous and x.flags.aligned for x in (a, b))
        x, y = (a, b) if direct else (staged[: a.size].reshape(m, k), staged[a.size :][: b.size].reshape(k, n))
        c = out if is_pinned(out) else pinned((m, n))
        job[:] = x.ctypes.data, y.ctypes.data, c.ctypes.data, m, k, n, (a.size + b.size) * direct, 0
        try:
            graph.replay()
            for to, source in () if direct else ((x, a), (y, b)):  # the kernel waits for these, but not for ever
                np.copyto(to, source)
                job[READY] += source.size
        finally:  # after Ctrl-C, too
            wait(c)
        c = download(matmul(*upload(a, b))) if job[LATE] else c
        if out is None:
            return lent.setdefault(c.ctypes.data, c) if len(lent) < MOST_LENT else c.copy()
        np.copyto(out, c)  # nothing to do if they are one
    return out


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    np.testing.assert_allclose(round_trip(a, b), a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, PyTorch from small host arrays: 200×200×200, all right")
