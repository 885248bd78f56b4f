"""Multiply two matrices in PyTorch, tuned: a CUDA C kernel for small ones, cuBLAS for the others, replayed as graphs.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install "torch>=2.9" numpy
Math: float32, TF32 off (PyTorch's default; torch.set_float32_matmul_precision turns it on for the large ones)
"""

from functools import lru_cache
from itertools import cycle
from pathlib import Path

import numpy as np
import torch

KERNEL = (Path(__file__).parents[2] / "kernels" / "matmul_tuned.cu").read_text()
ROWS, COLUMNS, MOST_K, THREADS = 20, 16, 256, 224  # as in the kernel

device = torch.device("cuda")
kernel, copy = (torch.cuda._compile_kernel(KERNEL, name) for name in ("matmul", "copy"))  # _: it may still change
multiprocessors = torch.cuda.get_device_properties(device).multi_processor_count
side = torch.cuda.Stream()  # the default stream cannot be captured
graphs = {}  # addresses and shape -> the launch as a graph; None until they come for the second time


def upload(*arrays):
    # torch.tensor copies. Flat: it refuses the negative stride that NumPy leaves on a reversed axis of one element.
    # torch.tensor copies. Flat: it refuses the negative stride that NumPy leaves on a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device=device).reshape(x.shape) for x in host)


def tiles(m, n):
    return -(-m // ROWS) * -(-n // COLUMNS)


def launch(a, b, out, m, k, n):  # takes 27 µs, of which a graph keeps none
    kernel((tiles(m, n), 1, 1), (THREADS, 1, 1), (a, b, out, m, k, n))


def captured(work, *arguments):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        graph.capture_begin()
        work(*arguments)  # noted down, not run
        graph.capture_end()
    return graph


def check(a, b, out=None):
    right = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == torch.float32
    if right and out is not None:
        right = tuple(out.shape) == (a.shape[0], b.shape[1]) and out.dtype == torch.float32
    if not right:
        raise ValueError(
            f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
            + ("" if out is None else f" into {out.dtype} {tuple(out.shape)}")
        )
    return *a.shape, b.shape[1]


def matmul(a, b, out=None):
    m, k, n = check(a, b, out)
    out = torch.empty((m, n), device=device) if out is None else out
    key = a.data_ptr(), b.data_ptr(), out.data_ptr(), m, k, n
    if out.numel() and key[2] in key[:2]:
        raise ValueError("matmul takes an out that is neither a nor b")
    small = 0 < tiles(m, n) <= multiprocessors and k <= MOST_K
    if not (small and a.is_contiguous() and b.is_contiguous() and out.is_contiguous()):
        return torch.matmul(a, b, out=out)
    if graph := graphs.get(key):
        graph.replay()  # on the current stream
        return out
    launch(a, b, out, m, k, n)
    if key in graphs:
        graphs[key] = captured(launch, a, b, out, m, k, n)
    elif len(graphs) < 1000:  # a graph takes some kB
        graphs[key] = None
    return out


def wait(c):
    torch.cuda.current_stream().synchronize()  # torch.cuda.synchronize() looks up the device first


def download(c):
    return c.cpu().numpy()


def prepared(m, k, n):
    """(a, b, product): pinned host arrays to fill in, and product(), which returns a @ b as a host array.

    All in one graph: the GPU fetches both by itself, multiplies, and writes the answer into the host's memory.
    """
    size = m * k + k * n
    padded = -(-size // 4) * 4  # whole float4
    host, answer = torch.empty(padded, pin_memory=True), torch.empty((m, n), pin_memory=True)
    on_gpu = torch.empty(padded, device=device)

    def work():
        copy((-(-padded // 512), 1, 1), (128, 1, 1), (host, on_gpu, padded // 4))
        launch(on_gpu[: m * k], on_gpu[m * k :], answer, m, k, n)

    graph = captured(work)

    def product(kept=(host, on_gpu)):  # the graph knows their addresses only
        graph.replay()
        wait(answer)
        return answer.numpy().copy()  # the next product is written there

    return host.numpy()[: m * k].reshape(m, k), host.numpy()[m * k : size].reshape(k, n), product


@lru_cache(16)
def plans(m, k, n):
    """Two to take in turn: the CPU is slow to write where the GPU has just read."""
    return cycle([prepared(m, k, n), prepared(m, k, n)])


def round_trip(a, b):
    """Host arrays in, host array out."""
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]):
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    (m, k), n = a.shape, b.shape[1]
    if not (0 < tiles(m, n) <= multiprocessors and 0 < k <= MOST_K):
        return download(matmul(*upload(a, b)))
    host_a, host_b, product = next(plans(m, k, n))
    host_a[:], host_b[:] = a, b
    return product()


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    for c in (download(matmul(*upload(a, b))), round_trip(a, b)):
        np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, PyTorch tuned: 200×200×200, all right")
