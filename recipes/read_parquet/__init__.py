"""Read Parquet: pd.read_parquet(file), a table of int64 keys and float64 values, from a file in the host's memory.

The work begins with the bytes of the file, and ends with both columns decoded where the library computes: on a GPU, in
its memory. No disk is read. upload() writes the file with PyArrow as it does by default, the same for every recipe: in
row groups of 2**20 rows, compressed by Snappy, and with a dictionary of the 1,000 keys. Values as random as these
compress to nothing less. Only the time of a first result has that of upload() in it.

The result is compared as a float64 array of two rows, the keys and the values: keys are below 2**53.
"""

import numpy as np

SIZES = (1_000_000, 10_000_000, 50_000_000)  # rows
EDGE_SIZES = (0, 1, 2, 1_003, 100_003)
# One between the edge sizes, and one with three row groups, the last of three rows.
MORE_SIZES, LARGE_SIZES = (20_011,), (2**21 + 3,)
AXES = 1  # of each array; any other number is refused
GIVEN = "with the file in the host's memory"  # what upload() makes
TIME_LIMIT = 300  # seconds per result


def label(size):
    return f"{size:,} row{'s' * (size != 1)}"


def inputs(size, seed=0):
    """(keys, values), one of each for each row: 1,000 random whole numbers, half of them negative, and values that are
    normal(10, 1) and repeat after 1,000,003, as in group_mean."""
    rng = np.random.default_rng(seed)
    values = rng.normal(10, 1, min(size, 1_000_003))
    return rng.integers(-500, 500, size), np.resize(values, size)


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
    return np.array([keys, values], np.float64)


def tolerance(expected, keys, values):
    """None: a file keeps every bit."""
    return 0


def error_scale(expected, keys, values):
    """The numbers themselves."""
    return np.abs(expected)


def bytes_moved(size):
    """At least: a key and a value of 8 bytes written for each row, and 8 bytes read, since a dictionary makes less of
    the keys only."""
    return 24 * size


def operations(size):
    """None that all files need."""
    return 0


def footprint(size):
    """Bytes of all arrays: the two given ones, a file of no more, and the two that are read."""
    return 48 * size


def special_inputs(size, seed=0):
    """(description, arrays): keys that differ in each row and such as are all equal, and every kind of float64."""
    if seed > 1 or not size:
        return  # other ordinary values around them show nothing new
    keys, values = inputs(size, seed)
    yield "keys that differ: ", (np.arange(size) * 2**33, values)
    yield "one key: ", (np.full_like(keys, -1), values)
    special = np.resize([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -1e308, 1 / 3], size)
    yield "special values: ", (keys, special)
