"""Add one to a tensor of PyTorch in place in Numba, tuned: a kernel in Python, four elements per thread.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" torch "numpy<2.5"

Each thread starts four loads before its first store, which keeps more of them in flight than one element per thread. At
each launch, Numba asks the tensor anew what it is and where it is. prepared() wraps it once in an array of Numba's own,
without a copy, and launches with that.
"""

import numpy as np
import torch
from numba import cuda

device = torch.device("cuda")
THREADS = 256  # per block; a multiple of the 32 of a warp


@cuda.jit
def kernel(a):
    # In strides, so that neighbours read neighbours. Loads first, so that four are in flight together.
    n, one = a.size, np.float32(1)  # Numba would add a plain 1 in float64
    i = cuda.blockIdx.x * (4 * THREADS) + cuda.threadIdx.x
    j, k, m = i + THREADS, i + 2 * THREADS, i + 3 * THREADS
    if m < n:
        x, y, z, w = a[i] + one, a[j] + one, a[k] + one, a[m] + one
        a[i], a[j], a[k], a[m] = x, y, z, w
    else:  # the last block is rarely full
        for p in range(i, n, THREADS):
            a[p] += one


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device=device).reshape(x.shape) for x in host)


def validate(a):
    if a.dtype != torch.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {tuple(a.shape)}")
    if not a.is_contiguous():
        raise ValueError("increment takes a C-contiguous array, as upload() makes it")
    here, place = torch.cuda.current_device(), a.get_device()
    if place != here:  # Numba does not look, and the kernel would fail
        raise ValueError(f"increment takes a tensor of the current GPU, {here}, not of {place}, where -1 is the CPU")


def launch(flat):
    # Not Numba's default stream: PyTorch's next work, and what its pool of memory hands out, come after the kernel.
    stream = torch.cuda.current_stream().cuda_stream
    blocks = -(-flat.shape[0] // (4 * THREADS))
    # 0 is the default stream, for Numba too.
    kernel[blocks, THREADS, stream and cuda.external_stream(stream)](flat)


def increment(a):
    validate(a)
    if a.numel():  # a grid of no blocks is an error
        launch(a.reshape(-1))  # a view: the kernel is for one axis
    return a


def wait(a):
    torch.cuda.synchronize()


def download(a):
    return a.cpu().numpy()


def prepared(a):
    """Return a function without arguments: each call adds one to what a then holds, and returns a."""
    validate(a)
    if not a.numel():
        return lambda: a
    flat = cuda.as_cuda_array(a.reshape(-1))

    def replay():
        launch(flat)
        return a

    return replay


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print("increment, Numba on PyTorch's tensors, tuned: 1,000,003 elements, all right")
