"""Multiply two tensors of PyTorch in Numba, tuned: a kernel in Python, four elements per thread.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" torch "numpy<2.5"

Each thread starts four loads before its first store, which keeps more of them in flight than one element per thread. At
each launch, Numba asks each tensor anew what it is and where it is. prepared() wraps them once in arrays of Numba's
own, without a copy, and launches with those.
"""

import numpy as np
import torch
from numba import cuda

device = torch.device("cuda")
THREADS = 256  # per block; a multiple of the 32 of a warp


@cuda.jit
def kernel(a, b, c):
    # In strides, so that neighbours read neighbours. Loads first: for all that Numba knows, c may be a or b.
    n, i = a.size, cuda.blockIdx.x * (4 * THREADS) + cuda.threadIdx.x
    j, k, m = i + THREADS, i + 2 * THREADS, i + 3 * THREADS
    if m < n:
        x, y, z, w = a[i] * b[i], a[j] * b[j], a[k] * b[k], a[m] * b[m]
        c[i], c[j], c[k], c[m] = x, y, z, w
    else:  # the last block is rarely full
        for p in range(i, n, THREADS):
            c[p] = a[p] * b[p]


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device=device).reshape(x.shape) for x in host)


def output_for(a, b, out):
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == torch.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
            f" into {out.dtype} {tuple(out.shape)}"
        )
    if not all(x.is_contiguous() for x in (a, b, out)):
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them")
    here, places = torch.cuda.current_device(), [x.get_device() for x in (a, b, out)]
    if any(place != here for place in places):  # Numba does not look, and the kernel would fail
        raise ValueError(f"multiply takes tensors of the current GPU, {here}, not of {places}, where -1 is the CPU")
    return out


def launch(*flat):
    # Not Numba's default stream: PyTorch's next work, and what its pool of memory hands out, come after the kernel.
    stream = torch.cuda.current_stream().cuda_stream
    blocks = -(-flat[0].shape[0] // (4 * THREADS))
    # 0 is the default stream, for Numba too.
    kernel[blocks, THREADS, stream and cuda.external_stream(stream)](*flat)


def multiply(a, b, out=None):
    out = output_for(a, b, out)
    if a.numel():  # a grid of no blocks is an error
        launch(*(x.reshape(-1) for x in (a, b, out)))  # views: the kernel is for one axis
    return out


def wait(c):
    torch.cuda.synchronize()


def download(c):
    return c.cpu().numpy()


def prepared(a, b, out=None):
    """Return a function without arguments: each call multiplies what a and b then hold, and returns the same out."""
    out = output_for(a, b, out)
    if not a.numel():
        return lambda: out
    # Each of these keeps the memory of its tensor.
    flat = [cuda.as_cuda_array(x.reshape(-1)) for x in (a, b, out)]

    def replay():
        launch(*flat)
        return out

    return replay


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, Numba on PyTorch's tensors, tuned: 1,000,003 elements, all right")
