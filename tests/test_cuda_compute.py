"""cuda.compute's recipes run without a GPU, in front of a fake that does on the host what its algorithms do."""

import pytest
from conftest import altered, ran, require_right_sizes

from gpu_cookbook import catalogue

RECIPES = [recipe for recipe in catalogue.recipes() if recipe.framework == "cuda.compute"]
SCRIPT = "compute_on_host.py"


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.workload}-{recipe.technique}")
def test_right_on_the_host(recipe):
    require_right_sizes(SCRIPT, recipe)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "technique", "old", "new", "fault"),
    [
        (
            "multiply",
            "cuda_compute",
            "num_items=a.size, stream=stream",
            "num_items=(a.size + 1) // 2, stream=stream",
            "elements are wrong",
        ),
        ("multiply", "cuda_compute", "transform(**given,", "transform(**{**given, 'd_in2': a},", "prepared: call 1"),
        (
            "increment",
            "cuda_compute",
            "    transform = make",
            "    increment(a)\n    transform = make",
            "prepared: call 1",
        ),
        ("subset_mean", "cuda_compute", "k // across * 2 * columns", "k // across * columns", "instead of"),
        ("subset_mean", "cuda_compute", "add_one, float64)", "add_one, int64)", "AssertionError"),
        ("norm", "cuda_compute", 'num_items": x.size', 'num_items": (x.size + 1) // 2', "instead of"),
        (
            "random_subset_mean",
            "cuda_compute",
            "(x.shape[1], row, column, seed)",
            "(x.shape[1], 0, column, seed)",
            "chunks",
        ),
        ("random_subset_mean", "cuda_compute_tuned", "TWO * pair + TWO", "TWO * pair", "instead of"),
    ],
)
def test_the_fake_finds_what_is_wrong(workload, technique, old, new, fault, tmp_path):
    changed = altered(catalogue.find(workload, technique).path, old, new, tmp_path / workload)
    assert fault in ran(SCRIPT, changed).stderr
