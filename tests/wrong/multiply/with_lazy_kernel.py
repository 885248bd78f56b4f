"""Wrong: the first call says that the kernel is ready before it is.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


class Kernel:
    ready, function = False, None


def multiply(a, b, out=None):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if out is not None and (out.shape != a.shape or out.dtype != a.dtype):
        raise ValueError(f"multiply writes into float32 of one shape, not {out.dtype} {out.shape}")
    if not Kernel.ready:
        Kernel.ready = True
        Kernel.function = np.multiply
    return Kernel.function(a, b, out=out)


def wait(c):
    pass


def download(c):
    return c
