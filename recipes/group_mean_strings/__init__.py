"""Group mean by strings: df.groupby("key")["value"].mean(), with keys that are strings, and float64 values.

As group_mean in all else. upload() is given whole numbers, and makes strings of 20 characters of them, with zeros in
front: zfill(20) holds every int64. Only the time of a first result has that of upload() in it. The means are in the
order of the strings: a minus comes before all digits.

There are fewer rows than in group_mean because of the CPU's time, not of memory. With 50,000,000 rows of 10,000,000
keys, on two cores, one call took NumPy 59 s and 71 s in two processes, pandas 26 s and 36 s, and Polars 15 s and 21 s,
and a result takes several calls. No process took more than 5.4 GiB.
"""

import numpy as np

from gpu_cookbook.recipes import group_mean

SIZES = ((1_000_000, 1_000), (10_000_000, 1_000), (10_000_000, 1_000_000))
EDGE_SIZES = ((0, 1), (1, 1), (2, 2), (257, 16), (1_003, 100_000))
# One between the edge sizes, and one beyond them.
MORE_SIZES, LARGE_SIZES = ((5_003, 50),), ((100_003, 1_000),)
GIVEN = "with the table where the library keeps it"  # what upload() makes
TIME_LIMIT = 600  # seconds per result
AXES, label, wrong_inputs, special_inputs, error_scale, operations = (
    group_mean.AXES,
    group_mean.label,
    group_mean.wrong_inputs,
    group_mean.special_inputs,
    group_mean.error_scale,
    group_mean.operations,
)


def inputs(size, seed=0):
    """(keys, values) as in group_mean, but for the keys, none of which is negative."""
    keys, values = group_mean.inputs(size, seed)
    return keys + size[1] // 2, values


def reference(keys, values):
    return group_mean.reference(in_order(keys), values)


def in_order(keys):
    """Other whole numbers, in the order of the strings: those with a minus first, in the order of their digits."""
    return np.where(keys < 0, ~keys + np.iinfo(np.int64).min, keys)


def tolerance(expected, keys, values):
    """group_mean's."""
    return group_mean.tolerance(expected, in_order(keys), values)


def bytes_moved(size):
    """At least: a key of 20 bytes and a value of 8 read for each row, and a mean written for each key."""
    rows, keys = size
    return 28 * rows + 8 * min(rows, keys)


def footprint(size):
    """Bytes of all arrays: the two given ones, the table and the result."""
    rows, keys = size
    return 44 * rows + 8 * min(rows, keys)
