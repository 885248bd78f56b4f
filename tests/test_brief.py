"""A comparison of which nothing was chosen ends in time, and says what it leaves out."""

from dataclasses import replace

import pytest
from conftest import invoked

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Result, Status
from gpu_cookbook.run import compare as comparing
from gpu_cookbook.run.compare import Choice, Outcome, brief


@pytest.fixture(params=[0, 1], ids=["no GPU", "GPU"])
def most(request, monkeypatch):
    """Seconds on a machine on which everything runs that can run on its devices in the main environment."""
    monkeypatch.setattr(machine, "gpus", lambda: ["a GPU"] * request.param)
    monkeypatch.setattr(machine, "obstacle", of_another_environment if request.param else without_a_gpu)
    return 60 * (comparing.MINUTES_ON_GPU if request.param else comparing.MINUTES)


def of_another_environment(recipe):
    return f"belongs to the environment {recipe.environment}" if recipe.environment != machine.MAIN else None


def without_a_gpu(recipe):
    needs_one = recipe.runs_on in ("NVIDIA GPU", "every NVIDIA GPU")
    return "needs a GPU" if needs_one else of_another_environment(recipe)


def slower(monkeypatch, factor, seconds=Choice.seconds):
    monkeypatch.setattr(Choice, "seconds", lambda self: factor * seconds(self))


def everything():
    recipes = comparing.with_numpy(catalogue.choose([]))
    return Choice(recipes, {name: catalogue.default_sizes(name) for name in {each.workload for each in recipes}})


def test_what_is_measured_by_default_ends_in_time(most):
    choice = brief(everything())
    assert choice.seconds() <= most < everything().seconds()
    assert choice.left_out[0] == "tuned recipes" and {each.lane for each in choice.recipes} == {"idiomatic"}
    for name in {each.workload for each in choice.recipes}:
        assert choice.sizes[name] and {each.technique for each in choice.recipes if each.workload == name} >= {"numpy"}


def test_with_a_gpu_every_framework_is_measured_at_the_smallest_and_the_largest_size(monkeypatch):
    monkeypatch.setattr(machine, "gpus", lambda: ["a GPU"])
    monkeypatch.setattr(machine, "obstacle", of_another_environment)
    usual = everything()
    choice = brief(usual)
    for name in ("matmul", "multiply"):
        assert choice.sizes[name] == [min(usual.sizes[name]), max(usual.sizes[name])]
        mine = [each for each in usual.recipes if each.workload == name and not machine.obstacle(each)]
        found = {each.framework for each in choice.recipes if each.workload == name and not machine.obstacle(each)}
        assert {each.framework for each in mine} - found <= {"Dask", "joblib", "multiprocessing", "Ray"}
    # Of the means, the largest size would take half of the time, and the next one half a minute that is not left.
    assert choice.sizes["subset_mean"] == usual.sizes["subset_mean"][:1]


def test_the_slower_the_more_is_left_out(most, monkeypatch):
    left = []
    for factor in (0, 1, 2, 4, 1000):
        slower(monkeypatch, factor)
        left.append(brief(everything()).left_out)
    least = brief(everything())
    techniques = {each.technique for each in least.recipes}
    assert left[0] == () and "torch" in techniques and not techniques & {"dask", "dask_cuda", "joblib_cuda", "ray"}
    assert {each.workload for each in least.recipes} == {"matmul", "multiply", "subset_mean"}
    assert all(more[: len(less)] == less for less, more in zip(left, left[1:], strict=False))
    assert all(len(each) == 1 for each in least.sizes.values())
    between = "sizes between the smallest and the largest"
    assert (between in left[-1]) == (len(everything().sizes["multiply"]) > 2)


def test_after_its_time_no_recipe_is_begun(monkeypatch):
    right, wrong, elsewhere = (catalogue.find("increment", name) for name in ("numpy", "numba_cpu", "cutile"))
    failed = replace(Result.of(wrong, 1000, Status.FAILED), reason="3 instead of 4")
    monkeypatch.setattr(comparing, "check", lambda *_: Outcome(results=[failed]))
    monkeypatch.setattr(machine, "obstacle", of_another_environment)
    outcome = comparing.Comparison([right, wrong, elsewhere], {"increment": [1000]}, limit=0).measure(
        lambda *_: None, lambda: None, save=None
    )
    assert outcome.late == [right]  # of the others, the reason is known
    assert [each.status for each in outcome.results] == [Status.FAILED, Status.SKIPPED]


def test_what_was_not_begun_is_named(monkeypatch):
    late = [catalogue.find(*names) for names in (("norm", "warp"), ("multiply", "jax"), ("multiply", "warp"))]
    monkeypatch.setattr(comparing.Comparison, "measure", lambda self, *_, **__: Outcome(late=[*late, *late]))
    _, err = invoked("compare")
    minutes = comparing.MINUTES_ON_GPU if machine.gpus() else comparing.MINUTES
    assert f"Not begun, as {minutes} minutes were over: norm in warp; multiply in jax, warp. --all measures" in err


@pytest.mark.parametrize(
    ("arguments", "is_brief"),
    [((), True), (("--all",), False), (("multiply",), False), (("-t", "numpy"), False), (("--lane", "tuned"), False)],
)
def test_only_if_nothing_was_chosen_something_is_left_out(arguments, is_brief, monkeypatch):
    seen = []
    slower(monkeypatch, 1000)
    monkeypatch.setattr(comparing.Comparison, "measure", lambda self, *_, **__: seen.append(self) or Outcome())
    _, err = invoked("compare", *arguments)
    assert ("Left out, to end in time: tuned recipes; variants" in err) == is_brief
    assert ("--all measures them as well." in err) == is_brief
    techniques = {each.technique for each in seen[0].recipes}
    assert "numpy" in techniques and ("cupy_raw" in techniques) == (arguments in (("--all",), ("multiply",)))


@pytest.mark.parametrize(
    ("arguments", "measured"),
    [
        (("training", "-t", "torch_cpu"), False),
        (("random_subset_mean", "--lane", "tuned"), False),
        (("training", "-t", "torch_cpu", "--all"), True),
        (("training", "-t", "torch_cpu", "-t", "numpy"), True),
        (("training",), True),
    ],
)
def test_numpy_comes_along_unless_that_takes_minutes(arguments, measured, monkeypatch):
    few, many = ((6_000, 64), (60_000, 64)) if arguments[0] == "training" else (4_000, 100_000)
    seen = []
    monkeypatch.setattr(comparing.Comparison, "measure", lambda self, *_, **__: seen.append(self) or Outcome())
    words = ("6000x64", "60000x64") if arguments[0] == "training" else ("4000", "100000")
    _, err = invoked("compare", *arguments, "-s", words[0], "-s", words[1])
    sizes = {recipe.technique: mine for recipe, mine in seen[0].left}
    assert sizes.pop("numpy") == [few] + [many] * measured
    assert all(others == [few, many] for others in sizes.values()) and sizes
    assert (f"Without NumPy, which takes minutes: {arguments[0]} (" in err) != measured
