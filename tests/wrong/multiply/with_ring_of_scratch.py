"""Wrong: four calls at once may use a scratch array each; a fifth has the first one's.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Environment: every
"""

from itertools import count

import numpy as np

number, scratch = count(), {}


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b, out=None):
    out = np.empty_like(a) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    products = scratch.setdefault((next(number) % 4, a.shape), np.empty_like(a))
    np.multiply(a, b, out=products)
    np.copyto(out, products)
    return out


def wait(c):
    pass  # NumPy returns when it is done


def download(c):
    return c
