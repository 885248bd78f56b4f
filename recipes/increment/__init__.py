"""Increment in place: a += 1, float32."""

import numpy as np

SIZES = (40_000, 1_000_000, 2**28)
EDGE_SIZES = (0, 1, 2, 255, 256, 257, 100_003)
# Sizes between the edge sizes, and beyond them; one is a multiple of every block.
MORE_SIZES, LARGE_SIZES = (1_003, 5_003, 20_011, 70_001), (2**20, 1_048_583)
# For transfers in pieces. The largest pieces are of 16 MiB, 4,194,304 elements, in eight lanes: the last of ten, which
# is not whole, goes through buffers that were filled before. Of 8 MiB there are 20.
MANY_PIECES = 40_000_003
TIME_LIMIT = 180  # seconds per result


def label(size):
    return f"{size:,}"


def inputs(size, seed=0):
    """One float32 array of ``size`` multiples of 1/256 in [0, 1).

    float32 holds 24 bits: 8 for these fractions leave 16, so that 65,535 increments in a row stay exact, and the
    result of all timed calls together can be checked. The array repeats after 1,000,003 values, as in multiply.
    """
    a = np.random.default_rng(seed).integers(0, 256, min(size, 1_000_003)).astype(np.float32) / np.float32(256)
    return (np.resize(a, size),)


def wrong_inputs():
    """None: an array of any shape can be incremented."""
    return []


def reference(a, calls=1):
    """The array after ``calls`` increments; exact for the arrays that inputs() makes."""
    return a + np.float32(calls)


def tolerance(expected, a):
    """None: IEEE 754 rounds a sum in one way only."""
    return 0


def error_scale(expected, a):
    """The result itself."""
    return np.abs(expected)


def bytes_moved(size):
    """At least: one element of 4 bytes read, one written."""
    return 8 * size


def operations(size):
    return size


def footprint(size):
    """Bytes of all arrays: the array itself."""
    return 4 * size


def special_inputs(size, seed=0):
    """(description, array) with special values, so placed that each comes to every place of a vector, a block and a
    tail: 11 of them, a prime number."""
    info = np.finfo(np.float32)
    ends = [info.smallest_subnormal, -info.tiny, info.max, -info.max, 2**24, -1 - info.eps, info.eps / 2]
    values = np.array([np.nan, np.inf, -np.inf, -0.0, *ends], np.float32)
    if size:
        for shift in range(len(values)) if size < 1_000 else (seed,):
            yield "special values: ", (values[(np.arange(size) + shift) % len(values)],)
