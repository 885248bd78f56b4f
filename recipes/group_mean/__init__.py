"""Group mean: the mean of the values of each key, df.groupby("key")["value"].mean(), int64 keys and float64 values.

The result is a float64 array with the mean of each key that occurs, in the order of the keys. Sorting is part of the
work: pandas does it by default, Polars and cuDF only if they are asked to. All values and sums are finite. What NaN
means is not compared: for pandas it is a missing value, and for others one that makes the mean of its key NaN.
"""

import numpy as np

SIZES = ((1_000_000, 1_000), (50_000_000, 1_000), (50_000_000, 10_000_000))
EDGE_SIZES = (
    *((0, 1), (1, 1), (2, 1), (2, 2), (255, 1), (256, 256), (257, 16), (1_003, 100_000)),
    (100_003, 1_000),
)
# Sizes between the edge sizes, and beyond them; one is a multiple of every block, and one has more keys than 16 bits.
MORE_SIZES = ((5_003, 5_003), (20_011, 7), (70_001, 100))
LARGE_SIZES = ((2**20, 2**16), (1_048_583, 1), (1_000_003, 500_000))
AXES = 1  # of each array; any other number is refused
TIME_LIMIT = 600  # seconds per result


def label(size):
    rows, keys = size
    return f"{rows:,} row{'s' * (rows != 1)} of {keys:,} key{'s' * (keys != 1)}"


def inputs(size, seed=0):
    """(keys, values), one of each for each row.

    The keys are random whole numbers, as many as the size says if there are enough rows, half of them negative. The
    values are normal(10, 1), and repeat after 1,000,003, as in multiply.
    """
    rows, keys = size
    rng = np.random.default_rng(seed)
    values = rng.normal(10, 1, min(rows, 1_000_003))
    return rng.integers(-(keys // 2), keys - keys // 2, rows), np.resize(values, rows)


def wrong_inputs():
    """What a recipe must refuse with a ValueError that names the shapes."""
    keys, values = np.zeros(6, np.int64), np.zeros(6)
    table = (2, 3)
    return [
        (keys, values[:5]),
        (keys[:1], values),
        (keys.reshape(table), values.reshape(table)),
        (keys[0].reshape(()), values[0].reshape(())),
    ]


def reference(keys, values):
    sums, counts = _sums(keys, values)
    return sums / counts


def _sums(keys, values):
    """(the sum of the values of each key that occurs, how many they are), in the order of the keys."""
    places = _places(keys)
    counts = np.bincount(places)
    occurs = counts > 0
    return np.bincount(places, values)[occurs], counts[occurs]


def _places(keys):
    """Small numbers that are equal and in order where the keys are."""
    least, most = (int(keys.min()), int(keys.max())) if keys.size else (0, 0)
    if most - least < 4 * keys.size:  # to sort 50,000,000 keys takes seconds
        return keys - least
    return np.unique(keys, return_inverse=True)[1]


def tolerance(expected, keys, values):
    """n roundings of the mean of the absolute values, for a key with n of them: 2**-53 each for the recipe, and for the
    reference, which may be off the other way.

    That is what n additions in float64 and a division can leave, in whatever order. A sum in float32 is off by some
    2**-25 and more, and a mean of a neighbour's values by far more.
    """
    magnitudes, counts = _sums(keys, np.abs(values))
    return 2.0**-52 * magnitudes + 2.0**-1074  # the division of a denormal is rounded to one


def error_scale(expected, keys, values):
    """The mean itself."""
    return np.abs(expected)


def bytes_moved(size):
    """At least: a key and a value of 8 bytes read for each row, and a mean written for each key."""
    rows, keys = size
    return 16 * rows + 8 * min(rows, keys)


def operations(size):
    """An addition for each row, and a division for each key."""
    rows, keys = size
    return rows + min(rows, keys)


def footprint(size):
    """Bytes of all arrays: the two given ones and the result. (Sorted keys and tables of them come on top.)"""
    return bytes_moved(size)


def special_inputs(size, seed=0):
    """(description, arrays): keys far from each other, up to both ends of int64, sorted ones, one that differs from all
    others, and values of many magnitudes."""
    rows, count = size
    if seed > 1 or not rows:
        return  # other ordinary values around them show nothing new
    keys, values = inputs(size, seed)
    yield "keys beyond 2**32: ", (keys * (2**33 + 1), values)
    yield "keys that differ in their upper bits only: ", (keys * 2**40, values)
    yield "neighbouring keys beyond 2**53, where float64 has gaps: ", (keys + 2**60, values)
    ends = keys.copy()
    ends[0], ends[-1] = 2**63 - 1, -(2**63)
    yield "both ends of int64: ", (ends, values)
    yield "one key at a time: ", (np.sort(keys), values)
    alone = np.zeros_like(keys)
    alone[-1] = -1
    yield "the first key in the last row: ", (alone, values)
    for value in (1e300, 5e-324, -0.0):
        special = values.copy()
        special[rows // 2] = value
        yield f"{value} at [{rows // 2}]: ", (keys, special)
    yield "values from 1e-8 to 1e8: ", (keys, values * 10.0 ** (np.arange(rows) % 17 - 8))
