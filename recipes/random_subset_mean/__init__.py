"""Mean of a subset of random samples: mean(x[::2, ::2] + 1), x normal(10, 1) made chunk by chunk, float64."""

import numpy as np

SIZES = (4_000, 20_000, 100_000)
EDGE_SIZES = ((0, 0), (1, 1), (1, 2), (15, 17), (16, 16), (0, 5), (5, 0), (257, 1), (1, 257), (333, 1_001))
TIME_LIMIT = 900  # seconds per result
# (rows, columns): the mean of the samples that the tuned recipes share, with seed 0, as benchmarks/means.py computed it
# in NumPy, without any recipe. 100,000² takes some 250 s on one core there; 3,162,278², with 1,000 times the samples,
# is out of reach.
MEANS = {
    (4_000, 4_000): 11.00037683914305,
    (8_000, 4_000): 11.000369353057044,
    (16_000, 4_000): 11.0001369535686,
    (32_000, 4_000): 11.000202808614532,
    (64_000, 4_000): 11.000067519556985,
    (20_000, 20_000): 11.00002539070516,
    (40_000, 20_000): 10.999997612994123,
    (80_000, 20_000): 10.999961931394221,
    (160_000, 20_000): 10.999962972977627,
    (320_000, 20_000): 10.99994830830646,
    (100_000, 100_000): 10.999997273951012,
    (200_000, 100_000): 10.999983053998157,
    (400_000, 100_000): 10.999988773372682,
}


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


def shared_mean(rows, columns, seed):
    """The mean of the samples that the tuned recipes share: computed if they are few, as stored, or None."""
    if rows * columns == 0:
        return np.nan
    if rows * columns <= 2**20:
        return samples(rows, columns, seed)[::2, ::2].mean() + 1
    return MEANS.get((rows, columns)) if seed == 0 else None


def shared_reference(rows, columns, chunk, seed):
    """reference() of the recipes that average the shared samples."""
    mean = shared_mean(rows, columns, seed)
    return reference(rows, columns, chunk, seed) if mean is None else mean


def shared_tolerance(expected, rows, columns, chunk, seed):
    """tolerance() of the recipes that average the shared samples.

    Sums of such samples in float64 differ by less, whatever the order of the additions: what is added has the mean 0,
    so that n roundings of a partial sum of at most some √n leave an error of the order of n × 2**-53 in it, and
    2**-53 in the mean. A sum in float32 is off by 1e-9 or more.
    """
    if shared_mean(rows, columns, seed) is None:
        return tolerance(expected, rows, columns, chunk, seed)
    return 1e-12 * abs(expected)


def error_scale(expected, rows, columns, chunk, seed):
    """None: which samples a recipe makes is its own choice, and so the mean of infinitely many says nothing of its
    rounding."""


def shared_error_scale(expected, rows, columns, chunk, seed):
    """error_scale() of the recipes that average the shared samples: the mean itself, where it is known."""
    return None if shared_mean(rows, columns, seed) is None else abs(expected)


def bytes_moved(size):
    """At least none: a sample can be made and added in registers."""
    return 0


def operations(size):
    """At least two for each element of the subset: one that makes the sample, and one that adds it; one can be added to
    all of them at the end. How many more make a sample is the generator's own."""
    rows, columns = shape(size)
    return 2 * ((rows + 1) // 2) * ((columns + 1) // 2)


def shared_operations(size):
    """At least, for the recipes that average the shared samples: 24 that make a sample, and one that adds it.

    A block of Philox4x32-10 makes two samples of the subset, from all of its four words. A round of it is two products
    of 64 bits and four exclusive ors (Salmon et al.). Rows and columns may share the first two, in which the half of
    the counter that is the row's does not meet the pair's yet; the other eight are 48 operations. What makes normals
    of the words, logarithms and sines, is not counted.
    """
    return 25 * (operations(size) // 2)


def footprint(size):
    """Bytes of three chunks: samples, subset and what the generator needs."""
    return 3 * 8 * chunk(size) ** 2


def philox(counter, key):
    """The four words of the Philox4x32-10 block with this counter, four words, and key, two integers.

    Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC11. A word is an integer below 2**32, or an array of
    such integers.
    """
    c0, c1, c2, c3 = (np.asarray(word, np.uint64) for word in counter)
    k0, k1 = key
    for _ in range(10):
        product0, product1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1 = product1 >> 32 ^ c1 ^ k0, product1 % 2**32
        c2, c3 = product0 >> 32 ^ c3 ^ k1, product0 % 2**32
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return c0, c1, c2, c3


def samples(rows, columns, seed=0):
    """The normal(10, 1) array whose subset the tuned recipes average, except one whose docstring has a line "Samples:".

    It is float64, rows × columns. Sample (i, j) is a function of the seed, i and j alone, so that nobody has to make
    those that the mean leaves out: columns 4 q + r and 4 q + r + 2 of row i (r is 0 or 1) are the two normals that Box
    and Muller make of the Philox4x32-10 block with the counter (2 q + r, i) and the key seed, each of them a 64-bit
    integer of two words, the low one first.
    """
    quads = (columns + 3) // 4
    row, pair = np.arange(rows, dtype=np.uint64)[:, None], np.arange(2 * quads, dtype=np.uint64)
    c0, c1, c2, c3 = philox((pair % 2**32, pair >> 32, row % 2**32, row >> 32), (seed % 2**32, seed >> 32))
    u = (((c0 << 32 | c1) >> 11) + 0.5) * 2.0**-53  # in (0, 1]: log(0) is no number
    v = ((c2 << 32 | c3) >> 11) * 2.0**-52  # in [0, 2), half turns
    quarter = np.rint(2 * v)
    turn = np.exp(1j * np.pi * (v - quarter / 2)) * np.array([1, 1j, -1, -1j])[quarter.astype(int) % 4]  # exact at 1, i
    z = np.sqrt(-2 * np.log(u)) * turn
    z = np.stack([z.real.reshape(rows, quads, 2), z.imag.reshape(rows, quads, 2)], axis=2)
    return 10 + z.reshape(rows, 4 * quads)[:, :columns]
