"""Elementwise multiply: c = a * b, float32."""

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
    """Two float32 arrays of ``size`` elements, normal(0, 1).

    They repeat after 1,000,003 values: drawing 2**28 of them would take longer than everything that is measured, and
    a prime is no multiple of any block or chunk, so that a wrong offset still gives a wrong answer.
    """
    a, b = np.random.default_rng(seed).standard_normal((2, min(size, 1_000_003)), np.float32)
    return np.resize(a, size), np.resize(b, size)


def wrong_inputs():
    """What a recipe must refuse with a ValueError that names both shapes."""
    return [
        (np.zeros(shape, np.float32), np.zeros(other, np.float32))
        for shape, other in (((3,), (4,)), ((3,), (1,)), ((2, 3), (3, 2)), ((3,), (3, 1)), ((3,), (1, 3)))
    ]


def reference(a, b):
    return np.multiply(a, b)


def tolerance(expected, a, b):
    """None: IEEE 754 rounds a product in one way only."""
    return 0


def error_scale(expected, a, b):
    """The result itself."""
    return np.abs(expected)


def bytes_moved(size):
    """At least: two elements of 4 bytes read, one written."""
    return 12 * size


def operations(size):
    return size


def footprint(size):
    """Bytes of all arrays, inputs and result together."""
    return 12 * size


def special_inputs(size, seed=0):
    """(description, arrays) with every pair of special values, so placed that each comes to every place of a vector, a
    block and a tail."""
    values = _special()
    if size:
        i = np.arange(size)
        for shift in range(len(values)) if size < 1_000 else (seed,):
            yield "special values: ", (values[(i + shift) % len(values)], values[(i // len(values) + i) % len(values)])


def _special():
    """13 values, a prime number of them: NaN, both infinities, both zeros, denormals, the smallest and largest normal
    numbers, and some whose products overflow or underflow."""
    info = np.finfo(np.float32)
    ends = [info.smallest_subnormal, info.tiny - info.smallest_subnormal, info.tiny, info.max, -info.max]
    return np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, *ends, 1e-30, -1e30, 3.0], np.float32)
