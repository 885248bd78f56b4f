"""benchmarks/limits.py: what it says of a figure, and where it cannot measure. Its figures are a GPU's."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import making
import pytest
import typer
from cloning import require_clone
from conftest import git
from lines import loaded
from test_store import add, commit_later

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import limits as shown
from gpu_cookbook.results import TIMED, Metric, Result, Status, Timing
from gpu_cookbook.run import compare
from gpu_cookbook.store import limits as limits_of
from gpu_cookbook.store.asv_files import Store, Writer

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "limits.py"
limits = loaded(SCRIPT)


@pytest.mark.parametrize(
    ("value", "reach", "kind", "reached"),
    [
        (0.969, 0.97, "share", "no"),
        (0.97, 0.97, "share", "yes"),
        (1.2, 0.97, "share", "yes"),
        (1.15, 1.15, "ratio", "yes"),
        (1.151, 1.15, "ratio", "no"),
        (0.1, None, "ratio", "–"),
        (None, None, "ratio", "–"),
    ],
)
def test_a_share_is_reached_from_below_and_a_ratio_from_above(value, reach, kind, reached):
    assert shown.entries(("what", "cupy_tuned", "1 µs", "2 µs", value, reach, kind), frozenset())[-1].text == reached


def test_a_ladder_goes_up_in_recipes_that_there_are():
    for workload, size, metric, techniques in shown.LADDERS:
        assert [len(catalogue.choose([workload], [technique])) for technique in techniques] == [1] * len(techniques)
        assert size in catalogue.workload_module(workload).SIZES
        assert metric in TIMED


def test_all_results_of_a_workload_are_measured_at_once_but_those_that_are_known(monkeypatch):
    asked = []

    def measure(self, *_, save):
        asked.extend((recipe.technique, size) for recipe, sizes in self.left for size in sizes)
        return compare.Outcome([result(recipe, size) for recipe, sizes in self.left for size in sizes])

    def result(recipe, size):
        return replace(Result.of(recipe, size, Status.OK), timings={Metric.RESIDENT: Timing(1e-3)})

    monkeypatch.setattr(compare.Comparison, "measure", measure)
    known = replace(result(catalogue.find("increment", "torch"), limits.LARGE), origin=making.BOX)
    results = limits.Results({known.key: known})
    for technique in ("torch", "jax"):
        assert results.get("increment", technique, limits.LARGE, "resident") == 1e-3
    assert results.get("increment", "nosuch", limits.LARGE, "resident") is None
    assert len(asked) == len(set(asked)) and ("torch", limits.LARGE) not in asked
    assert {("torch", limits.SMALL), ("jax", limits.LARGE), ("warp_tuned", limits.SMALL)} < set(asked)


def test_what_is_stored_of_the_same_code_counts_at_any_commit_and_is_named(clone, monkeypatch, capsys):
    gpu = machine.Gpu(0, "NVIDIA H100", 2**36, (9, 0))
    monkeypatch.setattr(machine, "nvidia", lambda: machine.Nvidia("580.1", (13, 0), (gpu,)))
    monkeypatch.setattr(machine, "clock", lambda: "1,980 MHz")
    add(Writer(Store(), "m"), "torch", limits.LARGE, median=0.1, device=gpu.name, driver="580.1")
    first = git(clone, "rev-parse", "HEAD")
    commit_later(clone)

    def rows(known):
        assert limits.Results(known).get("multiply", "torch", limits.LARGE, "resident") == pytest.approx(0.1)
        yield "multiply 2**28", "torch", "100 ms", "–", None, None, "ratio"

    asked = []
    monkeypatch.setattr(
        compare.Comparison, "measure", lambda self, *_, save: asked.extend(self.left) or compare.Outcome()
    )
    monkeypatch.setattr(limits, "rows", rows)
    monkeypatch.setattr(limits, "FILE", clone / "benchmarks/results/limits.jsonl")
    monkeypatch.setattr(limits, "ROOT", clone)
    limits.main(save="m", stored=False)
    assert f"  1 result is already stored: 1 of commit {first[:8]}, " in capsys.readouterr().err
    assert limits.LARGE not in {recipe.technique: sizes for recipe, sizes in asked}["torch"]


def test_each_machine_has_its_last_line_and_only_differing_targets_are_set_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(shown, "ladders", lambda results, name: ())
    monkeypatch.setattr(limits_of.commits, "changed_since", lambda *_: frozenset({"recipes/norm/with_cupy.py"}))
    line = json.loads(limits.FILE.read_text().splitlines()[-1])
    near = ("matmul 200", "cupy_tuned", "9 µs", "10 µs: PyTorch", 0.9, 1.0, "ratio")
    far = (*near[:4], 1.1, *near[5:])
    same = ("multiply 2**28", "torch", "1 GB/s", "2 GB/s: a copy", 0.5, 0.97, "share")
    changed = ("norm 2**28", "cupy", "3 µs")
    stale = [(*changed, "5 µs: a copy", value, 0.9, "share") for value in (0.8, 1.0)]
    lines = [("one", [near, same]), ("other", [near, same, stale[0]]), ("one", [far, same, stale[1]])]
    folder = tmp_path / "benchmarks" / "results"
    (folder / "other").mkdir(parents=True)
    for day, (name, rows) in enumerate(lines, 10):  # that of the other came in, in its own folder
        file = folder / ("other" if name == "other" else "") / limits_of.FILE
        file.open("a").write(json.dumps(line | {"machine": name, "rows": rows, "date": f"2026-11-{day}"}) + "\n")
    last, complaints = limits_of.kept(folder)
    assert ([*last], complaints) == (["other", "one"], [])
    expected = {"matmul 200", "cupy_tuned", "≤ 1.00", "0.900 ×", "yes", "1.10 ×", "no"}
    assert [{entry.text for entry in row} for row in shown.apart(last).rows] == [expected]
    table, _ = shown.of_machine(last["other"], [])
    assert [row[-1].text for row in table.rows] == ["yes", "no", "no"]
    assert [row[2].text for row in table.rows] == ["9 µs", "1 GB/s", "†3 µs"]
    table, _ = shown.of_machine(last["one"], [])
    assert [row[-1].text for row in table.rows] == ["no", "no", "yes"]


def test_without_a_gpu_it_says_so(tmp_path):
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, SCRIPT], cwd=tmp_path, capture_output=True, text=True, env=hidden)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "The limits are those of an NVIDIA GPU, but this machine has none.\n"


def test_what_is_stored_is_shown_in_a_clone_and_nothing_is_measured_then(tmp_path, capsys):
    require_clone()
    done = subprocess.run([sys.executable, SCRIPT, "--show"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and "run this command inside a clone" in done.stderr
    with pytest.raises(typer.Exit) as ended:
        limits.main(save="m", stored=True)
    assert ended.value.exit_code == 2 and capsys.readouterr().err == "--show measures nothing: omit --save.\n"


def test_if_no_line_can_be_used_it_does_not_say_that_there_is_none(monkeypatch, capsys):
    monkeypatch.setattr(limits, "kept", lambda folder: ({}, ["3 lines belong to commits that are not here"]))
    with pytest.raises(typer.Exit) as ended:
        limits.main(stored=True)
    assert ended.value.exit_code == 1
    assert capsys.readouterr() == ("", "3 lines belong to commits that are not here\n")
    monkeypatch.setattr(limits, "kept", lambda folder: ({}, []))
    with pytest.raises(typer.Exit) as ended:
        limits.main(stored=True)
    assert ended.value.exit_code == 2 and "Nothing is stored in " in capsys.readouterr().err


def test_what_was_measured_before_ctrl_c_is_shown_and_not_stored(clone, results, monkeypatch, capsys):
    def rows(known):
        yield "multiply 2**28", "torch", "100 ms", "–", None, None, "ratio"
        raise KeyboardInterrupt

    gpu = machine.Gpu(0, "NVIDIA H100", 2**36, (9, 0))
    monkeypatch.setattr(machine, "nvidia", lambda: machine.Nvidia("580.1", (13, 0), (gpu,)))
    monkeypatch.setattr(limits, "rows", rows)
    monkeypatch.setattr(limits, "FILE", results / "limits.jsonl")
    monkeypatch.setattr(limits, "ROOT", clone)
    with pytest.raises(typer.Exit) as ended:
        limits.main(save="m", stored=False)
    out, err = capsys.readouterr()
    assert ended.value.exit_code == 130 and "100 ms" in out and err == "Stopped early: this was not stored.\n"
    assert not (results / "limits.jsonl").exists()


def test_a_row_whose_recipe_was_removed_is_left_out():
    assert shown.is_there(("multiply 40,000", "cupy_tuned"))
    assert shown.is_there(("matmul 200, device", "an empty kernel"))
    assert shown.is_there(("launch and synchronise of an empty kernel", "pycuda"))
    for removed in ("nosuch_tuned", "nosuch"):
        assert not shown.is_there(("multiply 40,000", removed))


def test_a_row_about_host_arrays_is_left_out():
    assert not shown.is_there(("matmul 200, from any host arrays", "cupy_transfer_tuned"))


def test_a_row_whose_recipe_has_changed_is_marked():
    row = ("multiply 2**28", "cupy_tuned", "4,379 GB/s", "4,362 GB/s: PyTorch", 1.0, 0.97, "share")
    assert shown.entries(row, frozenset())[2].text == "4,379 GB/s"
    assert shown.entries(row, frozenset({"recipes/multiply/with_cupy_tuned.py"}))[2].text == "†4,379 GB/s"
    assert (
        shown.entries(("cuBLAS", *row[1:]), frozenset({"recipes/multiply/with_cupy_tuned.py"}))[2].text == "4,379 GB/s"
    )
