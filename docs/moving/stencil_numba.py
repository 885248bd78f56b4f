"""Mean of each element and its two neighbours: a kernel in Python, in Numba.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" "numpy<2.5"
"""

import numpy as np
from numba import cuda

THREADS = 256


@cuda.jit
def kernel(x, y):
    i = cuda.grid(1)
    n = x.size
    if i >= n:
        return
    left = x[i - 1] if i > 0 else x[i]
    right = x[i + 1] if i < n - 1 else x[i]
    y[i] = (left + x[i] + right) / np.float32(3)


def smooth(x):
    y = cuda.device_array_like(x)
    blocks = (x.size + THREADS - 1) // THREADS
    kernel[blocks, THREADS](x, y)
    return y


if __name__ == "__main__":
    x = np.random.default_rng(0).random(2_003, np.float32)
    y = smooth(cuda.to_device(x))
    cuda.synchronize()  # needed only for timing: copy_to_host() waits by itself
    padded = np.pad(x, 1, mode="edge").astype(np.float64)
    np.testing.assert_allclose(y.copy_to_host(), (padded[:-2] + padded[1:-1] + padded[2:]) / 3, rtol=1e-6)
    print("Numba: 2,003 elements, all right")
