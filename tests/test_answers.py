"""Inputs and answers that the processes of a comparison share."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Probe
from gpu_cookbook.run import answers, compare, family, measure

pytestmark = pytest.mark.skipif(not family.in_memory(), reason="no file system in memory: nothing is kept")
PROBE = Probe("made up", 1e3, 2**20)  # one that is measured while other tests run may be slower than a recipe
WORKLOADS = ("convolution", "group_mean", "group_mean_strings", "matmul", "multiply", "norm", "pca", "read_parquet")


def recipe_of(workload):
    return catalogue.choose([workload], ["numpy"])[0]


@pytest.fixture
def multiply():
    return answers.place(recipe_of("multiply")), catalogue.workload_module("multiply")


@pytest.mark.parametrize("name", [*WORKLOADS, "regression", "subset_mean", "training"])
@pytest.mark.slow
def test_the_next_process_gets_the_same_and_cannot_write_to_it(name, monkeypatch):
    folder, workload = answers.place(recipe_of(name)), catalogue.workload_module(name)
    monkeypatch.setattr(answers, "LARGE", -1)
    for size in workload.EDGE_SIZES[-1], workload.SIZES[0]:
        made = measure.expected_for(workload, size, 1, folder)
        kept = answers.kept(folder, workload, size, 1)
        assert kept and kept is not made
        pairs = [*zip(made.inputs, kept.inputs, strict=True), (made.answer, kept.answer)]
        for one, other in [*pairs, (made.tolerance, kept.tolerance)]:
            assert type(one) is type(other)
            np.testing.assert_array_equal(one, other)
        assert not any(each.flags.writeable for each in kept.inputs)
        assert kept.exact == made.exact and kept.disagreement(made.answer) == made.disagreement(made.answer)
        assert not answers.kept(folder, workload, size, 2)


def test_each_is_made_once(multiply, monkeypatch):
    monkeypatch.setattr(answers, "LARGE", 0)
    folder, workload = multiply
    made = []
    counted = SimpleNamespace(**vars(workload))
    counted.inputs = lambda size, seed: made.append(seed) or workload.inputs(size, seed)
    for seed in (5, 6, 5, 6):
        measure.expected_for(counted, 40_000, seed, folder)
    measure.expected_for(counted, 40_000, 5)
    assert made == [5, 6, 5]


def test_small_arrays_are_made_anew(multiply, monkeypatch):
    folder, workload = multiply
    monkeypatch.setattr(answers, "LARGE", 4 * 40_000)
    for size in (40_000, 40_001):
        measure.expected_for(workload, size, 9, folder)
    assert answers.kept(folder, workload, 40_001, 9) and not answers.kept(folder, workload, 40_000, 9)


def test_a_mean_of_samples_is_not_kept():
    folder, workload = answers.place(recipe_of("random_subset_mean")), catalogue.workload_module("random_subset_mean")
    measure.expected_for(workload, 4_000, 1, folder)
    assert not list(Path(folder).iterdir())


def test_other_workloads_and_other_digits_have_theirs(multiply, monkeypatch):
    monkeypatch.setattr(answers, "LARGE", 0)
    folder, workload = multiply
    measure.expected_for(workload, 40_000, 1, folder)
    matmul = recipe_of("matmul")
    assert answers.place(matmul) != answers.place(replace(matmul, math="TF32, accumulated in float32"))
    assert not Path(folder).exists()


@pytest.mark.parametrize("short", ["memory", "room", "gone"])
def test_if_memory_is_short_nothing_is_kept_and_nothing_fails(multiply, monkeypatch, short):
    monkeypatch.setattr(answers, "LARGE", 0)
    folder, workload = multiply
    if short == "memory":
        monkeypatch.setattr(machine, "host_memory_free", lambda: 4 * workload.footprint(1_000_000) + 1_000)
    elif short == "room":
        monkeypatch.setattr(answers.shutil, "disk_usage", lambda _: SimpleNamespace(total=3_000_000, free=2_100_000))
    else:
        folder = f"{folder}/nowhere"
    expected = measure.expected_for(workload, 40_000, 7, folder)
    assert expected.disagreement(expected.answer) is None
    assert not answers.kept(folder, workload, 40_000, 7)


@pytest.mark.slow
def test_a_comparison_shares_them_and_leaves_none(monkeypatch):
    places, there, size = [], [], answers.LARGE // 4 + 1
    monkeypatch.setattr(compare, "check", lambda recipes, finished: compare.Outcome())
    run = compare.runner.run
    monkeypatch.setattr(
        compare.runner,
        "run",
        lambda *given, answers, **more: places.append(answers) or run(*given, answers=answers, probe=PROBE, **more),
    )

    def finished():
        there.append({path.name for path in Path(places[-1]).iterdir()} if places[-1] else set())

    recipes = catalogue.choose(["increment"], ["numpy", "torch_cpu"])
    for few in recipes, recipes[:1]:
        outcome = compare.Comparison(few, {"increment": [size]}).measure(lambda *_: None, finished, save=None)
        assert {each.status for each in outcome.results} == {"ok"}
    made = {f"{size} {seed}" for seed in range(measure.SETS + 1)}
    assert there == [made, made, set()] and places[0] == places[1] and places[2] is None
    assert not list(family.in_memory().iterdir())


def test_a_folder_of_somebody_else_is_not_used():
    assert family.in_memory().exists()
    assert family.in_memory.__wrapped__() is None


@pytest.mark.parametrize("end", [None, signal.SIGKILL])
def test_they_are_gone_when_the_command_has_ended(end):
    program = (
        "import os, sys\nfrom gpu_cookbook.run import family\nfolder = family.in_memory()\n"
        "(folder / 'array').write_bytes(bytes(99))\nprint(folder, flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        folder = Path(process.stdout.readline().strip())
        assert (folder / "array").exists()
        if end:
            os.kill(process.pid, end)
        process.communicate()
    deadline = time.monotonic() + 60
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not folder.exists()
