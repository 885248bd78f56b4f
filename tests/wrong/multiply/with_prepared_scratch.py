"""Wrong: all that prepared() returns for one shape shares a scratch array, in several threads, too.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


scratch = {}


def multiply(a, b, out=None):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if out is not None and (out.shape != a.shape or out.dtype != a.dtype):
        raise ValueError(f"multiply writes into float32 of one shape, not {out.dtype} {out.shape}")
    return np.multiply(a, b, out=out)


def prepared(a, b, out=None):
    out = np.empty_like(a) if out is None else out
    multiply(a, b, out)
    room = scratch.setdefault(a.shape, np.empty_like(a))

    def replay():
        np.copyto(room, a)
        np.multiply(room, b, out=room)
        np.copyto(out, room)
        return out

    return replay


def wait(c):
    pass


def download(c):
    return c
