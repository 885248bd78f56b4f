"""Mean of a subset: mean(x[::2, ::2] + 1), x two-dimensional and given, float64."""

import numpy as np

SIZES = (4_000, 10_000, 40_000)
EDGE_SIZES = ((0, 0), (1, 1), (1, 2), (15, 17), (16, 16), (257, 1), (1, 257), (333, 1_000), (100_003, 1), (1, 100_003))
TIME_LIMIT = 300  # seconds per result


def shape(size):
    """(rows, columns): of a number, the same twice."""
    return (size,) * 2 if isinstance(size, int) else tuple(size)


def label(size):
    return f"{size:,}²" if isinstance(size, int) else "×".join(f"{n:,}" for n in size)


def inputs(size, seed=0):
    """One float64 array of rows × columns, normal(10, 1), that repeats after 1,000,003 values, as in multiply."""
    rows, columns = shape(size)
    x = np.random.default_rng(seed).normal(10, 1, min(rows * columns, 1_000_003))
    return (np.resize(x, (rows, columns)),)


def wrong_inputs():
    """What a recipe must refuse with a ValueError that names the shape."""
    return [(np.zeros(5),), (np.zeros((2, 2, 2)),)]


def reference(x):
    if 0 in x.shape:
        return np.nan
    # Row by row: the sum of a short row and the sum of the rows' sums are each off by a few 2**-53 only.
    return sum(float(np.add.reduce(row[::2] + 1)) for row in x[::2]) / x[::2, ::2].size


def tolerance(expected, x):
    """Rounding errors of a sum of n numbers grow as √n where they are as often up as down; 64 for short sums."""
    n = x[::2, ::2].size
    return (64 + n**0.5) * 2.0**-53 * abs(expected)


def bytes_moved(size):
    """At least: every other row, whole. Memory is read in sectors of 32 bytes, four float64, so that taking every
    other element of a row leaves no sector out."""
    rows, columns = shape(size)
    return 8 * ((rows + 1) // 2) * columns


def operations(size):
    """Two additions for each element of the subset."""
    rows, columns = shape(size)
    return 2 * ((rows + 1) // 2) * ((columns + 1) // 2)


def footprint(size):
    """Bytes of all arrays: the given one, and the subset plus one, which most frameworks store."""
    rows, columns = shape(size)
    return 8 * rows * columns + 8 * ((rows + 1) // 2) * ((columns + 1) // 2)
