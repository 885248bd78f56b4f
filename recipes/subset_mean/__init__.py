"""Mean of a subset: mean(x[::2, ::2] + 1), x two-dimensional and given, float64."""

import numpy as np

SIZES = (4_000, 10_000, 40_000)
EDGE_SIZES = (
    *((0, 0), (1, 1), (1, 2), (15, 17), (16, 16), (0, 5), (5, 0)),
    *((257, 1), (1, 257), (333, 1_000), (100_003, 1)),
    (2_053, 2_051),  # more than 2**20 numbers to add, to find recipes that add large arrays in float32
    (1, 100_003),
)
# Sizes between the edge sizes, and beyond them; one is a multiple of every block.
MORE_SIZES, LARGE_SIZES = ((3, 5_001), (70, 71)), ((4_099, 2_055), (4_096, 1_040))
# For transfers in pieces. The subset has 4,501 rows of 6,001. The largest pieces are of 16 MiB, 349 of these rows, in
# twelve lanes: the last of 13, which is not whole, goes through a buffer that was filled before. Of 8 MiB there are 26.
MANY_PIECES = (9_001, 12_001)
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
    # NumPy adds a row pairwise, and so the rows' sums: each is off by a few 2**-53 only.
    rows = np.concatenate([np.add.reduce(block + 1, axis=1) for block in _subset(x)])
    return float(np.add.reduce(rows)) / x[::2, ::2].size


def tolerance(expected, x):
    """What n roundings to float64 can leave in a sum, in any order, relative to the mean of the absolute values.

    Roundings are as often up as down. A sum one by one of numbers near one value has partial sums of k times that, each
    rounding is off by 0.43 × 2**-53 of one (its standard deviation), and so the mean is off by 0.43 (1² + … + n²)^½ / n
    = 0.25 √n × 2**-53: 4 √n are 16 standard deviations, and blocks and pairs leave less. 64 more for short sums, where
    no error is random: up to 64 numbers, any order. A sum in float32 is off by some 2**-25 and more: 3,000 times as
    much at 40,000².
    """
    subset = x[::2, ::2]
    if not subset.size:
        return 0
    magnitude = sum(float(np.abs(block + 1).sum()) for block in _subset(x)) / subset.size
    return (64 + 4 * subset.size**0.5) * 2.0**-53 * magnitude


def _subset(x):
    """x[::2, ::2] in blocks of whole rows, about a million numbers each: a copy of all of it would need gigabytes."""
    subset = x[::2, ::2]
    rows = max(1, 2**20 // max(1, subset.shape[1]))
    return (np.ascontiguousarray(subset[i : i + rows]) for i in range(0, len(subset), rows))


def error_scale(expected, x):
    """The mean itself."""
    return np.abs(expected)


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


def special_inputs(size, seed=0):
    """(description, array) with one special value at a time, in the subset, where it decides the mean, and outside of
    it, where it must not."""
    if seed > 1:
        return  # other ordinary values around them show nothing new
    (x,) = inputs(size, seed)
    for row, column in {(0, 0), (-1, -1), (x.shape[0] // 2, x.shape[1] // 2), (0, -1), (-1, 0), (1, 0), (0, 1)}:
        for value in (np.nan, np.inf, -np.inf, 1e300, 5e-324):
            if x.shape[0] > row and x.shape[1] > column and x.size:
                special = x.copy()
                special[row, column] = value
                yield f"{value} at [{row}, {column}]: ", (special,)
    if x.shape[0] > 2 and x.size:
        special = x.copy()
        special[0, 0], special[2, 0] = np.inf, -np.inf
        yield "both infinities: ", (special,)
