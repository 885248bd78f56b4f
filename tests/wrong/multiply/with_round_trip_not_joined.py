"""Wrong: round_trip() waits for the thread that it has started, but not for long.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import threading

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return np.multiply(a, b)


def wait(c):
    pass


def download(c):
    return c


def round_trip(a, b):
    c = multiply(*upload(a, b))
    again = np.full_like(c, np.nan)
    thread = threading.Thread(target=np.copyto, args=(again, c))
    thread.start()
    thread.join(0.05)
    return again
