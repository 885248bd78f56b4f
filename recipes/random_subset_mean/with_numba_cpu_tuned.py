"""Mean of a subset of random samples in Numba on the CPU: its samples made in vector registers, on every core.

Framework: Numba
Runs on: CPU
Install: pip install numba numpy
Math: float64, but the logarithm, sine and cosine are polynomials of our own, right to about one rounding

Sample (i, j) is a function of the seed, i and j alone (Philox), so only the samples of the subset are made, and none is
stored. The C library's log, sin and cos keep the compiler from doing eight samples in one instruction; polynomials,
which make this file long, do not. A process that is forked after the import cannot call it (GNU OpenMP).
"""

import math
from operator import index
from threading import Lock

import numpy as np
from numba import njit, prange

# A call uses all cores, so those of several threads take turns. Where libgomp is missing, they must: Numba then has
# threads of its own, and ends the process if two calls meet. Other parallel functions of Numba need this lock there.
TURN = Lock()
STRIPS = 1024  # of rows, one sum each: the same additions, and so the same answer, on any number of cores
# Numba makes a float of an np.uint64 and an int: constants of Philox4x32-10 (Salmon et al., 2011) as np.uint64.
M0, M1, STEP0, STEP1, LOW = map(np.uint64, (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85, 2**32 - 1))
# Taylor's coefficients, the highest first, to where the next term is below 2**-54 of the whole: of 2 atanh(s) / s - 2
# in s**2 < 0.0295, and of sin(x) / x - 1 and cos(x) - 1 in x**2 < 0.617, each divided by its variable.
LOG = tuple(2 / n for n in range(21, 1, -2))
SINE, COSINE = (tuple((-1) ** (n // 2) / math.factorial(n) for n in range(m, m - 16, -2)) for m in (17, 16))
options = {"error_model": "numpy", "forceinline": True}  # no test for a division by 0, no call: either ends the vectors


@njit(fastmath={"contract"}, **options)  # x * y + z may be rounded once, and nothing else
def polynomial(coefficients, x):
    value = 0.0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


@njit(fastmath={"contract"}, **options)
def normals(pair, row, seed):  # two independent normal(0, 1) samples: columns 2 * pair and 2 * pair + 2 of an even pair
    c0, c1, c2, c3, k0, k1 = pair & LOW, pair >> 32, row & LOW, row >> 32, seed & LOW, seed >> 32
    for _ in range(10):
        product0, product1 = M0 * c0, M1 * c2
        c0, c1, c2, c3 = product1 >> 32 ^ c1 ^ k0, product1 & LOW, product0 >> 32 ^ c3 ^ k1, product0 & LOW
        k0, k1 = k0 + STEP0 & LOW, k1 + STEP1 & LOW
    u = (np.float64((c0 << 32 | c1) >> 11) + 0.5) * 2.0**-53  # in (0, 1]: log(0) is no number
    v = np.float64((c2 << 32 | c3) >> 11) * 2.0**-52  # in [0, 2), half turns
    # u = (1 + f) * 2**exponent with 1 + f from sqrt(1/2), whose bits these are, to sqrt(2); 1 + f = (1 + s) / (1 - s)
    bits = np.float64(u).view(np.int64)
    exponent = bits - 0x3FE6A09E667F3BCD >> 52
    f = np.int64(bits - (exponent << 52)).view(np.float64) - 1
    s = f / (2 + f)
    radius = math.sqrt(-2 * (exponent * math.log(2) + (f - s * (f - s * s * polynomial(LOG, s * s)))))
    quarter = np.rint(2 * v)
    x = math.pi * (v - quarter / 2)  # an eighth of a turn, or less, from a whole number of quarters
    sine, cosine = x + x * (x * x * polynomial(SINE, x * x)), 1 + x * x * polynomial(COSINE, x * x)
    if np.int64(quarter) & 1:
        cosine, sine = -sine, cosine
    if np.int64(quarter) & 2:
        cosine, sine = -cosine, -sine
    return radius * cosine, radius * sine


@njit(fastmath={"reassoc"}, **options)  # eight sums side by side
def sum_of_row(row, columns, seed):
    total = 0.0
    for i in range((columns + 1) // 4):
        total += sum(normals(np.uint64(2 * i), row, seed))
    if columns % 4 in (1, 2):  # the last pair has its first column in the array only
        total += normals(np.uint64(columns // 4 * 2), row, seed)[0]
    return total


@njit("float64(int64, int64, uint64)", parallel=True)  # with types: compiled here, not at the first call
def sum_of_subset(rows, columns, seed):
    sums = np.zeros(STRIPS)
    for strip in prange(STRIPS):
        for row in range(2 * strip, rows, 2 * STRIPS):
            sums[strip] += sum_of_row(np.uint64(row), columns, seed)
    return sums.sum()


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:  # chunk is not used, as nothing is stored
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    with TURN:
        return 11 + sum_of_subset(rows, columns, np.uint64(seed)) / count if count else np.nan


def wait(mean):
    pass  # the threads are done when sum_of_subset returns


def download(mean):
    return float(mean)


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Numba on the CPU: 4,000 × 4,000 samples, all right")
