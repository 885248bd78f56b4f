"""NumPy's arrays for other libraries, and theirs in NumPy.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Environment: every
Follows: https://numpy.org/doc/stable/user/basics.interoperability.html
"""

import numpy as np


def from_host(values):
    return np.array(values)


def to_host(x):
    return np.array(x)


def hand_out(x):
    return x


def from_dlpack(x):
    return np.from_dlpack(x)


def add_one(x, out=None):
    return np.add(x, np.float32(1), out=out)


def wait(x):
    pass


def address(x):
    return x.ctypes.data


if __name__ == "__main__":
    x = from_host(np.arange(1_000, dtype=np.float32))
    y = from_dlpack(hand_out(x))
    add_one(y, out=y)
    assert address(x) == address(y) and (to_host(x) == np.arange(1, 1_001)).all()
    print("NumPy: 1,000 elements handed out and taken, all right")
