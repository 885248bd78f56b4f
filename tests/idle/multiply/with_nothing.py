"""Multiply two arrays in no time: nothing is done, so that only the harness takes time.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""


def upload(*arrays):
    return arrays


def multiply(a, b, out=None):
    return out


def wait(c):
    pass


def download(c):
    return c


def round_trip(a, b):
    return a


def prepared(a, b, out=None):
    return lambda: out
