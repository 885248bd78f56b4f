"""Recipes with more elements than 32 bits can count, in a process of their own: ``python large.py PATH``. With
upload, work and download; and with round_trip, from ordinary arrays and from page-locked ones, if they have it."""

import sys
from pathlib import Path

import numpy as np

from gpu_cookbook import catalogue
from gpu_cookbook.run.contract import round_trip, steps, takes_out
from gpu_cookbook.run.worker import Loader

PERIOD = 1_000_003  # elements: a prime, so that no offset gives the same again
PART = 2**24  # elements that are compared at a time

recipe = catalogue.read(Path(sys.argv[1]))
workload = catalogue.workload_module(recipe.workload)
module = Loader(recipe).execute()
upload, function, wait, download = steps(module, workload)
shape = (3, 2**31 // 3 + 101) if recipe.workload == "subset_mean" else (2**31 + 257,)
inputs = 2 if recipe.workload == "multiply" else 1


def by_steps(x):
    device = upload(x)
    result = function(*(device * inputs))
    wait(result)
    return download(result)


def to_host(x):
    way = round_trip(module, workload)
    return way(*((x,) * inputs), **({"out": empty(shape)} if takes_out(way) else {}))


def filled(x):
    """The array with values whose result is known."""
    if recipe.workload == "subset_mean":
        x.fill(1)
        x[2, -1 - (x.shape[1] + 1) % 2] = 3  # the last element of the subset, behind 2**31 others
        return x
    if recipe.workload == "norm":
        x.fill(1)
        x[-1] = 2**16  # behind 2**31 others; two thirds of the sum
        return x
    values = np.arange(1, PERIOD + 1, dtype=np.float32)
    whole = x.size // PERIOD * PERIOD
    x[:whole].reshape(-1, PERIOD)[:] = values
    x[whole:] = values[: x.size - whole]
    return x


def check(x, result):
    if recipe.workload == "subset_mean":
        expected = 2 + 2 / x[::2, ::2].size
        tolerance = workload.tolerance(expected, x)
        assert abs(result - expected) <= tolerance, f"{result!r} instead of {expected!r}"
        assert tolerance < 2 / x[::2, ::2].size, "the last element would not be missed"
        return
    if recipe.workload == "norm":
        expected = np.sqrt(x.size - 1 + 2.0**32)
        assert abs(result - expected) <= workload.tolerance(expected, x), f"{result!r} instead of {expected!r}"
        return
    assert result.shape == shape
    expected = np.empty(PART, np.float32)  # one for all parts: writing to memory for the first time takes longer
    for start in range(0, x.size, PART):
        part = x[start : start + PART]
        own = expected[: part.size]
        if recipe.workload == "multiply":
            np.multiply(part, part, out=own)
        else:
            np.add(part, np.float32(1), out=own)
        assert np.array_equal(result[start : start + PART], own), f"wrong from {start:,} to {start + part.size:,}"


def ordinary(shape):
    return np.empty(shape, np.float64 if recipe.workload == "subset_mean" else np.float32)


ways = [(by_steps, ordinary)]
if hasattr(module, "round_trip"):
    ways += [(to_host, each) for each in (ordinary, getattr(module, "pinned", None)) if each]
for way, empty in ways:
    x = filled(empty(shape))
    check(x, way(x))
    del x  # before the next one is made
print(f"all right: {len(ways)}")
