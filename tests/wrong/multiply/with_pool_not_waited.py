"""Wrong: a pool of threads does the work, and only download() waits for it.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

pool = ThreadPoolExecutor(1)
running = []


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def late(a, b, out):
    time.sleep(0.01)  # for wait() to be over on a busy machine
    np.multiply(a, b, out)


def multiply(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    out = np.empty_like(a)
    running.append(pool.submit(late, a, b, out))
    return out


def wait(c):
    pass


def download(c):
    while running:
        running.pop().result()
    return c
