"""random_subset_mean's samples: what is not normal, or not independent, is found, and right samples are not."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from conftest import rejected

import gpu_cookbook.recipes.random_subset_mean.with_numpy as with_numpy
from gpu_cookbook import catalogue
from gpu_cookbook.results import Status
from gpu_cookbook.run import distribution, scale
from gpu_cookbook.run.distribution import ENGINE, LEVEL, MANY, ONE, PLAIN, TESTS, TWO
from gpu_cookbook.run.precision import workload_for

WORKLOAD = catalogue.workload_module("random_subset_mean")


def found(function, seeds=PLAIN, **options):
    """What the tests say of a function of rows, columns, chunk and seed."""
    return distribution.unlike(
        lambda shape, numbers: np.array([function(shape.rows, shape.columns, shape.chunk, seed) for seed in numbers]),
        seeds,
        **options,
    )


def chunked(seed_of=lambda seed, row, column, chunk: [seed, row, column], draw=None, dtype=np.float64, parity=True):
    """random_subset_mean in NumPy, with other seeds of chunks, other samples or another sum."""
    draw = draw or (lambda rng, shape: rng.normal(10, 1, shape))

    def mean(rows, columns, chunk, seed):
        total, count = dtype(0), 0
        for row in range(0, rows, chunk):
            for column in range(0, columns, chunk):
                rng = np.random.default_rng(seed_of(seed, row, column, chunk))
                x = draw(rng, (min(chunk, rows - row), min(chunk, columns - column))).astype(dtype)
                subset = x[row % 2 * parity :: 2, column % 2 * parity :: 2] + dtype(1)
                total, count = total + subset.sum(dtype=dtype), count + subset.size
        return float(total / count)

    return mean


def root(x):
    return x**0.5


DISTRIBUTIONS = {
    "uniform": lambda rng, shape: rng.uniform(10 - root(3), 10 + root(3), shape),
    "Laplace": lambda rng, shape: rng.laplace(10, root(0.5), shape),
    "exponential": lambda rng, shape: 9 + rng.exponential(1, shape),
    "signs": lambda rng, shape: 10 + rng.choice([-1.0, 1.0], shape) * 1.0000001,
    "Student's t": lambda rng, shape: 10 + rng.standard_t(5, shape) * root(3 / 5),
    "cut off": lambda rng, shape: 10 + np.clip(rng.normal(0, 1, shape), -2, 2) / 0.9,
    "too wide": lambda rng, shape: rng.normal(10, 1.2, shape),
    "too narrow": lambda rng, shape: rng.normal(10, 0.9, shape),
    "beside": lambda rng, shape: rng.normal(10.1, 1, shape),
    "constant": lambda rng, shape: np.full(shape, 10.0) + rng.normal(0, 1e-9),
    "NaN": lambda rng, shape: np.full(shape, np.nan),
}
NEIGHBOURS = {
    "rows alike": lambda rng, shape: np.broadcast_to(rng.normal(10, 1, (1, shape[1])), shape),
    "columns alike": lambda rng, shape: np.broadcast_to(rng.normal(10, 1, (shape[0], 1)), shape),
    "each sample four times": lambda rng, shape: np.repeat(rng.normal(10, 1, (shape[0], shape[1])), 4, 1)[
        :, : shape[1]
    ],
}
SEEDS = {
    "one chunk for all": lambda seed, row, column, chunk: seed,
    "chunks of a column alike": lambda seed, row, column, chunk: [seed, column],
    "chunks of a row alike": lambda seed, row, column, chunk: [seed, row],
    "chunks of a diagonal alike": lambda seed, row, column, chunk: [seed, row + column],
    "the next seed's chunks": lambda seed, row, column, chunk: seed + row // chunk + column // chunk,
    "two seeds alike": lambda seed, row, column, chunk: [seed // 2, row, column],
    "seeds of 16": lambda seed, row, column, chunk: [seed % 16, row, column],
    "no seed": lambda seed, row, column, chunk: [row, column],
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_another_distribution_is_found(name):
    assert found(chunked(draw=DISTRIBUTIONS[name]))


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbours_that_share_samples_are_found(name):
    assert found(chunked(draw=NEIGHBOURS[name])) and found(chunked(draw=NEIGHBOURS[name]), ENGINE)


@pytest.mark.parametrize("name", SEEDS)
def test_chunks_and_seeds_that_share_samples_are_found(name):
    assert found(chunked(SEEDS[name])) and found(chunked(SEEDS[name]), ENGINE)


@pytest.mark.parametrize("name", ["uniform", "exponential", "constant", "NaN"])
def test_a_coarse_fault_is_found_in_the_few_calls_of_an_engine(name):
    assert found(chunked(draw=DISTRIBUTIONS[name]), ENGINE)


def test_a_mean_that_only_follows_the_seed_is_found():
    assert found(lambda rows, columns, chunk, seed: 11 + 1e-9 * seed)


def test_the_mean_of_another_subset_is_found():
    assert found(chunked(parity=False))
    assert found(
        lambda rows, columns, chunk, seed: 1 + np.random.default_rng(seed).normal(10, 1, (rows, columns)).mean()
    )


def test_a_mean_of_the_chunks_means_is_found():
    def mean(rows, columns, chunk, seed):
        means = [
            with_numpy.random_subset_mean(
                min(chunk, rows - row), min(chunk, columns - column), chunk, seed << 64 | row << 32 | column
            )
            for row in range(0, rows, chunk)
            for column in range(0, columns, chunk)
        ]
        return np.mean(means)

    assert found(mean)


def test_float32_is_found_unless_the_recipe_declares_it():
    for single in (
        chunked(dtype=np.float32),
        chunked(draw=lambda rng, shape: 10 + rng.standard_normal(shape, np.float32)),
    ):
        assert "float32 numbers" in found(single)
    declared = chunked(draw=lambda rng, shape: 10.0 + rng.standard_normal(shape, np.float32).astype(float))
    assert found(declared) and found(declared, float32=True) is None


@pytest.mark.parametrize("seeds", [PLAIN, ENGINE])
@pytest.mark.parametrize("number", range(5))
def test_right_samples_are_not_rejected(number, seeds):
    assert found(chunked(lambda *numbers: [number, *numbers[:3]]), seeds) is None


def test_the_probabilities_are_exact():
    """Right numbers give a probability below p in a share p of the cases: for each single test, and at most in that
    share for all order statistics together."""
    rng = np.random.default_rng(1)
    y = rng.standard_normal((2_000, 64))
    single = np.array([[p for _, p in distribution.tests(row, single=True, of_all=True)] for row in y])
    for p in (0.001, 0.01, 0.1):
        shares = (single < p).mean(axis=0)
        error = 5 * (p / len(y)) ** 0.5  # five standard deviations
        assert (np.abs(shares[:4] - p) < error).all(), shares
        assert (shares[4:] < p + error).all(), shares


def test_false_alarms_are_as_rare_as_stated():
    assert 6 + 4 * (len(MANY) + 1 + len(distribution.SLOW | distribution.CHUNKS)) == TESTS
    assert 100 * TESTS * LEVEL < 1e-9
    pairs = 8 * PLAIN.singles * len(TWO)
    assert 100 * len(TWO) * (pairs * 2.0**-32) ** distribution.EQUAL / 6 < 1e-12


def test_the_largest_of_few_uniform_numbers_looks_suspicious():
    y = np.random.default_rng(0).uniform(-root(3), root(3), ENGINE.singles)
    assert min(p for _, p in distribution.tests(y, single=True)) < distribution.GATE


def test_each_shape_has_the_samples_that_its_comment_says():
    assert ONE.count == 1 and {shape.count for shape in TWO} == {2}
    assert [shape.count for shape in MANY] == [8, 8, 16, 9, 25, 9, 9, 25]


# ---- Recipes that average shared samples.


def others(mean):
    return distribution.other_samples(
        WORKLOAD_OF_SHARED, lambda shape, seeds: np.array([mean(shape.rows, shape.columns, seed) for seed in seeds])
    )


WORKLOAD_OF_SHARED = workload_for(catalogue.find("random_subset_mean", "numba_cpu_tuned"))


def test_the_shared_samples_are_accepted():
    assert others(lambda rows, columns, seed: WORKLOAD.samples(rows, columns, seed)[::2, ::2].mean() + 1) is None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda rows, columns, seed: WORKLOAD.samples(rows, columns, seed % 2**32)[::2, ::2].mean() + 1,
        lambda rows, columns, seed: WORKLOAD.samples(rows, columns, seed)[::2, ::2].mean() + 1 + 1e-9,
        lambda rows, columns, seed: np.float32(WORKLOAD.samples(rows, columns, seed)[::2, ::2].mean() + 1),
        lambda rows, columns, seed: with_numpy.random_subset_mean(rows, columns, 10, seed),
        lambda rows, columns, seed: WORKLOAD.samples(rows, columns, seed).mean() + 1,
        lambda rows, columns, seed: np.nan,
    ],
)
def test_other_samples_are_rejected(wrong):
    assert "instead of" in others(wrong)


def test_the_stored_means_follow_from_the_definition():
    row_sum = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "means.py"))["row_sum"]
    sums = [row_sum(row, 4_000, 0) for row in range(0, 4_000, 2)]
    assert 11 + sum(sums) / 2_000**2 == pytest.approx(WORKLOAD.MEANS[4_000, 4_000], rel=1e-12)
    subset = WORKLOAD.samples(33, 258, 2**32 + 7)[::2, ::2]
    assert [row_sum(row, 258, 2**32 + 7) for row in range(0, 33, 2)] == pytest.approx((subset - 10).sum(axis=1))


# ---- As a whole recipe.


def written(folder, technique, *changes):
    """NumPy's recipe with changes, in a file."""
    text = catalogue.find("random_subset_mean", "numpy").path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "random_subset_mean").mkdir()
    path = folder / "random_subset_mean" / f"with_{technique}.py"
    path.write_text(text, encoding="utf-8")
    return catalogue.read(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("technique", "change", "reason"),
    [
        (
            "uniform",
            ("rng.normal(10, 1, shape)", "rng.uniform(10 - 3**0.5, 10 + 3**0.5, shape)"),
            "another distribution",
        ),
        ("chunk", ("[row, column, seed]", "seed"), "instead of"),
        ("unshared_tuned", ("total = 0.0", "total = 0.0"), "instead of"),
    ],
)
def test_check_and_compare_reject(tmp_path, technique, change, reason, monkeypatch):
    *_, last = rejected(written(tmp_path, technique, change), monkeypatch)
    assert last.status == Status.FAILED and reason in last.reason


def test_scale_rejects_a_tuned_recipe_before_it_is_timed(tmp_path):
    recipe = written(tmp_path, "unshared_tuned", ("total = 0.0", "total = 0.0"))
    (row, *_) = scale.measure(scale.Run(recipe, 1), scale.Work(400))
    assert row.status == Status.FAILED and row.reason.startswith("before it was timed: 1×3 in chunks of 2, seed 0: ")
