"""Mean of a subset of random samples: mean(x[::2, ::2] + 1), x normal(10, 1) made chunk by chunk, float64."""

import numpy as np

SIZES = (4_000, 20_000, 100_000)
AWKWARD = ((0, 0), (1, 1), (1, 2), (15, 17), (16, 16), (257, 1), (1, 257), (333, 1_001))
TIME_LIMIT = 900  # seconds a cell


def shape(size):
    """(rows, columns): of a number, the same twice."""
    return (size,) * 2 if isinstance(size, int) else tuple(size)


def chunk(size):
    """10,000 where the array is 40,000 or more; else a quarter of a side, so that there are chunks to share out."""
    return min(10_000, max(1, max(shape(size)) // 4))


def label(size):
    return f"{size:,}²" if isinstance(size, int) else "×".join(f"{n:,}" for n in size)


def inputs(size, seed=0):
    """(rows, columns, chunk, seed): what a recipe makes its samples from. There are no arrays."""
    return *shape(size), chunk(size), seed


def wrong_inputs():
    """None: it takes numbers."""
    return []


def reference(rows, columns, chunk, seed):
    """The mean of normal(10, 1), plus one."""
    return 11.0 if rows * columns else np.nan


def tolerance(expected, rows, columns, chunk, seed):
    """Six standard errors: a right recipe misses that with one seed in 500 million."""
    return 6 / (max(1, (rows + 1) // 2 * ((columns + 1) // 2))) ** 0.5


def bytes_moved(size):
    """At least none: a sample can be made and added in registers."""
    return 0


def operations(size):
    """Two additions for each element of the subset; how many make a sample is the generator's own."""
    rows, columns = shape(size)
    return 2 * ((rows + 1) // 2) * ((columns + 1) // 2)


def footprint(size):
    """Bytes of three chunks: samples, subset and what the generator needs."""
    return 3 * 8 * chunk(size) ** 2
