"""Matrix product: c = a @ b, float32, any M, K and N."""

import numpy as np

SIZES = (200, 1_000, 4_096)
EDGE_SIZES = (
    *((1, 1, 1), (17, 200, 3), (200, 1, 200), (0, 5, 3), (5, 0, 3), (5, 3, 0), (65, 4_099, 33)),
    (200, 200, 200),
)
# Sizes between the edge sizes, two of which need the same padding, and beyond them; one is a multiple of every tile.
MORE_SIZES, LARGE_SIZES = (
    ((259, 67, 261), (20, 20, 20), (18, 18, 18)),
    ((517, 130, 515), (512, 512, 512), (1_100, 8_200, 9)),
)
# For transfers in pieces of up to 1,048,576 elements: there are 20 of the left factor, and 3 in a third of each length.
MANY_PIECES = (10_007, 2_053, 61)
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
        for shape, other in (
            ((2, 3), (4, 5)),
            ((3,), (3, 3)),
            ((3, 3), (3,)),
            ((2, 3), (2, 3)),
            ((2, 2, 2), (2, 2, 2)),
        )
    ]


def reference(a, b):
    """In float64, so that its own error does not count."""
    return a.astype(np.float64) @ b.astype(np.float64)


def tolerance(expected, a, b, factors=0):
    """The largest error that K products and K sums can leave, in any order, if each is rounded to float32, to within
    unit = 2**-24 of its value. ‖a‖ and ‖b‖ are the lengths of the element's row and column.

    - A few terms: (K + 2) unit ‖a‖‖b‖. No order of the sum is off by more than (K + 1) unit |a|·|b| (Higham, Accuracy
      and Stability of Numerical Algorithms, §3.1), which is at most ‖a‖‖b‖ (Cauchy and Schwarz).
    - Many terms: 16 unit ‖a‖‖b‖. Roundings are as often up as down. Terms of mean 0 have partial sums near √k, each
      rounding is off by 0.43 unit of one (its standard deviation), and so a sum one by one is off by 0.43 unit
      (1 + … + K)^½ = 0.3 unit ‖a‖‖b‖, whatever K is (Higham and Mary, Sharper Probabilistic Backward Error Analysis,
      SIAM J. Sci. Comput. 42(5), 2020); blocks and pairs leave less. The partial sums are a random walk, large ones as
      rare as exp(-π² x / 8) for a mean square of x, so that an error of t unit ‖a‖‖b‖ is as rare as exp(-3.7 t): 16
      are exceeded once in 10**25 elements.
    - Where the terms are not of mean 0, the sum grows steadily, to the result: K unit |result| more.
    - Numbers below 2**-126 have fewer digits: 2**-149 more for each term.

    TF32 and float16 round both factors to 2**-11, which leaves an error of 5,000 unit √K (its standard deviation), and
    bfloat16 eight times that: more than 16 unit K in some of a few hundred elements, for every K below 100,000.
    exact_inputs() finds such a rounding at any K.

    ``factors``: that both factors may be rounded to within this part of their values, as the recipe declares: eight
    times the square root of the sum of the squares of the terms, of which one standard deviation is 0.6. Tensor cores
    may also cut what they are given to TF32, so that each factor loses between nothing and twice as much: that is a
    rounding, and this part of each factor less: 2 ``factors`` |result| more.
    """
    k = a.shape[1]
    if k == 0:
        return 0
    sums = 2.0**-24 * (min(k + 2, 16) * error_scale(expected, a, b) + k * np.abs(expected)) + k * 2.0**-149
    if not factors:
        return sums
    terms = np.sqrt(np.square(a, dtype=np.float64) @ np.square(b, dtype=np.float64))
    return sums + factors * (8 * terms + 2 * np.abs(expected))


def error_scale(expected, a, b):
    """The largest value that each element could have: the length of its row times the length of its column."""
    return np.outer(*(np.sqrt(np.square(x, dtype=np.float64).sum(axis)) for x, axis in ((a, 1), (b, 0))))


def exact_inputs(size, seed=0, bits=24):
    """Inputs with only one right answer, if products are those of float32, in any order of the sum: (what, inputs).

    Each sum has one term that is not 0, a number of 24 bits times a power of two. TF32, float16 and bfloat16 drop bits
    of it, and so do sums of several parts with fewer bits together.

    ``bits``: how many a factor keeps. If these are fewer, the other factor has as many instead of being a power of two:
    their product fits into the 24 bits of a float32, and a result that is rounded once more, to 16 bits in memory, has
    lost some of it.
    """
    m, k, n = shape(size)
    rng = np.random.default_rng(seed)
    if k == 0:
        return

    def numbers(shape):
        """From 1 to 2, and odd in the last of their bits."""
        return ((rng.integers(2 ** (bits - 2), 2 ** (bits - 1), shape) * 2 + 1) * 2.0 ** (1 - bits)).astype(np.float32)

    def selection(rows, columns):
        """One number in each column."""
        chosen = np.zeros((rows, columns), np.float32)
        chosen[rng.integers(0, rows, columns), np.arange(columns)] = 2.0 ** rng.integers(-3, 4, columns)
        return chosen if bits == 24 else chosen * numbers(columns)

    yield f"{bits} bits in a: ", (numbers((m, k)), selection(k, n))
    yield f"{bits} bits in b: ", (np.ascontiguousarray(selection(k, m).T), numbers((k, n)))


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


def special_inputs(size, seed=0):
    """(description, arrays) with one special value at a time, in either factor, at its ends and within. What is asked
    for comes out of every order of summation: no sum of infinities of both signs, and overflow only where all products
    have the same sign."""
    a, b = inputs(size, seed)
    if a.size and b.size:
        for number, value in enumerate((np.nan, np.inf, -np.inf)):
            place = (0, a.shape[1] // 2, -1)[(number + seed) % 3]
            for factor in (0, 1):
                both = a.copy(), b.copy()
                both[factor][(place, -1) if factor else (-1, place)] = value
                yield f"{value} in the input: ", both
        yield "overflow: ", (np.full_like(a, 1e30), np.full_like(b, 1e30))
        yield "large and small values: ", (a * np.float32(1e18), b * np.float32(1e-18))
        yield "zeros: ", (np.zeros_like(a), -b)
        for factor in (0, 1):  # 0 × NaN is NaN
            both = a.copy(), b.copy()
            both[factor][(slice(None), 0) if factor else 0] = 0
            both[1 - factor][(0, 0)] = np.nan
            yield "zeros beside NaN: ", both
        rng = np.random.default_rng(seed)
        rows, columns = (2.0 ** rng.integers(-50, 40, shape) for shape in ((len(a), 1), b.shape[1]))
        yield "rows and columns of different magnitudes: ", (a * np.float32(rows), b * np.float32(columns))
