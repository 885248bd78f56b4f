"""The tuned random_subset_mean recipes average the samples that their workload defines, one by one."""

import contextlib

import numpy as np
import pytest
from conftest import recipes, starts_slowly
from seeds import fault_of_seeds

from gpu_cookbook import catalogue
from gpu_cookbook.run.contract import steps
from gpu_cookbook.run.worker import Loader

WORKLOAD = catalogue.workload_module("random_subset_mean")
SEEDS = (0, 7, 2**32 + 7, 2**64 - 1)  # 7 and 2**32 + 7 differ in the key's high word only


def shares_the_samples(recipe):
    return recipe.workload == "random_subset_mean" and recipe.shares_samples


@pytest.fixture(scope="module", params=recipes(shares_the_samples, slow=starts_slowly))
def mean(request):
    """rows, columns, seed -> a recipe's answer, its engine started."""
    module = Loader(request.param).execute()
    _, function, wait, download = steps(module, WORKLOAD)

    def answer(rows, columns, seed):
        result = function(rows, columns, seed=seed)
        wait(result)
        return download(result)

    with getattr(module, "engine", contextlib.nullcontext)():
        answer.many = (5, 6) if request.param.framework == "JAX" else (12, 13)  # JAX compiles for each of them
        yield answer


def subset_of(mean, rows, columns, seed):
    """The first rows × columns samples of x[::2, ::2], from the means of the arrays that end at each of them."""
    sums = np.zeros((rows + 1, columns + 1))
    for i in range(rows):
        for k in range(columns):
            # less 11: the sums are then small, and so is what is rounded away of them
            sums[i + 1, k + 1] = (mean(2 * i + 1, 2 * k + 1, seed) - 11) * ((i + 1) * (k + 1))
    return 10 + np.diff(np.diff(sums, axis=0), axis=1)


def same(x, y):
    """Of at most 156 samples: a mean near 11 is rounded by 2**-50 at most, and 4 × 156 of those make a sample here."""
    return np.abs(x - y).max() < 1e-12


# Random123's own known answers for philox4x32-10: tests/kat_vectors there.
@pytest.mark.parametrize(
    ("counter", "key", "block"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_philox_gives_the_known_answers(counter, key, block):
    counter, key = ([int(word, 16) for word in words.split()] for words in (counter, key))
    assert " ".join(f"{int(word):08x}" for word in WORKLOAD.philox(counter, key)) == block


def test_the_samples_are_normal_and_do_not_depend_on_the_size():
    x = WORKLOAD.samples(400, 500, seed=3)
    errors = (x - 10).mean() * x.size**0.5, ((x - 10) ** 2 - 1).mean() * (x.size / 2) ** 0.5
    assert max(map(abs, errors)) < 6  # standard errors, of the mean and of the variance
    for rows, columns in ((0, 5), (5, 0), (1, 1), (3, 2), (17, 15)):
        assert np.array_equal(WORKLOAD.samples(rows, columns, seed=3), x[:rows, :columns])


@pytest.mark.parametrize("seed", SEEDS)
def test_every_sample_is_the_one_that_is_defined(mean, seed):
    rows, columns = mean.many
    expected = WORKLOAD.samples(2 * rows, 2 * columns, seed)[::2, ::2]
    assert same(subset_of(mean, rows, columns, seed), expected)


def test_the_comparison_rejects_other_samples(mean):
    found = subset_of(mean, 5, 6, seed=7)
    x = WORKLOAD.samples(12, 14, seed=7)
    assert same(found, x[:10:2, :12:2])
    assert not same(found, WORKLOAD.samples(10, 12, seed=8)[::2, ::2])
    assert not same(found, x[1:11:2, :12:2]) and not same(found, x[:10:2, 1:13:2])
    one_wrong = x[:10:2, :12:2].copy()
    one_wrong[4, 5] += 1e-11
    assert not same(found, one_wrong)


def test_odd_and_even_sides(mean):
    for rows in (1, 2, 3, 8):
        for columns in (1, 2, 3, 4, 5, 6, 7, 8, 1_021, 1_022, 1_023, 1_024, 4_097):
            expected = WORKLOAD.samples(rows, columns, 7)[::2, ::2].mean() + 1
            assert abs(mean(rows, columns, 7) - expected) < 1e-12, f"{rows} × {columns}"


@pytest.mark.slow
def test_the_mean_of_a_large_array(mean):
    expected = WORKLOAD.samples(4_000, 4_001, 5)[::2, ::2].mean() + 1
    assert abs(mean(4_000, 4_001, 5) - expected) < 1e-12


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_of_more_than_64_bits_is_refused(mean, seed):
    with pytest.raises(ValueError, match=f"takes seeds of 64 bits, not {seed}"):
        mean(3, 3, seed)


@pytest.mark.parametrize("recipe", recipes(lambda recipe: recipe.workload == "random_subset_mean", slow=starts_slowly))
def test_a_seed_gives_its_own_answer_or_is_refused(recipe):
    module = Loader(recipe).execute()
    with getattr(module, "engine", contextlib.nullcontext)():
        assert fault_of_seeds(module) is None
