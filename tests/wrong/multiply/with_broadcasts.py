"""Wrong: arrays of different shapes are multiplied all the same.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    return a * b


def wait(c):
    pass


def download(c):
    return c
