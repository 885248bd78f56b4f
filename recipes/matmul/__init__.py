"""Matrix product: c = a @ b, float32, any M, K and N."""

import numpy as np

SIZES = (200, 1_000, 4_096)
EDGE_SIZES = ((1, 1, 1), (17, 200, 3), (200, 1, 200), (0, 5, 3), (5, 0, 3), (200, 200, 200))
TIME_LIMIT = 180  # seconds per result


def shape(size):
    """(M, K, N): of a number, the same three times."""
    return (size,) * 3 if isinstance(size, int) else tuple(size)


def label(size):
    return "×".join(f"{n:,}" for n in shape(size))


def inputs(size, seed=0):
    """An M×K and a K×N float32 array, normal(0, 1)."""
    m, k, n = shape(size)
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)


def wrong_inputs():
    """What a recipe must refuse with a ValueError that names both shapes."""
    return [
        (np.zeros(shape, np.float32), np.zeros(other, np.float32))
        for shape, other in (((2, 3), (4, 5)), ((3,), (3, 3)), ((2, 3), (2, 3)))
    ]


def reference(a, b):
    """In float64, so that its own error does not count."""
    return a.astype(np.float64) @ b.astype(np.float64)


def tolerance(expected, a, b):
    """The largest error that K products and K sums rounded to float32 can leave, in any order.

    Each rounding is off by at most 2**-24 of its value (Higham, Accuracy and Stability of Numerical Algorithms, §3.1),
    and one more rounds the reference. TF32 rounds to 2**-11, and is found at 200×200×200.
    """
    k = a.shape[1]
    return (k + 2) * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))


def bytes_moved(size):
    """At least: both factors read once, the product written once, 4 bytes per element."""
    return footprint(size)


def operations(size):
    """A multiplication and an addition for each of M × K × N."""
    m, k, n = shape(size)
    return 2 * m * k * n


def footprint(size):
    """Bytes of all arrays, inputs and result together."""
    m, k, n = shape(size)
    return 4 * (m * k + k * n + m * n)
