"""Whether random_subset_mean's samples are what the workload says: normal(10, 1), and independent of each other.

The mean of an array with one sample in its subset is that sample plus one, and the mean of n samples is normal with the
mean 11 and the variance 1/n. So (mean - 11) √n of many seeds must be independent normal(0, 1) numbers, for every shape
and every size of a chunk. What follows from that exactly is tested, by the distribution that it then has:

- the sum of N such numbers, over √N, is normal(0, 1);
- the sum of their squares has a χ² distribution of N degrees of freedom. Samples that two chunks, rows, columns or
  neighbours share make it larger or smaller: eight equal ones eight times as large;
- of the sums and the differences of disjoint pairs, the two sums of squares have χ² distributions too, and the share of
  the first in both a Beta distribution: seeds that share samples change it;
- the k-th smallest of N probabilities Φ(number) has the distribution Beta(k, N + 1 - k), and so has that of |number|.
  The least probable of them (Berk and Jones, Z. Wahrscheinlichkeitstheorie verw. Gebiete 47, 1979) tells another
  distribution of the same variance: the largest |number| of a uniform one is 1.73.

A call of an engine takes milliseconds, so this goes in two stages. A few seeds are tested at GATE; only what looks
suspicious is tested again, with more and other seeds, and only that second test, at LEVEL, says that a recipe is wrong.
A right recipe fails at most TESTS of these, each as rarely as LEVEL: 100 recipes together less than once in 10**9 runs.
As the seeds are fixed, the outcome for a recipe does not change from run to run.

Two tests need no second stage, because what they count hardly ever happens to a right recipe (see EQUAL):

- Equal samples. The mean over two samples, taken twice, less the mean over the first is the second one. It must not be
  the first one of any seed. Nor may seeds that are powers of two have equal samples.
- Samples in float32: means that float32 numbers can express.

What this does not find: distributions that some hundred samples do not tell from a normal one, such as the sum of
twelve uniform numbers, and with an engine, whose calls are slow, all but coarse faults in distribution and variance.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from gpu_cookbook.catalogue import Recipe
from gpu_cookbook.run.contract import steps
from gpu_cookbook.run.loader import executed_anew

GATE = 2e-3
LEVEL = 1.5e-13
TESTS = 54  # at most: six of single samples, four of each other group; 54 × LEVEL × 100 recipes < 1e-9
PAIRS = 8  # seeds for the second sample of each pair
# Two numbers of a right recipe are within 1e-11 as rarely as 6e-12, and equal as rarely as 2**-32 if its generators
# take seeds of 32 bits; 3,200 pairs of them are compared. EQUAL of these happen as rarely as
# (3,200 × 2**-32)**3 / 6 = 7e-20.
EQUAL, SAME = 3, 1e-11


@dataclass(frozen=True)
class Seeds:
    """How many seeds are tried: first for single samples and for each other shape, then for what looks suspicious."""

    singles: int
    others: int
    singles_again: int
    others_again: int


# The largest |number| of 80 uniform ones is less probable than GATE: 0.917**80. Of 500, it has a probability of 1e-19,
# and a variance of 2 is 16 standard deviations off.
PLAIN, ENGINE = Seeds(400, 64, 4_000, 500), Seeds(80, 8, 500, 500)

Means = Callable[["Shape", Sequence[int]], np.ndarray]


@dataclass(frozen=True)
class Shape:
    rows: int
    columns: int
    chunk: int

    @property
    def count(self) -> int:
        """The number of samples in the subset."""
        return ((self.rows + 1) // 2) * ((self.columns + 1) // 2)

    def numbers(self, means: np.ndarray) -> np.ndarray:
        """Normal(0, 1) numbers, if the samples are right."""
        return (means - 11) * self.count**0.5

    def __str__(self) -> str:
        return f"{self.rows}×{self.columns} in chunks of {self.chunk}"


ONE = Shape(1, 1, 1)
TWO = (Shape(1, 3, 2), Shape(3, 1, 2), Shape(1, 3, 3), Shape(3, 1, 3))  # in two chunks, then as neighbours in one
MANY = (
    Shape(1, 15, 2),  # eight chunks in a row, in a column, 16 in a square
    Shape(15, 1, 2),
    Shape(7, 7, 2),
    Shape(5, 5, 1),  # chunks that start at an odd place, and of which some have no sample of the subset
    Shape(9, 9, 3),
    Shape(1, 17, 16),  # eight samples in one chunk, and one in another
    Shape(17, 1, 16),
    Shape(9, 9, 9),  # all in one chunk
)
# Half of the chunks start at an odd place of the longer axis only: where rows and columns are mixed up, 6 of the 14
# samples are missing, and the mean is 18 standard errors less. Of right samples it is FAR_OFF once in 10**15 means.
ODD, FAR_OFF = (Shape(1, 28, 7), Shape(28, 1, 7)), 8.0
# {shape: how many seeds are tried, and how many again}
SLOW = {
    Shape(1_000, 1_000, 1_000): (8, 64),  # a million samples in one chunk: for many at once a generator may differ
    Shape(10_000, 17, 10_000): (8, 64),  # rows that are repeated further down
}
# 289 chunks, whose numbers may run into each other; not with an engine, which would take a second for each seed.
CHUNKS = {Shape(33, 33, 2): (16, 100)}
FAR = tuple(2**bit for bit in range(32))  # seeds that a generator which keeps fewer bits confuses
FIRST_SEED = 10_000  # of the first shape; the next shape's are so many further on, and the second stage's far from all
SECOND_STAGE = 1_000_000
# Where tuned recipes are compared with the samples that they share, one mean each.
SHARED_SHAPES = (*TWO, *MANY, *ODD, Shape(2, 4, 1), Shape(8, 1_022, 100), Shape(33, 257, 10), Shape(2, 4_097, 1_000))
SHARED_SEEDS = (0, 7, 2**32 + 7, 2**64 - 1)  # 7 and 2**32 + 7 differ in the key's high word only


def fault(recipe: Recipe, module: ModuleType, workload: ModuleType, anew: bool = False) -> str | None:
    """What is wrong with the samples of a recipe of random_subset_mean, in one line, or None. ``anew``: its file is
    executed once more, too."""
    if anew and (found := other_elsewhere(module, workload)):
        return found
    _, compute, wait, download = steps(module, workload)

    def means(shape: Shape, seeds: Sequence[int]) -> np.ndarray:
        # All calls are sent off before the first answer is fetched: an engine then takes half as long.
        results = [compute(shape.rows, shape.columns, shape.chunk, seed) for seed in seeds]
        for result in results:
            wait(result)
        return np.array([download(result) for result in results], float)

    if recipe.shares_samples:
        return other_samples(workload, means)
    return unlike(means, ENGINE if recipe.engine else PLAIN, "float32" in recipe.math)


def other_elsewhere(module: ModuleType, workload: ModuleType) -> str | None:
    """Where a second module of the recipe's file, which believes itself in another process, has other samples of the
    same seed, in one line, or None."""

    def mean(of: ModuleType) -> float:
        _, compute, wait, download = steps(of, workload)
        result = compute(9, 9, 3, FIRST_SEED)
        wait(result)
        return download(result)

    first, getpid = mean(module), os.getpid
    os.getpid = lambda: getpid() + 1
    try:
        with executed_anew(module) as new:
            second = mean(new)
    finally:
        os.getpid = getpid
    return None if first == second else f"seed {FIRST_SEED} gave {first!r} in one process and {second!r} in another"


def other_samples(workload: ModuleType, means: Means) -> str | None:
    """Where the means are not those of the samples that tuned recipes share, in one line, or None."""
    for shape in SHARED_SHAPES:
        for seed, mean in zip(SHARED_SEEDS, means(shape, SHARED_SEEDS), strict=True):
            expected = workload.reference(shape.rows, shape.columns, shape.chunk, seed)
            if not abs(mean - expected) <= workload.tolerance(expected, shape.rows, shape.columns, shape.chunk, seed):
                return f"{shape}, seed {seed}: {mean!r} instead of {expected!r}, the mean of the samples of this lane"
    return None


def unlike(means: Means, seeds: Seeds = PLAIN, float32: bool = False) -> str | None:
    """How the means differ from those of independent normal(10, 1) samples plus one, in one line, or None. ``float32``:
    samples may be float32 numbers."""
    ones = means(ONE, range(FIRST_SEED, FIRST_SEED + seeds.singles))
    if found := no_number(ONE, ones):
        return found
    if not float32 and 2 * np.count_nonzero(in_float32(ones)) >= len(ones):
        return f"{ONE}: means of at least half of {len(ones)} seeds are float32 numbers, not float64"
    far = means(ONE, FAR)
    if np.count_nonzero(np.abs(far[:, None] - far) < SAME) >= len(far) + 2 * EQUAL:  # each is equal to itself
        return f"{ONE}: of the seeds 1, 2, 4, … 2**31, at least {EQUAL} pairs have equal samples"
    for shape in TWO:
        twos = means(shape, range(FIRST_SEED, FIRST_SEED + PAIRS))
        if found := no_number(shape, twos) or equal_samples(shape, ones, twos):
            return found

    for shape in ODD:
        if not abs(y := shape.numbers(means(shape, [FIRST_SEED]))[0]) < FAR_OFF:
            return f"{shape}: a mean {y:.0f} standard errors off"

    def numbers(shapes: Sequence[Shape], start: int, count: int) -> np.ndarray:
        """Of the shapes one after the other, each from other seeds on."""
        return np.concatenate(
            [
                shape.numbers(means(shape, range(first, first + count)))
                for shape, first in zip(shapes, range(start, start + 10**6, FIRST_SEED), strict=False)
            ]
        )

    few = {shape: numbers([shape], FIRST_SEED * (place + 2), seeds.others) for place, shape in enumerate(MANY)}
    groups: dict[tuple[Shape, ...], np.ndarray] = {(ONE,): ONE.numbers(ones)}
    groups |= {(shape,): y for shape, y in few.items()}
    groups |= {MANY: np.concatenate(list(few.values()))}
    slow = SLOW if seeds is ENGINE else SLOW | CHUNKS
    for place, (shape, (count, _)) in enumerate(slow.items(), len(MANY) + 2):
        groups |= {(shape,): numbers([shape], FIRST_SEED * place, count)}
    for place, (shapes, y) in enumerate(groups.items()):
        if min(probability for _, probability in tests(y, shapes == (ONE,))) > GATE:
            continue
        again = (seeds.singles_again if shapes == (ONE,) else seeds.others_again) // len(shapes)
        again = slow[shapes[0]][1] if shapes[0] in slow else again
        for what, probability in tests(numbers(shapes, SECOND_STAGE * (place + 1), again), shapes == (ONE,), True):
            if not probability >= LEVEL:
                return f"{shapes[0] if len(shapes) == 1 else 'all shapes together'}, {again} seeds: {what}"
    return None


def no_number(shape: Shape, means: np.ndarray) -> str | None:
    return None if np.isfinite(means).all() else f"{shape}: {means[~np.isfinite(means)][0]!r} instead of a mean"


def in_float32(means: np.ndarray) -> np.ndarray:
    """Which of the means of one sample came from a float32 number: themselves, before 1 was added, or before 11 was."""
    return np.any([each.astype(np.float32) == each for each in (means, means - 1, means - 11)], axis=0)


def equal_samples(shape: Shape, ones: np.ndarray, twos: np.ndarray) -> str | None:
    """Which of the second samples are the first ones of any seed, in one line, or None."""
    second = 2 * twos - ones[: len(twos)]
    equal = np.count_nonzero((np.abs(second[:, None] - ones) < SAME).any(axis=1))
    return (
        f"{shape}: of {len(twos)} seeds, {equal} have a sample twice, or share one with another"
        if equal >= EQUAL
        else None
    )


def tests(y: np.ndarray, single: bool, of_all: bool = False) -> Iterator[tuple[str, float]]:
    """(what was found, the probability that independent normal(0, 1) numbers give that or worse, on either side).

    ``single``: they are single samples, so that their distribution is that of the samples; the mean of several is more
    normal than these. ``of_all``: the probability of the least probable of all order statistics, not of one alone."""
    from scipy.special import betainc, betaincc, chdtr, chdtrc, ndtr

    count = len(y)
    z, squares = y.sum() / count**0.5, float(np.square(y).sum())
    yield f"(mean - 11) √n has a mean of {y.mean():.3g}, not 0", 2 * min(ndtr(z), ndtr(-z))
    variance = 2 * min(chdtr(count, squares), chdtrc(count, squares))
    yield f"(mean - 11) √n has a variance of {squares / count:.3g}, not 1", variance
    for lag in (1, 2):
        pairs = y[: count // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
        plus, minus = (float(np.square(each).sum()) for each in (pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]))
        half, share = pairs.size / 4, plus / (plus + minus) if plus + minus else 0.5
        words = f"the means of seeds {lag} apart have a correlation of {2 * share - 1:.2f}"
        yield words, 2 * min(betainc(half, half, share), betaincc(half, half, share))
    if single:
        k = np.arange(1, count + 1)
        for what, probabilities in (
            ("samples", ndtr(y)),
            ("distances of the samples from 10", 2 * ndtr(np.abs(y)) - 1),
        ):
            u = np.sort(probabilities)
            least = float(np.minimum(betainc(k, count + 1 - k, u), betaincc(k, count + 1 - k, u)).min())
            yield f"the {what} have another distribution than normal(10, 1)", 2 * least * (count if of_all else 1)
