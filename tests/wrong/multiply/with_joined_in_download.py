"""Wrong: a thread does the work, and only download() waits for it.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import threading

import numpy as np

running = []


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    out = np.empty_like(a)
    thread = threading.Timer(0.01, np.multiply, (a, b, out))  # late enough for wait() to be over on a busy machine
    thread.start()
    running.append(thread)
    return out


def wait(c):
    pass


def download(c):
    while running:
        running.pop().join()
    return c
