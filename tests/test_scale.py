"""From one core to every GPU: what follows from the rows of ``gpu-cookbook scale``; what is planned, shown and kept."""

import contextlib
import copy
import importlib
import json
import re
import socket
from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pynvml
import pytest
import typer.testing
from cloning import rewrite
from conftest import git
from scaling import built, keep, recipe, row, timing

from gpu_cookbook import catalogue, cli, machine
from gpu_cookbook.render import scaling_tables, tables
from gpu_cookbook.run import engines, measure, runner, scale
from gpu_cookbook.scaling import EMPTY, STRONG, WEAK, WORKLOAD, Cost, ScaleError, completed, from_record, judged, record
from gpu_cookbook.store import commits
from gpu_cookbook.store import scaling as store

pytestmark = pytest.mark.usefixtures("whatever_the_rules_say")

# ---- Pure functions, on rows that are made up.


def text_of(rows):
    """The words of the tables."""
    return [" ".join(entry.text for entry in entries) for table in built(rows) for entries in table.rows]


def test_strong_scaling_is_how_much_sooner():
    _, four = completed([row(time_s=8.0), row(workers=4, time_s=2.5)])
    assert (four.gained.speedup, four.gained.efficiency, four.gained.base_workers) == (3.2, 0.8, 1)


def test_weak_scaling_is_how_much_more_in_a_time():
    _, four = completed([row(time_s=2.0), row(workers=4, time_s=2.5, mode=WEAK)])
    assert (four.gained.speedup, four.gained.efficiency, four.gained.base_workers) == (3.2, 0.8, 1)


def test_the_fewest_workers_are_the_base_where_one_is_missing():
    two, eight = completed([row(workers=2, time_s=4.0), row(workers=8, time_s=2.0)])
    assert (two.gained.speedup, two.gained.efficiency) == (1, 1)
    assert (eight.gained.speedup, eight.gained.efficiency, eight.gained.base_workers) == (2, 0.5, 2)


def test_weak_rows_have_no_base_in_strong_ones_of_several_workers():
    _, weak = completed([row(workers=2, time_s=4.0), row(workers=2, time_s=8.0, mode=WEAK)])
    assert (weak.gained.speedup, weak.gained.efficiency, weak.gained.base_workers) == (1, 1, 2)


@pytest.mark.parametrize("other", [{"technique": "joblib"}, {"kind": "GPU"}, {"size": 9}, {"chunk": 9}])
def test_another_recipe_kind_size_or_chunk_is_no_base(other):
    two, _ = completed([row(workers=2), row(**{"time_s": 9.0} | other)])
    assert two.gained.base_workers == 2


def test_a_row_that_failed_is_no_base_and_has_no_speedup():
    failed, two = completed([row(status="failed", reason="crashed"), row(workers=2)])
    assert two.gained.base_workers == 2 and failed.gain is None


def test_the_error_of_a_mean_is_its_distance_from_11():
    (one,) = completed([row(mean=10.5)])
    assert one.error == 0.5


TUNED = ("numba_cpu_tuned", "ray_cuda_tuned", "dask_cuda_tuned")


def statuses(rows):
    return [each.status for each in judged(rows)]


UNKNOWN = {"rows": 4_001}  # an array of which no mean is stored


def test_a_tuned_row_that_disagrees_is_failed_and_says_both_values():
    rows = [row(TUNED[0], **UNKNOWN), row(TUNED[1], mean=11 + 1e-9, **UNKNOWN), row(TUNED[2], **UNKNOWN)]
    assert statuses(rows) == ["ok", "failed", "ok"]
    assert repr(11 + 1e-9) in judged(rows)[1].reason and "11.0" in judged(rows)[1].reason


def test_where_none_is_of_more_than_half_all_tuned_rows_are_failed():
    rows = judged([row(TUNED[0], **UNKNOWN), row(TUNED[1], mean=12.0, **UNKNOWN)])
    assert {each.status for each in rows} == {"failed"}
    assert all("11.0" in each.reason and "12.0" in each.reason for each in rows)


@pytest.mark.parametrize("array", [{}, UNKNOWN])
def test_tuned_rows_may_differ_by_their_last_digits(array):
    mean = row(TUNED[0], **array).mean
    rows = [row(TUNED[0], **array), row(TUNED[1], mean=mean + 5e-12, **array), row(TUNED[2], **array)]
    assert set(statuses(rows)) == {"ok"}


def test_two_wrong_tuned_rows_do_not_outvote_the_right_one():
    right = row(TUNED[0])
    rows = [right, row(TUNED[1], mean=11.1), row(TUNED[2], mean=11.1)]
    assert statuses(rows) == ["ok", "failed", "failed"]
    assert f"the mean is 11.1, but that of the samples of this lane is {right.mean!r}" == judged(rows)[1].reason


def test_a_wrong_tuned_row_alone_is_failed():
    assert statuses([row(TUNED[1], mean=11.0)]) == ["failed"]


def test_what_was_not_compared_with_a_reference_says_so():
    (words,) = text_of([row(TUNED[0], **UNKNOWN)])
    assert words.endswith("mean not compared with a reference")
    assert record(row(TUNED[0], **UNKNOWN))["compared_with_reference"] is False
    assert "compared" not in " ".join([*text_of([row(TUNED[0])]), *text_of([row()])])
    assert "compared_with_reference" not in record(row(TUNED[0]))


@pytest.mark.parametrize(
    "other",
    [{"technique": "ray", "shared_samples": False}, {"shared_samples": False}, {"rows": 4_001}, {"columns": 4_001}],
)
def test_other_samples_may_have_another_mean(other):
    rows = [row(TUNED[0]), row(TUNED[0], workers=2), row(**{"technique": TUNED[1], "mean": 11.1} | other)]
    assert set(statuses(rows)) == {"ok"}


@pytest.mark.parametrize(("most", "numbers"), [(0, []), (1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])])
def test_doublings_end_with_the_most(most, numbers):
    assert scale.doublings(most) == numbers


def test_weak_problems_have_the_rows_of_every_worker():
    problems = scale.Work(4000, weak=True).problems(3)
    assert problems == {STRONG: (4000, 4000, 1000), WEAK: (12_000, 4000, 1000)}


@pytest.mark.parametrize("workers", [1, 0])
def test_one_worker_or_an_unknown_number_has_no_weak_problem(workers):
    assert scale.Work(4000, weak=True).problems(workers).keys() == {STRONG}


def test_strong_problems_have_the_chunk_that_was_asked_for():
    assert scale.Work(4000, chunk=77).problems(3) == {STRONG: (4000, 4000, 77)}


def test_a_lost_worker_is_said():
    assert text_of([row(lost=1)])[0].endswith("1 worker lost")
    assert text_of([row(lost=2)])[0].endswith("2 workers lost")


def test_a_failed_row_has_its_reason():
    (words,) = text_of([row(workers=2, status="failed", reason="crashed: SIGSEGV")])
    assert words.split() == ["ray", "idiomatic", "2", "cores", "failed", "crashed:", "SIGSEGV"]


def test_a_row_says_where_and_how_fast():
    (words,) = text_of([row(workers=1, time_s=0.25)])
    assert words.split()[:7] == ["ray", "idiomatic", "1", "core", "250", "ms", "1.00"]


def test_a_noisy_time_is_marked():
    (words,) = text_of([row(time=timing(1.0, 0.8, 1.1))])
    assert words.split()[4:6] == ["~1.00", "s"]


def test_no_column_is_empty():
    (table,) = built([row(), row(workers=2)])
    assert all(table.head) and all(entry.text for entries in table.rows for entry in entries)


@pytest.mark.parametrize(
    "each",
    [
        row(workers=2, mode=WEAK),
        row(TUNED[0]),
        row("dask_cuda_chunks_tuned", shared_samples=False),
        row(mode=EMPTY, cost=Cost(1e-3, None, 2e-9)),
        row(status="failed", reason="crashed"),
        row(workers=0, mode=None, status="skipped", reason="needs an NVIDIA GPU"),
    ],
    ids=["weak", "tuned", "own samples", "empty", "failed", "skipped"],
)
def test_a_row_comes_back_from_its_record(each):
    if each.mode is None:
        with pytest.raises(ValueError, match="a row has no size"):  # it is not kept
            from_record(record(each))
    else:
        assert from_record(json.loads(json.dumps(record(each)))) == each


def test_the_table_of_weak_scaling_begins_with_one_worker():
    rows = [row(), row(workers=2), row(workers=2, mode=WEAK)]
    table = next(table for table in built(rows) if table.title.startswith("Weak"))
    assert [record["workers"] for record in table.records] == [1, 2]


def test_a_skipped_recipe_has_its_reason_below():
    skipped = row("ray_cuda", workers=0, mode=None, status="skipped", reason="needs an NVIDIA GPU")
    (table,) = built([row(), skipped, replace(skipped, technique="dask_cuda")])
    assert "ray_cuda, dask_cuda: needs an NVIDIA GPU" in [note.text for note in table.notes]


def test_what_an_engine_costs_has_a_table():
    cost = row(mode=EMPTY, workers=2, cost=Cost(0.001, 2e-6, 1e-9))
    assert text_of([cost]) == ["Ray, tasks ray 2 cores 1.00 ms 2.00 µs 1.00 GB/s"]


def test_an_engine_whose_cost_failed_has_its_reason_below():
    rows = [row(), row(mode=EMPTY, status="failed", reason="ImportError: no luck")]
    assert any("ray: ImportError: no luck" in note.text for table in built(rows) for note in table.notes)


def test_a_plan_has_each_recipe_on_each_number_of_cores():
    runs, skipped = scale.plan([recipe("numpy"), recipe("joblib")], [1, 2], [], {}, {})
    assert [(run.recipe.technique, run.on) for run in runs] == [
        ("numpy", "1 core"),
        ("joblib", "1 core"),
        ("joblib", "2 cores"),
    ]
    assert skipped == []


def test_a_plan_has_each_recipe_on_each_number_of_gpus(monkeypatch):
    monkeypatch.setattr(machine, "obstacle", lambda recipe: None)
    runs, _ = scale.plan([recipe("ray_cuda_tuned")], [1, 2], [1, 4], {}, {})
    assert [run.on for run in runs] == ["1 GPU", "4 GPUs"]


def behind_address(monkeypatch, technique, gpus, **behind):
    """The plan of a recipe behind an address, where everything is installed, on a machine with so many GPUs."""
    monkeypatch.setattr(machine, "gpus", lambda: GPUS[:gpus])
    monkeypatch.setattr(machine, "installed", lambda package: True)
    return scale.plan([recipe(technique)], [1, 2], [1, 2], {"Ray": "127.0.0.1:6379"}, {"Ray": behind})


@pytest.mark.parametrize(("technique", "gpus"), [("ray", 0), ("ray", 2), ("ray_cuda", 0), ("ray_cuda", 2)])
def test_a_plan_has_a_recipe_once_behind_an_address_that_has_what_it_needs(technique, gpus, monkeypatch):
    (run,), skipped = behind_address(monkeypatch, technique, gpus, CPU=(4, 0), GPU=(1, 0))
    assert (run.address, run.workers, run.kind) == ("127.0.0.1:6379", 0, "worker")
    assert skipped == []


@pytest.mark.parametrize(("technique", "kind"), [("ray", "CPU"), ("ray_cuda", "GPU")])
def test_a_plan_skips_what_nobody_can_compute_behind_an_address(technique, kind, monkeypatch):
    runs, (skipped,) = behind_address(monkeypatch, technique, 2, **{"CPU": (4, 0), "GPU": (4, 0)} | {kind: (0, 0)})
    assert runs == [] and (skipped.status, skipped.reason) == ("skipped", f"there is no {kind} behind 127.0.0.1:6379")


def test_a_plan_takes_nothing_of_others_behind_an_address(monkeypatch):
    with pytest.raises(ScaleError, match="Others are using 1 of the 4 GPUs behind 127.0.0.1:6379"):
        behind_address(monkeypatch, "ray_cuda", 0, CPU=(4, 0), GPU=(4, 1))


def test_a_plan_does_not_mind_what_others_hold_of_what_it_does_not_use(monkeypatch):
    assert len(behind_address(monkeypatch, "ray", 0, CPU=(4, 0), GPU=(4, 1))[0]) == 1


def test_a_plan_skips_what_cannot_run_here(monkeypatch):
    monkeypatch.setattr(machine, "obstacle", lambda recipe: "no such luck")
    runs, (skipped,) = scale.plan([recipe("ray")], [1], [], {}, {})
    assert runs == [] and (skipped.status, skipped.reason) == ("skipped", "no such luck")


def test_a_plan_skips_what_is_not_installed_here_whatever_is_behind_an_address(monkeypatch):
    monkeypatch.setattr(machine, "installed", lambda package: package != "cupy")
    behind = {"Ray": {"CPU": (4, 0), "GPU": (4, 0)}}
    runs, (skipped,) = scale.plan([recipe("ray_cuda")], [], [], {"Ray": "127.0.0.1:6379"}, behind)
    assert runs == [] and skipped.reason.startswith("cupy not installed: pip install ")


def test_an_engine_is_all_its_recipes():
    assert {r.technique for r in scale.recipes(["ray"])} == {
        "ray",
        "ray_cuda",
        "ray_cuda_tuned",
        "ray_tasks_cuda_tuned",
    }


def test_a_technique_is_one_recipe():
    assert [r.technique for r in scale.recipes(["ray_cuda"])] == ["ray_cuda"]


def test_a_lane_is_its_recipes():
    assert {r.lane for r in scale.recipes([], "tuned")} == {"tuned"}


def test_one_gpus_recipe_does_not_scale():
    with pytest.raises(catalogue.UnknownName):
        scale.recipes(["cupy_tuned"])


def test_an_unknown_engine_that_looks_like_none_names_all():
    with pytest.raises(catalogue.UnknownName, match="Unknown technique or engine 'nosuch'. There are: cupy, "):
        scale.recipes(["nosuch"])


def test_an_unknown_engine_names_the_nearest():
    with pytest.raises(catalogue.UnknownName, match="Unknown technique or engine 'dsak'. Did you mean dask"):
        scale.recipes(["dsak"])


def test_an_address_is_for_recipes_that_can_use_one():
    assert {r.framework for r in scale.recipes([], None, {"Dask": "tcp://127.0.0.1:1"})} == {"Dask"}
    assert "dask" not in {r.technique for r in scale.recipes([], None, {"Dask": "tcp://127.0.0.1:1"})}


# ---- Recipes that fail, in their process.


@pytest.fixture
def altered(tmp_path):
    """A function: the rows of joblib's recipe on one core, with a part of its text replaced."""

    def measure(old, new):
        path = tmp_path / "random_subset_mean" / "with_joblib.py"
        path.parent.mkdir()
        text = recipe("joblib").path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        return list(scale.measure(scale.Run(catalogue.read(path), 1), scale.Work(500)))

    return measure


def test_a_wrong_mean_fails_its_row_only(altered):
    wrong, empty = altered("sum(sums) / count", "2 * sum(sums) / count")
    assert wrong.status == "failed" and wrong.reason.endswith(" instead of 11.0")
    assert (empty.mode, empty.status) == ("empty", "ok")


@pytest.mark.parametrize(
    ("mean", "reason"), [(12.0, "12.0 instead of 11.0"), (11.0, "seed 2 gave 11.0 the first time and ")]
)
def test_one_wrong_mean_among_the_timed_calls_fails_their_row(altered, mean, reason):
    """The third of that size. 11 is a mean that other samples may have."""
    wrong, _ = altered(
        "    count = ",
        "    calls = vars(random_subset_mean).setdefault('calls', [])\n"
        "    calls.append(rows)\n"
        f"    if calls.count(500) == 3: return {mean}\n"
        "    count = ",
    )
    assert wrong.status == "failed" and wrong.reason.startswith(reason)


def test_means_that_are_kept_for_the_next_call_fail_their_row(altered):
    wrong, _ = altered(
        "    count = ",
        "    kept = vars(random_subset_mean)\n    if rows in kept: return kept[rows]\n"
        "    kept[rows] = np.random.default_rng(seed).normal(11, 1e-4)\n    return kept[rows]\n    count = ",
    )
    assert wrong.status == "failed" and wrong.reason.endswith(" seeds, several gave the same mean")


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ("raise RuntimeError('no luck')\n", "RuntimeError: no luck"),
        ("import os\nos.kill(os.getpid(), 11)\n", "crashed: SIGSEGV"),
        ("import os\nos.kill(os.getpid(), 9)\n", "killed by SIGKILL, which the system sends when memory runs out"),
    ],
)
def test_a_recipe_that_cannot_begin_fails_with_the_reason(altered, new, reason):
    (failed,) = altered("import numpy as np\n", f"import numpy as np\n{new}")
    assert (failed.mode, failed.status, failed.reason) == ("strong", "failed", reason)


def test_a_cost_that_cannot_be_measured_is_a_failed_row(altered):
    right, cost = altered("    count = ", "    import joblib\n    vars(joblib).pop('Parallel', None)\n    count = ")
    assert right.status == "ok"
    assert (cost.mode, cost.status) == ("empty", "failed") and cost.reason.startswith("ImportError")


def test_a_framework_that_nobody_has_heard_of_takes_part(tmp_path):
    """By its docstring and its own empty_round; the tool has no list that it must stand in."""
    path = tmp_path / "random_subset_mean" / "with_qux.py"
    path.parent.mkdir()
    text = recipe("numpy").path.read_text().replace("Framework: NumPy", "Framework: Qux\nEngine: Qux, swarms", 1)
    own = "def empty_round(n, payload=None):\n    sum(range(n))\n\n\n"
    path.write_text(text.replace("def random_subset_mean", own + "def random_subset_mean", 1))
    rows = completed(scale.measure(scale.Run(catalogue.read(path), 1), scale.Work(500)))
    assert [(each.mode, each.status, each.framework) for each in rows] == [(STRONG, "ok", "Qux"), (EMPTY, "ok", "Qux")]
    assert rows[1].cost.round > 0 and rows[1].cost.byte is None
    assert [table.rows[0][0].text for table in scaling_tables.build_tables(rows)] == ["qux", "Qux, swarms"]


def test_a_recipe_that_crashes_at_its_end_has_a_failed_row(altered):
    *right, afterwards = altered(
        "import numpy as np\n", "import atexit, os\nimport numpy as np\natexit.register(os.abort)\n"
    )
    assert {each.status for each in right} == {"ok"}
    assert (afterwards.status, afterwards.reason) == ("failed", "passed, then at exit: crashed: SIGABRT")


# ---- What is kept.


@pytest.fixture
def unchanged(monkeypatch):
    """Every commit has the recipes as they are."""
    monkeypatch.setattr(commits, "changed_since", lambda root, commit: frozenset())


def test_what_is_kept_is_shown_again(tmp_path, unchanged):
    keep(tmp_path, "m", [row(), row(workers=2, time_s=0.5)])
    rows = store.kept_of(tmp_path, "m")[0]
    assert [(each.workers, each.gained.speedup) for each in rows] == [(1, 1), (2, 2)]
    assert scaling_tables.source(rows) == f". m, 11111111, {rows[0].origin.date}"


def test_the_newest_of_each_row_counts(tmp_path, unchanged):
    keep(tmp_path, "m", [row(), row(workers=2, time_s=0.5)])
    keep(tmp_path, "m", [row(workers=2, time_s=0.8)], "2" * 40)
    rows = store.kept_of(tmp_path, "m")[0]
    assert {each.workers: each.time.median for each in rows} == {1: 1, 2: 0.8}
    first, second = (each.origin.date for each in sorted(rows, key=lambda each: each.workers))
    assert scaling_tables.source(rows) == f". m, 11111111, {first} and 22222222, {second}"


def test_machines_are_kept_apart(tmp_path, unchanged):
    keep(tmp_path, "m", [row()])
    keep(tmp_path, "n", [row(time_s=9.0)])
    (mine,) = store.kept_of(tmp_path, "m")[0]
    assert mine.time.median == 1


def test_environments_are_kept_apart_and_named(tmp_path, unchanged):
    keep(tmp_path, "m", [row(), row(environment="other", time_s=4.0), row(environment="other", workers=2)])
    rows = store.kept_of(tmp_path, "m")[0]
    assert [(each.name, each.workers, each.gained.speedup) for each in rows] == [
        ("ray", 1, 1),
        ("ray (other)", 1, 1),
        ("ray (other)", 2, 4),
    ]
    assert [record(each)["environment"] for each in rows] == ["main", "other", "other"]


def test_a_row_of_an_older_version_is_of_the_main_environment(tmp_path, unchanged):
    keep(tmp_path, "m", [row()])
    line = json.loads((tmp_path / store.FILE).read_text())
    del line["rows"][0]["environment"]
    (tmp_path / store.FILE).write_text(json.dumps(line) + "\n")
    assert [each.environment for each in store.kept_of(tmp_path, "m")[0]] == ["main"]


def test_a_skipped_row_is_not_kept(tmp_path, unchanged):
    keep(tmp_path, "m", [row(), row("ray_cuda", status="skipped")])
    assert len(store.kept_of(tmp_path, "m")[0]) == 1


def test_an_unknown_machine_names_the_known_ones(tmp_path, unchanged):
    keep(tmp_path, "m", [row()])
    keep(tmp_path, "n", [row()])
    with pytest.raises(ScaleError, match="No rows are stored for 'x'. There are: m, n."):
        store.kept_of(tmp_path, "x")


@pytest.mark.parametrize("line", ['{"machine": "m', "{}", "[]", '{"machine": "m", "rows": [{}]}'])
def test_a_broken_line_is_named_and_the_others_are_shown(line, tmp_path, unchanged):
    keep(tmp_path, "m", [row()])
    with (tmp_path / store.FILE).open("a") as file:
        file.write(line + "\n")
    rows, (complaint,) = store.kept_of(tmp_path, "m")
    assert len(rows) == 1 and "scale.jsonl, line 2: " in complaint


@pytest.mark.parametrize("lost", ["technique", "framework", "size", "time_s"])
@pytest.mark.parametrize("other", [{}, {"mode": "empty"}])
def test_a_row_that_lacks_something_is_named_by_its_line(lost, other, tmp_path, unchanged):
    keep(tmp_path, "m", [row()])
    line = json.loads((tmp_path / store.FILE).read_text())
    line["rows"][0] |= other
    del line["rows"][0][lost]
    with (tmp_path / store.FILE).open("a") as file:
        file.write(json.dumps(line) + "\n")
    rows, (complaint,) = store.kept_of(tmp_path, "m")
    assert len(rows) == 1
    assert re.search(rf"line 2: \['rows'\]\[0\]: \"({lost}|round_s)\" is a required property", complaint)


def test_the_fastest_are_all_named_where_their_samples_overlap():
    """In the story of the experiment."""
    about = {"size": 100_000, "chunk": 10_000, "kind": "GPU"}
    near = row("cupy_threads_tuned", time=timing(1.02, 0.99, 1.1), **about)
    far = row("joblib_cuda_tuned", time_s=1.5, **about)
    first = row("torch_distributed_tuned", **about)
    table = scaling_tables.story([first, near, far])
    assert table.rows[2][2].text == "1.00 s on 1 GPU: torch_distributed_tuned, cupy_threads_tuned"
    assert scaling_tables.told([near, far, first]) == [("almost 12 s on a K80", "tuned", first)]


def test_the_story_is_told_of_one_and_all_in_both_lanes():
    about = {"size": 100_000, "chunk": 10_000}
    rows = [row("dask", 1, 8.0, **about), row("dask", 4, 2.0, **about), row("dask", 1, 1.0, **about | {"chunk": 5})]
    rows += [row("numba_cpu_tuned", 2, 0.5, **about), row("numba_cpu_tuned", 1, 1.0, **about), row("joblib", **about)]
    told = [(then, lane, each.workers, each.time.median) for then, lane, each in scaling_tables.told(rows)]
    assert told == [
        ("701 s on one core", "idiomatic", 1, 8.0),
        ("701 s on one core", "tuned", 1, 1.0),
        ("55 s on 16 cores", "idiomatic", 4, 2.0),
        ("55 s on 16 cores", "tuned", 2, 0.5),
    ]
    texts = [[entry.text for entry in entries] for entries in scaling_tables.story(rows).rows]
    assert texts[1] == [
        "55 s on 16 cores",
        "2.00 s on 4 cores, 4.00 ×: dask",
        "500 ms on 2 cores, 2.00 ×: numba_cpu_tuned",
    ]
    assert texts[2] == ["almost 12 s on a K80", "–", "–"]
    rows += [row("dask_random_state", 16, 5.0, **about), row("dask_random_state", 64, 4.0, **about)]
    table = scaling_tables.story(rows)
    assert table.rows[1][1].text == "5.00 s on 16 cores: dask_random_state" and table.rows[0][1].text == "–"
    assert [note.text for note in scaling_tables.story(rows[:2]).notes][1:] == [scaling_tables.NEWER]
    (fewer,) = tables.fewer_samples([(WORKLOAD, "joblib"), (WORKLOAD, "numba_cpu_tuned")])
    assert [note.text for note in table.notes[1:]] == [fewer]
    assert fewer in [note.text for note in built(rows)[1].notes]


def test_a_kept_row_that_disagrees_is_failed(tmp_path, unchanged):
    keep(tmp_path, "m", [row(technique) for technique in TUNED[:2]])
    keep(tmp_path, "m", [row(TUNED[2], mean=11.1)])
    assert [each.status for each in store.kept_of(tmp_path, "m")[0]] == ["ok", "ok", "failed"]


def test_rows_without_a_number_of_workers_are_shown(tmp_path, unchanged):
    keep(tmp_path, "m", [row(), row(workers=0, status="failed", reason="went away")])
    rows = store.kept_of(tmp_path, "m")[0]
    assert len(scaling_tables.build_tables(rows)[0].rows) == 2


def test_nothing_is_kept_of_a_run_without_rows(tmp_path):
    keep(tmp_path, "m", [row("ray_cuda", status="skipped")])
    assert not (tmp_path / store.FILE).exists()


def test_nothing_kept_says_how_to_keep(tmp_path):
    with pytest.raises(
        ScaleError, match="No rows are stored yet. To store some: gpu-cookbook scale --save --machine m$"
    ):
        store.kept_of(tmp_path, "m")


def test_a_row_of_a_commit_that_is_not_here_is_named(clone):
    keep(clone / "benchmarks/results", "m", [row()])
    keep(clone / "benchmarks/results", "m", [row(workers=2)], git(clone, "rev-parse", "HEAD"))
    rows, (complaint,) = store.kept_of(clone / "benchmarks/results", "m")
    assert [each.workers for each in rows] == [2]
    assert "scale.jsonl, line 1: belongs to a commit that this repository does not have (11111111)" in complaint


def test_what_rests_on_a_recipe_that_has_changed_is_marked(clone):
    first = git(clone, "rev-parse", "HEAD")
    recipe = clone / "recipes/random_subset_mean/with_ray.py"
    rewrite(recipe, recipe.read_text() + "\nOTHER = 1\n")
    git(clone, "commit", "--quiet", "--all", "--message=two")
    empty = row(mode=EMPTY, cost=Cost(1e-3))
    keep(clone / "benchmarks/results", "m", [row(), empty, row("dask")], first)
    keep(clone / "benchmarks/results", "m", [row(workers=2, time_s=0.5)], git(clone, "rev-parse", "HEAD"))
    rows = store.kept_of(clone / "benchmarks/results", "m")[0]
    strong, costs = scaling_tables.build_tables(rows)
    second = git(clone, "rev-parse", "HEAD")
    of = {each.origin.commit: f"{each.origin.commit[:8]}, {each.origin.date}" for each in rows}
    assert strong.title.endswith(f"m, {of[first]} and {of[second]}")
    assert costs.title.endswith(f"m, {of[first]}")
    assert [[entry.text for entry in entries[3:6]] for entries in strong.rows] == [
        ["1.00 s", "1.00 ×", "1.00"],
        ["†1.00 s", "†1.00 ×", "†1.00"],
        ["500 ms", "†2.00 ×", "†1.00"],
    ]
    assert costs.rows[0][3].text == "†1.00 ms"


def test_a_line_that_was_cut_off_costs_itself_only(tmp_path, unchanged):
    keep(tmp_path, "m", [row()])
    with (tmp_path / store.FILE).open("a") as file:
        file.write('{"machine": "m')
    keep(tmp_path, "m", [row(workers=2)])
    runs, complaints = store.kept(tmp_path)
    assert [run.rows[0].workers for run in runs] == [1, 2] and len(complaints) == 1
    lines = (tmp_path / store.FILE).read_text().splitlines()
    (tmp_path / store.FILE).write_text("\n".join((lines[0], "", lines[2])))
    assert [each.workers for each in store.kept_of(tmp_path, "m")[0]] == [1, 2]


def test_an_end_that_failed_is_forgotten_when_the_run_is_repeated(tmp_path, unchanged):
    failed = row("numba_cpu_tuned", mode=EMPTY, status="failed", reason="passed, then at exit: crashed: SIGABRT")
    again = [row("numba_cpu_tuned", workers=2), replace(failed, workers=2)]
    keep(tmp_path, "m", [row("numba_cpu_tuned"), failed, *again])
    keep(tmp_path, "m", [row("numba_cpu_tuned", time_s=2.0)])
    rows = store.kept_of(tmp_path, "m")[0]
    assert [(each.mode, each.workers) for each in rows] == [("strong", 1), ("strong", 2), ("empty", 2)]


def test_an_empty_round_outlives_a_run_that_was_stopped_before_its_own(tmp_path, unchanged):
    keep(tmp_path, "m", [row("numba_cpu_tuned"), row("numba_cpu_tuned", mode=EMPTY, cost=Cost(1e-3))])
    keep(tmp_path, "m", [row("numba_cpu_tuned", time_s=2.0)])
    rows = store.kept_of(tmp_path, "m")[0]
    assert [(each.mode, each.timing.median if each.time else each.cost.round) for each in rows] == [
        ("strong", 2.0),
        ("empty", 1e-3),
    ]


def test_a_mean_that_was_mended_is_no_longer_against_the_others(tmp_path, unchanged):
    keep(tmp_path, "m", [row(TUNED[0], **UNKNOWN), row(TUNED[1], mean=11.1, **UNKNOWN)])
    assert {each.status for each in store.kept_of(tmp_path, "m")[0]} == {"failed"}
    keep(tmp_path, "m", [row(TUNED[1], **UNKNOWN)])
    assert {each.status for each in store.kept_of(tmp_path, "m")[0]} == {"ok"}


# ---- GPUs of someone else.


GPUS = (machine.Gpu(0, "NVIDIA H200", 150 * 10**9, (9, 0)), machine.Gpu(1, "NVIDIA T4", 16 * 10**9, (7, 5)))


@pytest.fixture
def gpus(monkeypatch):
    """Two GPUs, whose memory is free and which nobody uses; a test takes some away."""
    state = SimpleNamespace(memory=[(0, 150 * 10**9), (0, 16 * 10**9)], users=[[], []])
    monkeypatch.setattr(machine, "gpus", lambda: GPUS)
    monkeypatch.setattr(machine, "obstacle", lambda recipe: None)
    monkeypatch.setattr(machine, "host_memory_free", lambda: 64 * 10**9)
    monkeypatch.setattr(machine, "device_memory", lambda: state.memory)
    monkeypatch.setattr(machine, "processes_on_gpus", lambda: state.users)
    return state


def take(gpus):
    gpus.users[1] = ["process 4711 (python3, 3.1 GB)"]


def fill(gpus):
    gpus.memory[1] = (12 * 10**9, 4 * 10**9)


def free(size, workers=2, technique="ray_cuda", weak=False, chunk=None):
    scale.require_free_memory([scale.Run(recipe(technique), workers)], scale.Work(size, weak, chunk))


def test_free_gpus_are_taken(gpus):
    free(100_000)


def test_a_host_without_memory_is_named_with_the_numbers(gpus, monkeypatch):
    monkeypatch.setattr(machine, "host_memory_free", lambda: 4 * 10**9)
    with pytest.raises(ScaleError, match="4 GB of host memory are free, and this needs 4.8 GB, one chunk per core"):
        free(100_000, technique="ray")
    free(100_000, technique="ray", workers=1)
    free(100_000, technique="ray", chunk=5_000)
    free(100_000, technique="numba_cpu_tuned")


def test_a_gpu_of_someone_else_is_named(gpus):
    take(gpus)
    words = r"GPU 1 \(NVIDIA T4\) is in use by another program: process 4711 \(python3, 3.1 GB\)"
    with pytest.raises(ScaleError, match=words):
        free(100_000)


def test_a_gpu_without_memory_is_named_with_the_numbers(gpus):
    fill(gpus)
    words = r"GPU 1 \(NVIDIA T4\) has 4 GB free of 16 GB, and this needs 4.4 GB"
    with pytest.raises(ScaleError, match=words):
        free(100_000)


@pytest.mark.parametrize(
    "smaller",
    [{"chunk": 5_000}, {"size": 4_000, "chunk": 100_000}, {"technique": "ray_cuda_tuned"}, {"technique": "ray"}],
    ids=["chunk", "array", "tuned", "on the CPU"],
)
def test_what_needs_less_is_taken(smaller, gpus):
    fill(gpus)
    free(**{"size": 100_000} | smaller)


@pytest.mark.parametrize(("weak", "enough"), [(False, 4.5), (True, 6.9)])
def test_a_chunk_has_the_rows_of_all_workers_where_each_has_an_array(weak, enough, gpus):
    gpus.memory[0] = (0, enough * 1e9)
    free(10_000, weak=weak, chunk=20_000)
    gpus.memory[0] = (0, (enough - 0.2) * 1e9)
    with pytest.raises(ScaleError, match="or use a smaller --chunk"):
        free(10_000, weak=weak, chunk=20_000)


@pytest.mark.parametrize("change", [take, fill])
def test_a_gpu_that_is_not_used_may_be_anyones(gpus, change):
    change(gpus)
    free(100_000, workers=1)


def test_nobody_is_on_a_gpu_that_does_not_tell(monkeypatch):
    def refuse(handle):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    monkeypatch.setattr(machine, "gpus", lambda: GPUS)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: index)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetComputeRunningProcesses", refuse)
    assert machine.processes_on_gpus() == [[], []]


@pytest.mark.parametrize(("instance", "visible"), [("", "1"), ("MIG-1", "MIG-1")])
def test_a_worker_sees_the_gpu_or_the_instance_that_it_is_given(instance, visible, gpus, monkeypatch):
    """By its index in NVML, in which CUDA counts there, or by the UUID of an instance, which has none."""
    monkeypatch.setattr(machine, "gpus", lambda: (replace(GPUS[1], instance=instance), GPUS[0]))
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    started, real = [], runner.subprocess.Popen

    def start(command, **more):
        if "gpu_cookbook.run.worker" not in command:
            return real(command, **more)
        started.append(more["env"])
        raise OSError("not here")

    monkeypatch.setattr(runner.subprocess, "Popen", start)
    with pytest.raises(OSError, match="not here"):
        list(scale.measure(scale.Run(recipe("ray_cuda"), 1), scale.Work(4_000, False, None)))
    assert (started[-1]["CUDA_DEVICE_ORDER"], started[-1]["CUDA_VISIBLE_DEVICES"]) == ("PCI_BUS_ID", visible)


def test_a_quota_leaves_fewer_cores_to_scale_on(monkeypatch):
    """On more, a row would say that it had them."""
    monkeypatch.setattr(machine, "cores", lambda: 1)
    runs, _ = scale.prepare(scale.Work(2_000, False, None), ["joblib"], gpus=[])
    assert {run.workers for run in runs} == {1}
    done = typer.testing.CliRunner().invoke(cli.app, ["scale", "--cores", "2", "--gpus", "0"])
    assert (done.exit_code, done.stderr) == (2, "--cores 2: only 1 core available. For example --cores 1.\n")


@pytest.mark.parametrize(("change", "words"), [(take, "is in use by another program"), (fill, "has 4 GB free")])
def test_the_command_says_just_that(gpus, change, words):
    change(gpus)
    done = typer.testing.CliRunner().invoke(cli.app, ["scale", "--size", "100_000", "--cores", "0", "--gpus", "2"])
    assert done.exit_code == 1
    assert done.stdout == "" and done.stderr.startswith("GPU 1 (NVIDIA T4) ") and words in done.stderr
    assert done.stderr.count("\n") == 1


# ---- What an engine costs, and how it is warmed up.


@pytest.fixture
def given(monkeypatch):
    """What empty rounds were given, each of which is sampled once and takes a second."""
    monkeypatch.setattr(measure, "sample", lambda call: (call(), [1.0])[1])
    return []


def costing(monkeypatch, given, engine="joblib, processes", send=lambda payload: copy.copy(payload)):
    """What such an engine costs, whose rounds ``send`` their payload somewhere."""

    def empty_round(n, payload=None):
        given.append(payload)
        send(payload)

    monkeypatch.setitem(engines.ROUNDS, engine, lambda recipe, workers: empty_round)
    return engines.cost(replace(recipe("joblib"), engine=engine), SimpleNamespace(), 2)


def test_what_goes_to_a_task_is_in_memory_of_its_own(monkeypatch, given):
    costing(monkeypatch, given)
    sent = [payload for payload in given if isinstance(payload, np.ndarray)]
    assert sent and {payload.size for payload in sent} == {engines.PAYLOAD}
    assert all(payload.all() for payload in sent)  # zeros are one page, again and again


def test_what_is_not_sent_has_no_cost(monkeypatch, given):
    cost = costing(monkeypatch, given, send=lambda payload: None)
    assert cost.round == 1.0 and cost.byte is None
    assert not any(isinstance(payload, np.ndarray) for payload in given)


def test_a_cost_below_nothing_is_noise(monkeypatch, given):
    assert costing(monkeypatch, given) == Cost(1.0, None, None)  # every round takes a second


@pytest.mark.parametrize(
    ("technique", "workers", "moves"),
    [("dask", 2, False), ("joblib", 1, False), ("joblib", 2, True), ("multiprocessing", 1, True)],
)
def test_only_processes_are_sent_something(technique, workers, moves, given, monkeypatch):
    """By the engines themselves, as they are in a recipe's process."""
    monkeypatch.setattr(np, "ones", lambda *arguments: given.append(arguments) or b"payload")
    found = recipe(technique)
    module = importlib.import_module(found.module)
    with getattr(module, "engine", contextlib.nullcontext)():
        assert engines.cost(found, module, workers).round == 1.0
    assert bool(given) == moves


def test_an_engine_that_nobody_has_heard_of_answers_for_itself(monkeypatch, given):
    """By its docstring and its own empty_round; without one it has no cost."""
    stranger = replace(
        recipe("joblib"), framework="Qux", engine="Qux, swarms", functions={"empty_round": ("n", "payload")}
    )
    module = SimpleNamespace(empty_round=lambda n, payload=None: given.append(n))
    assert engines.cost(stranger, module, 3).round == 1.0
    assert set(given) == {3, 3 * engines.MANY, 1}
    assert engines.cost(replace(stranger, functions={}), SimpleNamespace(), 3) is None


def test_an_empty_round_that_takes_no_number_has_no_single_tasks(given, monkeypatch):
    ranks = replace(recipe("joblib"), engine="torch.distributed, NCCL", functions={"empty_round": ()})
    module = SimpleNamespace(empty_round=lambda: given.append(None))
    assert engines.cost(ranks, module, 4) == Cost(1.0)


def test_a_recipes_own_empty_round_comes_first(given):
    own = replace(recipe("joblib"), functions={"empty_round": ("n", "payload")})
    engines.cost(own, SimpleNamespace(empty_round=lambda n, payload=None: given.append(n)), 2)
    assert given


def test_every_engine_has_its_words_and_somebody_who_answers():
    for each in scale.recipes():
        assert bool(each.engine) == (each.technique not in ("numpy", "numba_cpu_tuned")), each.technique
        assert not each.engine or each.engine in engines.ROUNDS or "empty_round" in each.functions, each.technique


def test_a_task_of_ray_asks_for_what_its_recipe_needs(monkeypatch):
    asked = []
    monkeypatch.setattr("ray.remote", lambda **needs: asked.append(needs) or (lambda function: function))
    engines.ray_tasks(recipe("ray"), 2)
    engines.ray_tasks(recipe("ray_tasks_cuda_tuned"), 2)
    assert asked == [{"num_cpus": 1}, {"num_cpus": 0, "num_gpus": 1, "max_calls": 0}]


def test_dask_does_not_hash_what_goes_to_a_task(monkeypatch):
    client = mock.Mock()
    monkeypatch.setattr("distributed.default_client", lambda: client)
    engines.dask_futures(recipe("dask_processes"), 1)(1, b"payload")
    client.scatter.assert_called_once_with(b"payload", hash=False)


@pytest.mark.parametrize(
    ("technique", "workers", "rounds"),
    [("dask_processes", 64, 5), ("ray", 64, 5), ("ray_cuda_tuned", 8, 5), ("numba_cpu_tuned", 64, 5)]
    + [("ray_tasks_cuda_tuned", 1, 15), ("ray_tasks_cuda_tuned", 4, 60)],
)
def test_only_tasks_that_are_anywhere_need_many_rounds(technique, workers, rounds):
    assert engines.warm_up(recipe(technique), workers) == rounds


# ---- Engines that run already.


def test_an_engine_that_went_away_is_not_asked_again(monkeypatch):
    monkeypatch.setattr(scale.runner, "Process", lambda *_, **__: pytest.fail("a worker was started"))
    run = scale.Run(recipe("dask_processes"), 0, "tcp://127.0.0.1:1")
    (failed,) = scale.measure(run, scale.Work(4000))
    assert failed.reason == "the engine at tcp://127.0.0.1:1 can no longer be reached (Connection refused)"


def test_a_background_update_of_dasks_client_hides_no_worker():
    """It comes every two seconds by default, and here 1,000 times as often. Of that many answers of
    ``client.scheduler_info(n_workers=-1)``, several had no workers."""
    from dask import config
    from distributed import Client, LocalCluster

    alone = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with (
        config.set({"distributed.client.scheduler-info-interval": "2ms"}),
        LocalCluster(**alone) as cluster,
        Client(cluster),
    ):
        assert {len(engines.dask_places()) for _ in range(1000)} == {2}


def test_a_ray_without_cpus_has_none(monkeypatch):
    monkeypatch.setattr("ray.cluster_resources", lambda: {"GPU": 4.0, "memory": 1e9})
    assert [engines.places("Ray", kind) for kind in ("CPU", "GPU")] == [0, 4]


def test_an_engine_that_stops_listening_a_moment_after_its_work_is_lost(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = "tcp://127.0.0.1:{1}".format(*server.getsockname())
        with monkeypatch.context() as patched:
            patched.setattr(scale.time, "sleep", lambda seconds: None)
            assert scale.lost_reason(address) is None
        monkeypatch.setattr(scale.time, "sleep", lambda seconds: server.close())
        assert scale.lost_reason(address) == f"the engine at {address} can no longer be reached (Connection refused)"
