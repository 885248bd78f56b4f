"""Wrong: a mean is kept by the handle of the array, which another process holds.

Framework: multiprocessing
Runs on: CPU
Install: pip install numpy
Engine: multiprocessing, a pool
"""

import itertools
import multiprocessing
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

numbers = itertools.count()
held = {}  # in the other process: the arrays
known = {}  # in this one: the means
pool = None


@contextmanager
def engine():
    global pool
    with multiprocessing.get_context("fork").Pool(1) as pool:
        yield


@dataclass
class Handle:
    shape: tuple
    dtype: np.dtype
    number: str


def hold(number, x):
    held[number] = x


def upload(x):
    handle = Handle(np.shape(x), np.dtype(np.float64), f"array {next(numbers)}")
    pool.apply(hold, (handle.number, np.array(x, np.float64, order="C")))
    return (handle,)


def compute(number):
    x = held[number]
    return (x[::2, ::2] + 1).mean() if x.size else np.nan


def subset_mean(x):
    if len(x.shape) != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if x.number not in known:
        known[x.number] = pool.apply(compute, (x.number,))
    return known[x.number]


def wait(mean):
    pass


def download(mean):
    return float(mean)
