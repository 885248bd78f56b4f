"""Norm: sqrt(sum(x²)) of all elements of an array, float32.

The result is a float32, as the frameworks' own calls return it. NaN gives NaN, and infinity gives infinity where there
is no NaN; an empty array gives 0. Where the sum of the squares does not fit in float32, recipes whose sum is a float32
return infinity, and others the norm: either is right. Squares below 2**-126 may count as 0.
"""

import numpy as np

SIZES = (40_000, 1_000_000, 2**28)
EDGE_SIZES = (0, 1, 2, 255, 256, 257, 100_003)
# Sizes between the edge sizes, and beyond them; one is a multiple of every block.
MORE_SIZES, LARGE_SIZES = (1_003, 5_003, 20_011, 70_001), (2**20, 1_048_583)
# For transfers in pieces, as in multiply.
MANY_PIECES = 40_000_003
TIME_LIMIT = 180  # seconds per result


def label(size):
    return f"{size:,}"


def inputs(size, seed=0):
    """One float32 array of ``size`` elements, normal(0, 1), that repeats after 1,000,003 values, as in multiply."""
    x = np.random.default_rng(seed).standard_normal(min(size, 1_000_003), np.float32)
    return (np.resize(x, size),)


def wrong_inputs():
    """None: an array of any shape has a norm."""
    return []


def reference(x):
    flat = x.reshape(-1)
    blocks = (flat[i : i + 2**20].astype(np.float64) for i in range(0, x.size, 2**20))
    return np.sqrt(sum(float(np.add.reduce(block * block)) for block in blocks))


def tolerance(expected, x):
    """16 roundings to float32, 2**-20 of the norm.

    Roundings of these inputs are as often up as down. The square root halves the relative error of the sum, and
    rounding squares leaves at most half a rounding of it. A sum of k squares one by one in float32 is off by 0.25 √k
    roundings (its standard deviation; see subset_mean), and threads with up to 4,000 squares each, as 2**30 elements
    leave to 2**18 threads, are so by up to 16, half of which is left. So many threads cancel each other's errors, at
    larger sizes too, and adding up blocks or pairs leaves less than one.
    One sum for all of them is off by hundreds at 100,003 elements, and stops growing at 2**24: nothing that is so added
    is a norm. Squares below 2**-126, of which there are at most n, may be lost: √n × 2**-63 of the norm.
    """
    if np.isinf(expected):
        return 0
    if expected * (1 + 2.0**-20) >= 2.0**64:  # the sum of the squares may not fit: infinity is right, and NaN is not
        return np.inf
    return 2.0**-20 * expected + x.size**0.5 * 2.0**-63


def error_scale(expected, x):
    """The norm itself."""
    return np.abs(expected)


def bytes_moved(size):
    """At least: one element of 4 bytes read."""
    return 4 * size


def operations(size):
    """A multiplication and an addition for each element."""
    return 2 * size


def footprint(size):
    """Bytes of all arrays: the given one. (NumPy's temporary arrays come on top in some recipes.)"""
    return 4 * size


def special_inputs(size, seed=0):
    """(description, array) with one special value at a time, which decides the norm from wherever it stands; and arrays
    full of zeros, of the smallest number, and of some whose squares do not fit."""
    if seed > 1 or not size:
        return  # other ordinary values around them show nothing new
    (x,) = inputs(size, seed)
    for place in sorted({0, size // 2, size - 1}):
        for value in (np.nan, -np.inf, 1e15):
            special = x.copy()
            special[place] = value
            yield f"{value} at [{place}]: ", (special,)
    if size > 1:
        special = x.copy()
        special[0], special[-1] = np.nan, np.inf
        yield "infinity and NaN: ", (special,)
    for value in (-0.0, 1e-45, 3e-20, 2e-19, -1e30):
        yield f"{value} everywhere: ", (np.full_like(x, value),)
