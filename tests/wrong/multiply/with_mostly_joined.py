"""Wrong: a thread does the work at once, and only download() makes sure that it is over.

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
    thread = threading.Thread(target=np.multiply, args=(a, b, out))
    thread.start()
    running.append(thread)
    return out


def wait(c):
    running[-1].join(0.05)  # mostly long enough


def download(c):
    while running:
        running.pop().join()
    return c
