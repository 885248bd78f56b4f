"""Stored results: asv's own programs read them, and nothing that happens on the way loses any."""

import errno
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import drawing
import pytest
from cloning import require_clone, rewrite
from conftest import HANG, UNPROBED, git, invoked
from scaling import keep, row

from gpu_cookbook import catalogue, cli, machine
from gpu_cookbook.results import FirstResult, Metric, Result, Run, Status, Timing
from gpu_cookbook.run import compare, measure
from gpu_cookbook.store import asv_files as store
from gpu_cookbook.store import commits
from gpu_cookbook.store.selecting import select

ROOT = Path(__file__).parents[1]
ASV = Path(sys.executable).with_name("asv")


def recipe(technique, workload="multiply"):
    return catalogue.choose([workload], [technique])[0]


def result(technique, size, status="ok", reason=None, median=1e-5, workload="multiply", **changes):
    """As runner.run yields it: fifteen samples around the median, where it is ok."""
    blank = Result.of(recipe(technique, workload), size, Status(status), reason)
    if status == "ok":
        samples = [median * (1 + 0.01 * (i - 7)) for i in range(15)]
        timings = {Metric.RESIDENT: Timing.of(samples), Metric.TRANSFER: Timing.of([2 * s for s in samples])}
        known = {"device": "AMD EPYC, 2 cores", "copy_bandwidth": 50.0, "cache_bytes": 2**20, "timings": timings}
        known |= {"versions": machine.versions(recipe(technique, workload).packages)}
        blank = replace(blank, **known)
    return replace(blank, **changes)


def commit_later(clone):
    """Git's dates are whole seconds, and the newest commit is that of the latest date."""
    date = int(git(clone, "show", "--no-patch", "--format=%ct")) + 10
    git(clone, "commit", "--quiet", "--allow-empty", "--message=next", GIT_COMMITTER_DATE=f"@{date} +0000")


def add(writer, technique, size, *status, **more):
    each = result(technique, size, *status, **more)
    writer.add(recipe(technique, each.workload), each)


def stored(*wrong):
    """{(workload, technique, size): result}. ``wrong``: how the complaints begin."""
    results, complaints = store.Store().load()
    assert [complaint.startswith(words) for complaint, words in zip(complaints, wrong, strict=True)] == [True] * len(
        wrong
    )
    return {each.work: each for each in results}


def test_what_is_stored_is_loaded(clone):
    writer = store.Writer(store.Store(), "m")
    add(writer, "numpy", 40_000, first=FirstResult(0.25))
    add(writer, "numpy", 1_000_000, "failed", "1 of 1 elements are wrong", device="AMD EPYC, 2 cores")
    add(writer, "cupy", 40_000, "skipped", "no GPU")
    found = stored()
    assert set(found) == {("multiply", "numpy", 40_000), ("multiply", "numpy", 1_000_000), ("multiply", "cupy", 40_000)}
    right = found["multiply", "numpy", 40_000]
    assert (right.status, right.device, right.origin.machine) == ("ok", "AMD EPYC, 2 cores", "m")
    times = [right.value(metric) for metric in (Metric.RESIDENT, Metric.TRANSFER, Metric.FIRST)]
    assert times == [pytest.approx(1e-5), pytest.approx(2e-5), 0.25]
    timing = right.timings[Metric.RESIDENT]
    assert timing.ci99[0] < timing.q1 < timing.median < timing.q3 < timing.ci99[1]
    assert timing.count == 15
    assert right.versions.startswith("Python ") and "numpy " in right.versions
    assert right.origin.commit == git(clone, "rev-parse", "HEAD") and right.stale is False
    assert (right.copy_bandwidth, right.cache_bytes, right.math) == (50, 2**20, "IEEE")
    failed, skipped = found["multiply", "numpy", 1_000_000], found["multiply", "cupy", 40_000]
    assert (failed.status, failed.reason) == ("failed", "1 of 1 elements are wrong")
    assert (skipped.status, skipped.reason) == ("skipped", "no GPU")


def test_tables_of_what_nobody_has_measured_say_how_to(clone):
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    for asked in (["norm"], ["norm", "--machine", "m"], ["norm", "-t", "cupy"]):
        said = invoked("tables", *asked, code=2)[1]
        compare = " ".join(word for word in asked if word not in ("--machine", "m"))
        assert f"No results of these are stored yet. To store some: gpu-cookbook compare {compare} --save" in said


def test_numpy_alone_is_no_result_of_another_technique(clone):
    for technique in ("numpy", "cupy"):
        add(store.Writer(store.Store(), "m"), technique, 40_000)
    add(store.Writer(store.Store(), "n"), "numpy", 40_000)
    said = invoked("tables", "multiply", "-t", "torch", code=2)[1]
    assert said == (
        "No results of these are stored yet. To store some: gpu-cookbook compare multiply -t torch --save\n"
    )
    said = invoked("tables", "multiply", "--lane", "tuned", code=2)[1]
    assert said.endswith("To store some: gpu-cookbook compare multiply --lane tuned --save\n")
    said = invoked("tables", "multiply", "-t", "cupy", "--machine", "n", code=2)[1]
    assert said == "n has no results of multiply -t cupy.\n"


def test_what_has_no_results_beside_others_is_named(clone):
    add(store.Writer(store.Store(), "m"), "cupy", 40_000)
    out, said = invoked("tables", "multiply", "norm", "-t", "torch", "-t", "cupy")
    assert "multiply, resident" in out
    told = "None of these results is of {}. To store some: gpu-cookbook compare {} --save\n"
    assert said == told.format("norm", "norm -t torch -t cupy") + told.format("torch", "multiply norm -t torch")
    assert invoked("tables", "multiply", "-t", "cupy")[1] == ""


def test_a_name_with_other_results_says_which(clone):
    writer = store.Writer(store.Store(), "m")
    add(writer, "numpy", 40_000, workload="increment")
    add(writer, "numpy", 40_000, workload="norm")
    commit = git(clone, "rev-parse", "HEAD")
    commit_later(clone)
    add(store.Writer(store.Store(), "n"), "numpy", 40_000)
    for option, name in (("--machine", "m"), ("--commit", commit)):
        said = invoked("tables", "multiply", option, name, code=2)[1]
        assert said == f"{name} has no results of multiply; it has increment, norm.\n"
    said = invoked("tables", "multiply", "--machine", "n", "--machine", "m", code=2)[1]
    assert said == "m has no results of multiply; it has increment, norm.\n"


def test_options_that_nothing_fits_together_say_so(clone):
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    commit = git(clone, "rev-parse", "HEAD")[:8]
    commit_later(clone)
    add(store.Writer(store.Store(), "n"), "numpy", 40_000)
    newer = git(clone, "rev-parse", "HEAD")[:8]
    for asked in ("", "multiply "):
        said = invoked("tables", *asked.split(), "--machine", "n", "--commit", commit, code=2)[1]
        assert said == f"No result fits all of these: {asked}--machine n --commit {commit}. Omit one of them.\n"
    said = invoked("tables", "--machine", "n", "--commit", "0000000", code=2)[1]
    assert said == f"There are no results for commit '0000000'. There are: {newer}.\n"


def test_what_nobody_has_measured_is_measured_in_its_own_environment(clone):
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    said = invoked("tables", "group_mean", "-t", "cudf", code=2)[1]
    assert "To store some: GPU_COOKBOOK_ENVIRONMENT=rapids gpu-cookbook compare group_mean -t cudf --save" in said


def test_tables_of_everything_are_an_overview_in_a_terminal_and_all_in_a_file(clone):
    add(store.Writer(store.Store(), "one"), "numpy", 40_000)
    writer = store.Writer(store.Store(), "two")
    add(writer, "numpy", 40_000)
    add(writer, "numpy", 40_000, workload="increment")
    shown, _ = invoked("tables")
    of_one, of_two = (re.findall(rf"^([^:.\n]+).*\. {name}, ", shown, re.MULTILINE) for name in ("one", "two"))
    assert of_one == [f"multiply, {metric}" for metric in ("resident", "transfer", "bandwidth")]
    assert of_two == ["Resident time of one call at the largest size"]
    assert "Frameworks:" not in shown and "gpu-cookbook tables WORKLOAD shows every size and metric" in shown
    every = [table["title"] for table in json.loads(invoked("tables", "--format", "json")[0])]
    assert sum("two, " in title for title in every) > 5 and "Frameworks: kernels" in every
    assert "increment, resident" in invoked("tables", "increment")[0]


def test_what_the_device_could_do_is_stored_and_judged_by(clone):
    limits = {"cache_bandwidth": 300.0, "arithmetic": 40.0, "empty_kernel": 2e-6}
    writer = store.Writer(store.Store(), "m")
    add(writer, "numpy", 40_000, **limits)
    add(writer, "cupy", 40_000, device="NVIDIA H200", **limits | {"cache_bandwidth": 1.0})
    add(writer, "torch", 40_000)
    found = stored()
    right = found["multiply", "numpy", 40_000]
    assert right.ok and {name: getattr(right, name) for name in limits} == limits
    refused = found["multiply", "cupy", 40_000]
    assert refused.status == "refused"
    assert refused.reason == "resident: 48 GB/s is more than this device can do: its cache runs at 1 GB/s"
    unknown = found["multiply", "torch", 40_000]
    assert unknown.ok and {getattr(unknown, name) for name in limits} == {None}


def test_a_line_from_before_has_no_such_limits(clone):
    add(store.Writer(store.Store(), "m"), "numpy", 40_000, cache_bandwidth=1.0)
    path = clone / "benchmarks" / "results" / "m" / "runs.jsonl"
    line = json.loads(path.read_text())
    del line["cache_bandwidth_gb_per_s"]
    path.write_text(json.dumps(line) + "\n")
    assert stored()["multiply", "numpy", 40_000].ok


def test_a_replayed_call_is_stored_beside_the_resident_one(clone):
    timings = {Metric.RESIDENT: Timing.of([2e-5] * 15), Metric.PREPARED: Timing.of([1e-5] * 15)}
    add(store.Writer(store.Store(), "m"), "pyopencl_tuned", 40_000, timings=timings)
    found = stored()["multiply", "pyopencl_tuned", 40_000]
    assert (found.value(Metric.RESIDENT), found.value(Metric.PREPARED)) == (2e-5, 1e-5)


def test_another_environment_has_files_of_its_own(clone, monkeypatch):
    monkeypatch.setattr(catalogue, "environments", lambda: ["main", "other"])
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    monkeypatch.setenv(machine.VARIABLE, "other")
    add(store.Writer(store.Store(), "m"), "numpy", 40_000, median=3e-5)
    results, _ = store.Store().load()
    medians = {each.environment: each.value(Metric.RESIDENT) for each in results}
    assert medians == {"main": pytest.approx(1e-5), "other": pytest.approx(3e-5)}
    shown, _ = select(results)
    assert len(shown) == 2, "one stands for the other"
    shown, _ = select(results, environments=["other"])
    assert [each.environment for each in shown] == ["other"]


def test_a_recipe_that_is_measured_again_forgets_its_other_sizes_unless_it_goes_on(clone):
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    add(store.Writer(store.Store(), "m", resume=True), "numpy", 1_000_000)
    assert len(stored()) == 2
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    assert set(stored()) == {("multiply", "numpy", 40_000)}


def test_a_run_that_goes_on_leaves_the_first_result_of_the_one_before(clone):
    add(store.Writer(store.Store(), "m"), "numpy", 40_000, first=FirstResult(0.25))
    add(store.Writer(store.Store(), "m", resume=True), "numpy", 1_000_000, first=FirstResult(0.5))
    assert stored()["multiply", "numpy", 40_000].first == FirstResult(0.25)
    add(store.Writer(store.Store(), "m", resume=True), "numpy", 40_000, first=FirstResult(0.75))
    assert stored()["multiply", "numpy", 40_000].first == FirstResult(0.75)


def test_the_first_result_of_a_larger_size_is_not_stored_without_the_smallest(clone):
    add(store.Writer(store.Store(), "m", resume=True), "numpy", 1_000_000, first=FirstResult(0.5))
    assert [(size, each.first) for (_, _, size), each in stored().items()] == [(1_000_000, None)]


def test_what_is_stored_while_all_is_read_is_not_shown_without_its_conditions(clone, monkeypatch):
    writer = store.Writer(store.Store(), "m")
    add(writer, "numpy", 40_000)
    read = store.Lines

    def read_and_store_more(folder):
        found = read(folder)
        add(writer, "torch", 40_000, copy_bandwidth=51.0)
        return found

    monkeypatch.setattr(store, "Lines", read_and_store_more)
    assert [each.copy_bandwidth for each in stored().values()] == [50]


def test_a_run_without_a_result_leaves_no_folder(clone):
    writer = store.Writer(store.Store(), "m")
    folder = clone / "benchmarks/results/m"
    assert not folder.exists()
    add(writer, "numpy", 40_000)
    store.Writer(store.Store(), "m")
    assert len([*folder.iterdir()]) == 3


@pytest.mark.parametrize("full", ["shutil.copyfile", "gpu_cookbook.store.journal.append"])
def test_on_a_full_disk_what_was_stored_stays_as_it_was(full, clone, monkeypatch):
    add(store.Writer(store.Store(), "m"), "numpy", 40_000, doubts={Metric.RESIDENT: "other programs were busy"})
    folder = clone / "benchmarks/results/m"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk, pytest.raises(OSError, match="No space left"):
        disk.setattr(full, fail)
        add(store.Writer(store.Store(), "m", resume=True), "numpy", 40_000, median=2e-5)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_line_whose_values_never_came_into_asvs_file_does_not_count(clone):
    """The run that wrote it was killed before."""
    writer = store.Writer(store.Store(), "m")
    add(writer, "numpy", 40_000, doubts={Metric.RESIDENT: "other programs were busy"})
    for lost in (result("numpy", 40_000, median=2e-5), result("numpy", 40_000, "failed", "no memory")):
        store.runs.record(clone / "benchmarks/results/m", lost, writer.commit, writer.environment)
        (found,) = stored().values()
        assert (found.status, found.value(Metric.RESIDENT)) == ("ok", pytest.approx(1e-5))
        assert found.doubts == {Metric.RESIDENT: "other programs were busy"}


def test_a_size_that_was_blanked_is_not_an_old_failure(clone):
    """A comparison of another size blanks this one."""
    writer = store.Writer(store.Store(), "m")
    add(writer, "numpy", 40_000, "failed", "no memory")
    add(writer, "numpy", 40_000)
    add(store.Writer(store.Store(), "m"), "numpy", 1_000_000)
    assert [size for _, _, size in stored()] == [1_000_000]


def test_what_a_killed_run_left_is_removed(clone):
    writer = store.Writer(store.Store(), "m")
    add(writer, "numpy", 40_000)
    left = (
        clone / ".asv/unsaved/m",
        clone / "benchmarks/results/.benchmarks.json.new",
        clone / "benchmarks/results/m/.x.json.new",
    )
    left[0].mkdir(parents=True)
    for path in left[1:]:
        path.write_text("{")
    add(writer, "numpy", 1_000_000)
    assert not any(path.exists() for path in left)
    assert len(stored()) == 2


def test_what_is_skipped_for_once_leaves_what_was_measured(clone):
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    add(store.Writer(store.Store(), "m"), "numpy", 40_000, "skipped", "not here")
    assert stored()["multiply", "numpy", 40_000].value(Metric.RESIDENT) == pytest.approx(1e-5)


def test_a_size_that_fails_has_no_metrics(clone):
    writer = store.Writer(store.Store(), "m")
    add(writer, "numpy", 40_000, "failed", "wrong")
    path = next((clone / "benchmarks/results/m").glob("*-existing*.json"))
    path.write_text(
        path.read_text().replace(
            '"workloads.multiply.time_resident": [[null', '"workloads.multiply.time_resident": [[1e-05'
        )
    )
    assert stored()["multiply", "numpy", 40_000].status == "failed"


def test_what_no_device_can_do_is_refused_when_asv_ran_it_too(clone):
    impossible = 12 * 1_000_000 / 80e9  # seconds for 80 GB/s, where a copy runs at 50
    add(store.Writer(store.Store(), "m"), "numpy", 1_000_000, median=impossible)
    found = stored()["multiply", "numpy", 1_000_000]
    assert found.status == "refused" and "more than this device can do" in found.reason


def test_metrics_of_another_meaning_are_stale_or_not_shown(clone, monkeypatch):
    writer = store.Writer(store.Store(), "m")
    add(writer, "numpy", 40_000)
    monkeypatch.setattr(measure, "VERSION", "newer")
    assert [each.stale for each in stored().values()] == [True] and writer.done() == {}
    monkeypatch.setattr(measure, "VERSIONS", ("newer",))
    assert stored() == {}


def test_only_what_is_whole_and_of_these_versions_is_done(clone, monkeypatch):
    writer = store.Writer(store.Store(), "m")
    add(writer, "numpy", 40_000)
    add(writer, "torch", 40_000, timings={}, first=FirstResult(1.0))
    assert set(writer.done()) == {("multiply", "numpy", 40_000, "main")}
    monkeypatch.setattr(machine, "versions", lambda packages: "Python 9")  # cached: an upgrade means another process
    assert writer.done() == {}


def test_what_was_measured_at_another_commit_is_done_until_its_code_changes(clone):
    writer = store.Writer(store.Store(), "m")
    add(writer, "numpy", 40_000)
    add(writer, "torch", 40_000)
    add(store.Writer(store.Store(), "another"), "numpy", 1_000_000)
    commit_later(clone)
    add(store.Writer(store.Store(), "m", resume=True), "torch", 40_000, "skipped", "no GPU is visible")
    done = store.Writer(store.Store(), "m", resume=True).done()
    assert {key[1:3] for key in done} == {("numpy", 40_000), ("torch", 40_000)}
    rewrite(clone / "recipes/multiply/with_numpy.py", "print(1)\n")
    commits.changed_since.cache_clear()
    assert {key[1:3] for key in writer.done()} == {("torch", 40_000)}


def test_what_was_doubtful_at_another_commit_is_measured_again(clone):
    doubts = {Metric.RESIDENT: "another program ran"}
    add(store.Writer(store.Store(), "m"), "numpy", 40_000, doubts=doubts)
    assert {key[1] for key in store.Writer(store.Store(), "m").done()} == {"numpy"}
    commit_later(clone)
    add(store.Writer(store.Store(), "m", resume=True), "torch", 40_000)
    assert {key[1] for key in store.Writer(store.Store(), "m").done()} == {"torch"}


def test_a_newer_result_of_other_code_does_not_hide_what_is_done(clone, monkeypatch):
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    mine = git(clone, "rev-parse", "HEAD")
    commit_later(clone)
    add(store.Writer(store.Store(), "m", resume=True), "numpy", 40_000)
    there = git(clone, "rev-parse", "HEAD")
    changed = {there: frozenset({"recipes/multiply/with_numpy.py"})}
    monkeypatch.setattr(store, "changed_since", lambda root, commit, until=None: changed.get(commit, frozenset()))
    assert {each.stored.commit for each in store.Writer(store.Store(), "m").done().values()} == {mine}


def test_what_another_driver_ran_is_measured_again(clone, monkeypatch):
    writer = store.Writer(store.Store(), "m")
    add(writer, "numpy", 40_000)
    add(writer, "torch", 40_000, device="NVIDIA H100", driver="580.1")
    assert {key[1] for key in writer.done()} == {"numpy", "torch"}
    monkeypatch.setattr(machine, "nvidia", lambda: machine.Nvidia("590.1", (13, 1), ()))
    assert {key[1] for key in writer.done()} == {"numpy"}


def test_a_line_of_conditions_that_was_cut_off_takes_no_other_along(clone):
    writer = store.Writer(store.Store(), "m")
    (clone / "benchmarks/results/m").mkdir()
    (clone / "benchmarks/results/m/runs.jsonl").write_text('{"commit": "12", "ver')
    add(writer, "numpy", 40_000)
    found = stored("benchmarks/results/m/runs.jsonl, line 1: is not JSON, or is cut off")
    assert found["multiply", "numpy", 40_000].device == "AMD EPYC, 2 cores"


def asv(*arguments):
    done = subprocess.run([ASV, *arguments], capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_asv_shows_compares_and_publishes_it(clone):
    for median in (1e-5, 3e-5):
        writer = store.Writer(store.Store(), "m")
        for size in (40_000, 1_000_000):
            add(writer, "numpy", size, median=median)
        git(clone, "add", "--all")
        git(clone, "commit", "--quiet", "--allow-empty", "--message=next")
    older, newer = git(clone, "rev-parse", "HEAD~2"), git(clone, "rev-parse", "HEAD~1")
    other = store.Writer(store.Store(), "other")  # which has no results of both commits
    add(other, "numpy", 40_000)
    assert "10.0±0.3μs" in asv("show", older)
    compared = asv("compare", "--only-changed", older, newer)
    assert "time_resident('numpy', 40000)" in compared
    assert not re.search("[0-9]{9}", compared), "numbers that are no metrics"
    asv("publish")
    graphs = json.loads((clone / ".asv/html/index.json").read_text())["benchmarks"]
    assert "workloads.multiply.time_resident" in graphs


def test_in_asv_nothing_with_a_single_sample_gets_better_or_worse(clone):
    for seconds in (1.0, 3.0):
        once = {"first": FirstResult(seconds), "peak_memory": round(seconds)}
        each = result("numpy", 40_000, median=seconds, **once)
        each = replace(each, timings=each.timings | {Metric.TRANSFER: Timing.of([seconds])})
        store.Writer(store.Store(), "m").add(recipe("numpy"), each)
        commit_later(clone)
    once = {"time_transfer", "track_first_result", "track_peak_device_memory"}
    compare = ("compare", git(clone, "rev-parse", "HEAD~2"), git(clone, "rev-parse", "HEAD~1"))

    def named(*options):
        return {*re.findall(r"multiply\.(\w+)\('numpy'", asv(*compare, *options))}

    assert named("--only-changed") == {"time_resident"}
    assert named("--only-changed", "--no-stats") == {"time_resident", *once}
    assert "~3.00" in asv(*compare)


@pytest.mark.slow
def test_asv_runs_the_suite_and_its_results_are_loaded(clone):
    asv("machine", "--yes", "--machine", "m")
    commit = git(clone, "rev-parse", "HEAD")
    wanted = r"increment.*'(numpy|cupy)'(, 40000)?\)"
    asv("run", "--environment", "existing", "--set-commit-hash", commit, "--machine", "m", "--bench", wanted)
    numpy = stored()["increment", "numpy", 40_000]
    assert numpy.ok and numpy.device.endswith("cores") and "numpy" in numpy.versions
    assert 0 < numpy.value(Metric.RESIDENT) < numpy.value(Metric.FIRST)
    assert numpy.timings[Metric.RESIDENT].count >= 10
    assert Metric.DEVICE not in numpy.timings
    assert numpy.error == 0
    assert numpy.copy_bandwidth and numpy.runs[Metric.ERROR]  # a time may be doubtful, if the machine is busy
    assert ("increment", "cupy", 40_000) not in stored() or machine.obstacle(recipe("cupy")) is None
    # It is where compare --save would have put it, and tells nobody where that was.
    writer = store.Writer(store.Store(), "m")
    assert numpy.origin.environment == writer.environment and writer.done().keys() >= {numpy.key}
    for path in (clone / "benchmarks" / "results" / "m").iterdir():
        assert not any(str(place) in path.read_text() for place in (clone, sys.prefix, Path(sys.executable).parent))


def test_the_suite_has_every_recipe(clone):
    benchmarks = store.Writer(store.Store(), "m").benchmarks
    for workload in catalogue.workloads():
        technique, sizes = benchmarks[f"workloads.{workload}.time_resident"]["params"]
        assert technique == [repr(r.technique) for r in catalogue.choose([workload])]
        assert sizes == [repr(size) for size in catalogue.workload_module(workload).SIZES]
    assert {b["unit"] for b in benchmarks.values()} == {"seconds", "bytes", "relative"}


def add_one(technique):
    add(store.Writer(store.Store(), "m"), technique, 40_000)


def test_two_runs_at_once_lose_nothing(clone):
    techniques = ["numpy", "torch", "dask", "joblib", "ray", "pyopencl"]
    with ProcessPoolExecutor(6) as pool:
        list(pool.map(add_one, techniques))
    assert {technique for _, technique, _ in stored()} == set(techniques)


ENDLESS = """
import sys
sys.path.insert(0, {tests!r})
from test_store import add, store
writer = store.Writer(store.Store(), "m")
while True:
    for technique in ("numpy", "torch", "dask"):
        add(writer, technique, 40_000)
        print(technique, flush=True)
"""


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_what_was_stored(clone):
    for _ in range(5):
        run = subprocess.Popen(
            [sys.executable, "-c", ENDLESS.format(tests=str(ROOT / "tests"))], stdout=subprocess.PIPE, text=True
        )
        assert run.stdout.readline() == "numpy\n"
        time.sleep(random.uniform(0, 0.2))
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        assert ("multiply", "numpy", 40_000) in stored()


def test_a_broken_cut_off_or_foreign_file_is_named_and_the_rest_is_shown(clone):
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    folder = clone / "benchmarks" / "results" / "m"
    (right,) = (path for path in folder.glob("*.json") if path.name != "machine.json")
    text = right.read_text()
    (folder / "cut.json").write_text(text[: len(text) // 2])
    (folder / "foreign.json").write_text('{"version": 2, "hello": "world"}')
    (folder / "empty.json").write_text("")
    (folder / "date.json").write_text(text.replace('"date": ', '"date": "x", "d": '))
    commit = git(clone, "rev-parse", "HEAD")
    (folder / "unknown.json").write_text(text.replace(commit, "f" * 40))
    with (folder / "runs.jsonl").open("a") as file:
        file.write('{"commit": "12", "ver')
    out, err = invoked("tables", "multiply", code=1)
    assert "10.0 µs" in out
    for name in ("cut", "foreign", "empty", "date", "unknown"):
        assert f"benchmarks/results/m/{name}.json: " in err
    assert "belongs to a commit that this repository does not have (ffffffff)" in err


def test_a_shallow_clone_says_so_once(clone, monkeypatch):
    for _ in range(2):
        add(store.Writer(store.Store(), "m"), "numpy", 40_000)
        commit_later(clone)
    shared = json.loads((ROOT / "benchmarks/results/limits.jsonl").read_text().splitlines()[-1])
    (clone / "benchmarks/results/limits.jsonl").write_text(json.dumps(shared | {"machine": "m"}) + "\n")
    keep(clone / "benchmarks/results", "m", [row()], git(clone, "rev-parse", "HEAD~1"))
    git(clone, "add", "benchmarks/results")
    git(clone, "commit", "--quiet", "--message=Results")
    git(clone, "clone", "--quiet", "--depth=1", f"file://{clone}", "shallow")
    monkeypatch.chdir(clone / "shallow")
    choose = ("choose", "multiply", "-s", "1e6")
    commands = (("tables", "multiply"), ("tables", "--commit", "HEAD"), choose)
    for command in (*commands, *((*command, "--machine", "m") for command in commands)):
        _, err = invoked(*command, code=2)
        (line,) = err.splitlines()  # whatever else there is to say, fetching comes first
        assert line.startswith("benchmarks/results: 2 files belong to commits that this repository does not have (")
        assert line.endswith("). In a shallow clone, run: git fetch --unshallow")
    out, _ = invoked("verify", "benchmarks/results/m", code=1)
    assert "In a shallow clone, run: git fetch --unshallow" in " ".join(out.split()) and "Measure" not in out
    assert invoked("send", "m", code=2)[1].endswith(" git fetch --unshallow\nNothing was written.\n")
    assert invoked("scale", "--machine", "m", code=2)[1].endswith(" git fetch --unshallow\nNo rows can be used.\n")


def test_a_commit_is_named_as_git_names_it(clone):
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    git(clone, "tag", "measured")
    commit_later(clone)
    git(clone, "switch", "--quiet", "--create", "other")
    add(store.Writer(store.Store(), "m"), "numpy", 40_000, median=3e-5)
    for name, median in (("HEAD", "30.0 µs"), ("other", "30.0 µs"), ("HEAD~1", "10.0 µs"), ("measured", "10.0 µs")):
        assert median in invoked("tables", "multiply", "--commit", name)[0]
    assert "slower" in invoked("tables", "multiply", "--commit", "measured", "--commit", "HEAD")[0]
    said = invoked("tables", "multiply", "--commit", "nonsense", code=2)[1]
    assert said.startswith("There are no results for commit 'nonsense'.")


def test_a_machine_that_lost_its_facts_gets_them_at_once(clone, monkeypatch):
    monkeypatch.setattr(machine, "clock", lambda: None)
    monkeypatch.setattr(machine, "gpus", gpus("NVIDIA H200"))
    add(store.Writer(store.Store(), "m"), "torch", 40_000, device="NVIDIA H200", driver="580.1")
    path = clone / "benchmarks/results/m/machine.json"
    before = path.read_bytes()
    path.unlink()
    to_write = "Where it was measured, this writes it: gpu-cookbook compare --save --resume --machine m"
    said = invoked("send", "m", code=2)[1]
    assert said == f"benchmarks/results/m lacks machine.json, without which asv skips it. {to_write}\n"
    assert to_write in " ".join(invoked("verify", "benchmarks/results/m", code=1)[0].split())
    monkeypatch.setattr(machine, "gpus", gpus("NVIDIA H100 NVL"))
    with pytest.raises(commits.StoreError, match="m has the results of another machine, with NVIDIA H200"):
        store.Writer(store.Store(), "m", resume=True)
    assert not path.exists()
    monkeypatch.setattr(machine, "gpus", gpus("NVIDIA H200"))
    store.Writer(store.Store(), "m", resume=True)
    assert path.read_bytes() == before


def test_a_file_of_another_machine_is_named_once_and_from_the_results_on(clone):
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    shutil.copytree(clone / "benchmarks/results/m", clone / "benchmarks/results/n")
    (path,) = (clone / "benchmarks/results/n").glob("*-*.json")
    said = f"benchmarks/results/n/{path.name}: belongs to the machine m, not to n\n"
    assert invoked("tables", "multiply", code=1)[1] == said
    out, _ = invoked("verify", "benchmarks/results/n", "--format", "json", code=1)
    findings = [(one["place"], one["finding"]) for one in json.loads(out)[0]["findings"]]
    whose = [place for place, finding in findings if finding == "belongs to the machine m, not to n"]
    assert sorted(whose) == sorted([path.name, "machine.json"])


def test_a_broken_file_is_not_written_over(clone):
    writer = store.Writer(store.Store(), "m")
    add(writer, "numpy", 40_000)
    (right,) = (clone / "benchmarks/results/m").glob("*-existing*.json")
    right.write_text(right.read_text()[:100])
    with pytest.raises(store.StoreError, match=f"{right.name} cannot be used"):
        add(writer, "torch", 40_000)
    assert len(right.read_text()) == 100


def test_unknown_names_list_the_known_ones(clone):
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    _, err = invoked("tables", "--machine", "n", code=2)
    assert err == "There are no results for machine 'n'. There are: m.\n"
    add(store.Writer(store.Store(), "nvidia-h200"), "numpy", 40_000)
    for command in (["tables"], ["choose", "multiply", "-s", "7"]):
        _, err = invoked(*command, "--machine", "h200", code=2)
        assert err == "There are no results for machine 'h200'. Did you mean nvidia-h200?\n"
    _, err = invoked("tables", "--commit", "0000000", code=2)
    assert "There are: " + git(clone, "rev-parse", "HEAD")[:8] in err
    for arguments in (["choose", "multiply", "-s", "7", "--machine", ""], ["tables", "--commit", ""]):
        _, err = invoked(*arguments, code=2)  # a variable of the shell that is not set
        assert err.startswith("There are no results for ")


def test_the_first_digits_of_two_commits_name_neither():
    each = drawing.result("numpy")
    results = [replace(each, origin=replace(drawing.ORIGIN, commit=commit)) for commit in ("12ab" * 10, "12cd" * 10)]
    assert len(select(results, commits=["12ab"])[0]) == 1
    with pytest.raises(store.StoreError, match=r"^'12' may be any of these commits: 12ab12ab12ab, 12cd12cd12cd\.$"):
        select(results, commits=["12"])


def test_the_newest_commit_is_shown_or_two_side_by_side(clone):
    commits = []
    for median in (1e-5, 3e-5):
        add(store.Writer(store.Store(), "m"), "numpy", 40_000, median=median)
        commits.append(git(clone, "rev-parse", "HEAD"))
        commit_later(clone)
    out, _ = invoked("tables", "multiply", "--format", "json")
    values = {row["value_s"] for table in json.loads(out) for row in table["rows"] if row.get("metric") == "resident"}
    assert [round(value, 9) for value in values] == [3e-5]
    out, _ = invoked("tables", "--commit", commits[0][:8], "--commit", commits[1][:8], "--format", "json")
    (row,) = [row for row in json.loads(out)[0]["rows"] if row["metric"] == "resident"]
    assert row["verdict"] == "slower" and row["ratio_x"] == pytest.approx(3)


def test_two_machines_never_stand_for_one_another_unasked(clone):
    fast, slow = store.Writer(store.Store(), "fast"), store.Writer(store.Store(), "slow")
    add(fast, "numpy", 40_000, median=1e-6)
    add(slow, "numpy", 40_000, median=1e-4)
    git(clone, "commit", "--quiet", "--allow-empty", "--message=next")
    add(store.Writer(store.Store(), "slow"), "numpy", 40_000, median=1e-4)
    commits = [word for commit in ("HEAD~1", "HEAD") for word in ("--commit", git(clone, "rev-parse", commit))]
    out, _ = invoked("tables", *commits, "--format", "json")
    assert {row["before_machine"] for table in json.loads(out) for row in table["rows"]} == {"slow"}
    out, _ = invoked("tables", "--machine", "slow", "--machine", "fast", "--format", "json")
    assert {row["verdict"] for table in json.loads(out) for row in table["rows"]} == {"faster"}


def test_each_recipe_is_shown_from_the_newest_commit_that_measured_it(clone):
    for technique, size in (("numpy", 40_000), ("torch", 40_000), ("torch", 1_000_000)):
        add(store.Writer(store.Store(), "m", resume=True), technique, size)
    commit_later(clone)
    add(store.Writer(store.Store(), "m"), "numpy", 40_000, median=3e-5)
    commits = {work[1:]: each.stored.commit for work, each in stored_newest().items()}
    old, new = git(clone, "rev-parse", "HEAD~1", "HEAD").split()
    assert commits == {("numpy", 40_000): new, ("torch", 40_000): old, ("torch", 1_000_000): old}


def test_what_was_skipped_later_does_not_hide_what_was_measured(clone):
    for technique in ("numpy", "torch"):
        add(store.Writer(store.Store(), "m"), technique, 40_000)
    commit_later(clone)
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    add(store.Writer(store.Store(), "m"), "torch", 40_000, "skipped", "no room")
    found = stored_newest()["multiply", "torch", 40_000]
    assert found.ok and found.speedups[Metric.RESIDENT] == pytest.approx(1)
    commit_later(clone)
    add(store.Writer(store.Store(), "m"), "torch", 40_000, "failed", "wrong")
    assert stored_newest()["multiply", "torch", 40_000].wrong


def test_a_removed_recipe_is_shown_only_until_its_workload_is_measured_without_it(clone, monkeypatch):
    for technique in ("numpy", "torch"):
        add(store.Writer(store.Store(), "m"), technique, 40_000)
    rest = [each for each in catalogue.recipes() if each.technique != "torch"]
    of_rest = {(each.workload, each.technique): each for each in rest}

    def shown_without_it():
        with monkeypatch.context() as without:
            without.setattr(catalogue, "recipes", lambda: rest)
            without.setattr(catalogue, "find", lambda *names: of_rest.get(names))
            return {technique for _, technique, _ in stored_newest()}

    assert shown_without_it() == {"numpy", "torch"}
    commit_later(clone)
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    assert shown_without_it() == {"numpy"}


def stored_newest():
    shown, _ = select(store.Store().load()[0])
    return {each.work: each for each in shown}


def test_what_a_later_commit_did_not_measure_is_shown_from_an_earlier_one(clone):
    for workload in ("multiply", "increment"):
        writer = store.Writer(store.Store(), "m")
        add(writer, "numpy", 40_000, workload=workload)
        commit_later(clone)
    out, _ = invoked("tables", "--format", "json")
    workloads = {row["workload"] for table in json.loads(out) for row in table["rows"] if row["table"] == "measured"}
    assert workloads == {"multiply", "increment"}


def test_a_result_of_a_recipe_or_kernel_that_has_changed_is_stale(clone):
    writer = store.Writer(store.Store(), "m")
    for technique in ("numpy", "pycuda", "pyopencl"):
        add(writer, technique, 40_000)
    rewrite(clone / "recipes/multiply/with_numpy.py", "# other\n")
    rewrite(clone / "kernels/multiply.cu", "other\n")
    commits.changed_since.cache_clear()
    assert {t: each.stale for (_, t, _), each in stored().items()} == {"numpy": True, "pycuda": True, "pyopencl": False}


def test_what_a_recipe_left_that_is_gone_is_shown_beside_others(clone):
    writer = store.Writer(store.Store(), "m")
    for technique in ("numpy", "torch"):
        add(writer, technique, 40_000)
    (path,) = (clone / "benchmarks/results/m").glob("*-existing-*.json")
    path.write_text(path.read_text().replace("torch", "gone_tuned"))
    out, _ = invoked("tables", "multiply", "--format", "json")
    rows = [row for table in json.loads(out) for row in table["rows"] if row["table"] == "measured"]
    assert {(row["technique"], row["lane"]) for row in rows} == {("numpy", "idiomatic"), ("gone_tuned", "tuned")}


def test_words_about_a_recipe_do_not_make_its_results_stale(clone):
    writer = store.Writer(store.Store(), "m")
    for technique in ("numpy", "torch", "pycuda", "pyopencl"):
        add(writer, technique, 40_000)
    for file, old, new in (
        ("recipes/multiply/__init__.py", "EDGE_SIZES = (", "EDGE_SIZES = (3, "),
        ("recipes/multiply/__init__.py", "    return 0\n", "    return 1e-9 * np.abs(expected)\n"),
        ("recipes/multiply/__init__.py", '    return f"{size:,}', '    return f"{size}'),  # of label()
        ("recipes/multiply/with_numpy.py", '"""Multiply', '"""As fast as it was: multiply'),
        ("recipes/multiply/with_torch.py", "return torch.mul(a, b", "return torch.mul(b, a"),
        ("kernels/multiply.cu", "//", "// words\n// and more:"),
        ("kernels/multiply.cl", "a[i] * b[i]", "b[i] * a[i]"),
    ):
        text = (clone / file).read_text()
        assert old in text
        rewrite(clone / file, text.replace(old, new) + ("# words\n" if file.endswith(".py") else "/* words */\n"))
    commits.changed_since.cache_clear()
    stale = {technique: each.stale for (_, technique, _), each in stored().items()}
    assert stale == {"numpy": False, "torch": True, "pycuda": False, "pyopencl": True}


def test_a_result_is_stored_with_a_commit_only(clone):
    rewrite(clone / "recipes/multiply/with_numpy.py", "# other\n")
    _, err = invoked("compare", "multiply", "-t", "numpy", "--save", "--machine", "m", code=2)
    assert "commit your changes in recipes, kernels, gpu_cookbook first" in err
    git(clone, "commit", "--quiet", "--all", "--message=other")
    _, err = invoked("compare", "multiply", "-t", "numpy", "--save", "--machine", "m", code=2)
    assert "pip install --editable" in err


@pytest.mark.parametrize("way", ["hidden from git status", "a git that fails", "in a folder of another repository"])
def test_whatever_git_is_told_nothing_is_stored_of_other_code(clone, monkeypatch, way):
    if way == "hidden from git status":
        (clone / "recipes/multiply/with_mine.py").write_text("")
        git(clone, "config", "status.showUntrackedFiles", "no")
        words = "commit your changes in recipes, kernels, gpu_cookbook first"
    elif way == "a git that fails":
        (clone / ".git/index").write_bytes(b"DIRC")  # as after a full disk
        words = "git cannot say whether everything is committed: run git status"
    else:
        (clone / "inner").mkdir()
        for path in [*clone.iterdir()]:
            if path.name != "inner":
                path.rename(clone / "inner" / path.name)
        (clone / "inner/.git").rename(clone / "git of the inner one")
        git(clone, "init", "--quiet", ".")
        git(clone, "commit", "--quiet", "--allow-empty", "--message=outer")
        monkeypatch.chdir(clone / "inner")
        words = "is not a git repository with a commit"
    _, err = invoked("compare", "multiply", "-t", "numpy", "--save", "--machine", "m", code=2)
    assert words in err


def test_another_repository_that_the_environment_names_is_none_of_ours(clone, tmp_path_factory, monkeypatch):
    other = tmp_path_factory.mktemp("dotfiles")
    git(other, "init", "--quiet", ".")
    git(other, "commit", "--quiet", "--allow-empty", "--message=other")
    here = git(clone, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert store.Writer(store.Store(), "m").commit == here


def test_a_git_that_cannot_compare_blames_no_commit(clone):
    git(clone, "config", "diff.algorithm", "nonsense")
    with pytest.raises(commits.StoreError, match="git cannot compare with [0-9a-f]{8}: run git diff"):
        commits.changed_since(clone, commits.head(clone))
    with pytest.raises(commits.UnknownCommit, match="does not have .*12345678"):
        commits.changed_since(clone, commits.head(clone), "12345678" * 5)


@pytest.mark.slow
def test_compare_saves_and_goes_on(clone):
    def saved(*more):
        save = ("compare", "multiply", "-t", "numpy", "--save", "--machine", "m", "--format", "json", *more)
        done = subprocess.run([*UNPROBED, *save], capture_output=True, text=True, timeout=HANG)
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stdout + done.stderr
        return done.stdout, done.stderr

    out, _ = saved()
    measured = {c["size"]: c for c in json.loads(out) if c["status"] == "ok"}
    kept = {size: each.timings[Metric.RESIDENT] for (_, _, size), each in stored().items()}
    assert {size: timing.median for size, timing in kept.items()} == {s: c["resident_s"] for s, c in measured.items()}
    assert all(not math.isnan(timing.ci99[0]) for timing in kept.values())
    for each in stored().values():  # longer than all calls that are in it
        assert each.took > sum(timing.median * timing.count for timing in each.timings.values())
    out, err = saved("--resume")
    assert {c["size"]: c["resident_s"] for c in json.loads(out)} == {s: c["resident_s"] for s, c in measured.items()}
    assert f"{len(measured)} results are already stored" in err


def measuring(monkeypatch):
    """Instead of measuring, compare finds that each result that is left took 10 µs."""

    def measured(comparison, *_):
        left = [result(each.technique, size) for each, sizes in comparison.left for size in sizes]
        return compare.Outcome([*comparison.found, *left])

    monkeypatch.setattr(cli, "measured", measured)


def test_what_is_not_measured_again_is_said_with_its_commits_beside_the_table_and_in_it(clone, monkeypatch):
    monkeypatch.setattr(machine, "instance", lambda: "a" * 12)
    other = Run("2026-11-20T10:00:00Z", "b" * 12)
    first = git(clone, "rev-parse", "HEAD")[:8]
    writer = store.Writer(store.Store(), "m")
    writer.add(recipe("torch"), result("torch", 40_000), other)
    writer.add(recipe("torch"), result("torch", 1_000_000, median=3e-4), Run("2026-11-20T10:00:00Z", "a" * 12))
    commit_later(clone)
    second = git(clone, "rev-parse", "HEAD")[:8]
    store.Writer(store.Store(), "m").add(recipe("dask"), result("dask", 40_000), Run("2026-11-21T10:00:00Z"))
    commit_later(clone)
    measuring(monkeypatch)
    asked = ("compare", "multiply", "-t", "torch", "-t", "dask", "--save", "--machine", "m", "--resume")
    out, err = invoked(*asked)
    today = time.strftime("%Y-%m-%d", time.gmtime())
    words = (
        f"3 results are already stored: 2 of commit {first}, {today}; 1 of commit {second}, {today}; 1 of them measured"
        " on another machine of this name"
    )
    assert f"{words}\n" in err and f"{words}." in " ".join(out.split())
    rows = json.loads(invoked(*asked, "--format", "json")[0])
    of = {(row["technique"], row["size"]): row.get("commit", "")[:8] for row in rows}
    assert of == {
        **dict.fromkeys([("torch", 40_000), ("torch", 1_000_000)], first),
        **{("dask", 40_000): second, ("dask", 1_000_000): ""},
        **dict.fromkeys([("numpy", 40_000), ("numpy", 1_000_000)], ""),
    }


def test_what_cannot_be_used_is_named_when_a_run_goes_on(clone, monkeypatch):
    measuring(monkeypatch)
    add(store.Writer(store.Store(), "m"), "torch", 40_000)
    with (clone / "benchmarks/results/m/runs.jsonl").open("ab") as file:
        file.write(b'{"commit": "12", "ver\n\xff\n')
    resume = ("compare", "multiply", "-t", "torch", "--save", "--machine", "m", "--resume")
    out, err = invoked(*resume, code=1)
    assert "10.0 µs" in out and "1 result is already stored" in err
    place = "benchmarks/results/m/runs.jsonl, line"
    assert f"{place} 2: is not JSON, or is cut off" in err and f"{place} 3: is not text in UTF-8" in err


def test_what_cannot_be_used_of_another_machine_is_nothing_to_a_run_that_goes_on(clone, monkeypatch):
    measuring(monkeypatch)
    for name in ("m", "other"):
        add(store.Writer(store.Store(), name), "torch", 40_000)
    (clone / "benchmarks/results/other/runs.jsonl").write_bytes(b"{")
    _, err = invoked("compare", "multiply", "-t", "torch", "--save", "--machine", "m", "--resume")
    assert "1 result is already stored" in err and "other" not in err


def test_what_is_skipped_again_is_stored_once(clone):
    lines = clone / "benchmarks/results/m/runs.jsonl"

    def number_after(reason, resume=True):
        add(store.Writer(store.Store(), "m", resume), "cupy", 40_000, "skipped", reason)
        return len(lines.read_text().splitlines())

    assert [number_after(reason) for reason in ("no GPU", "no GPU", "no CuPy", "no CuPy", "no GPU")] == [1, 1, 2, 2, 3]
    assert number_after("no GPU", resume=False) == 4
    for expected in (5, 6):  # what failed twice was measured twice
        add(store.Writer(store.Store(), "m", resume=True), "numpy", 40_000, "failed", "no memory")
        assert len(lines.read_text().splitlines()) == expected
    commit_later(clone)
    assert number_after("no GPU") == 7


def test_what_is_skipped_again_beside_a_size_that_is_measured_is_still_shown(clone):
    numpy = recipe("numpy")
    before = Run("2026-11-20T10:00:00Z", "a" * 12)
    store.Writer(store.Store(), "m").add(numpy, result("numpy", 1_000_000, "skipped", "too large"), before)
    again = store.Writer(store.Store(), "m", resume=True)
    add(again, "numpy", 40_000)
    add(again, "numpy", 1_000_000, "skipped", "too large")
    assert stored()["multiply", "numpy", 1_000_000].reason == "too large"


def gpus(*names):
    return lambda: tuple(machine.Gpu(index, name, 2**36, (9, 0)) for index, name in enumerate(names))


def test_results_of_another_machine_are_not_mixed_with_those_that_are_there(clone, monkeypatch):
    monkeypatch.setattr(machine, "gpus", gpus("NVIDIA H200", "NVIDIA H200"))
    add(store.Writer(store.Store(), "mine"), "numpy", 40_000)
    path = clone / "benchmarks/results/mine/machine.json"
    before = path.read_bytes()
    assert json.loads(before)["gpu"] == "NVIDIA H200, NVIDIA H200"
    assert store.Store().memory_of("mine")[1] == 2**36
    (file,) = path.parent.glob("*-*.json")
    assert not {"gpu_ram", "cpu_model"} & json.loads(file.read_text())["params"].keys()
    monkeypatch.setattr(machine, "gpus", gpus("NVIDIA H100 NVL"))
    monkeypatch.setattr(cli, "measured", None)
    said = invoked("compare", "multiply", "-t", "numpy", "--save", "--machine", "mine", code=2)[1]
    assert "mine has the results of another machine, with 2 × NVIDIA H200; this one has NVIDIA H100 NVL." in said
    assert "--machine NAME" in said
    assert path.read_bytes() == before
    store.Writer(store.Store(), "other")
    monkeypatch.setattr(machine, "gpus", gpus())
    with pytest.raises(commits.StoreError, match="this one has no GPU, and [0-9]+ cores of "):
        store.Writer(store.Store(), "mine")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    for there, names, hidden in (
        ("NVIDIA H200", ["NVIDIA H200"], True),  # a part of it
        ("3 × NVIDIA H200", 3 * ["NVIDIA H200"], False),
        ("NVIDIA H100 NVL, NVIDIA H200", ["NVIDIA H200", "NVIDIA H100 NVL"], False),
    ):
        monkeypatch.setattr(machine, "gpus", gpus(*names))
        said = invoked("compare", "multiply", "-t", "numpy", "--save", "--machine", "mine", "--resume", code=2)[1]
        assert f"with 2 × NVIDIA H200; this one has {there}. Give this one a name of its own" in said
        assert ("unset CUDA_VISIBLE_DEVICES" in said) == hidden
    assert path.read_bytes() == before
    monkeypatch.setattr(machine, "gpus", gpus("NVIDIA H200", "NVIDIA H200"))
    for memory, same in ((2**36 * 1.05, True), (2**35, False)):  # as of one name, with and without error correction
        path.write_text(json.dumps(json.loads(before) | {"gpu_ram": str(int(memory))}))
        if same:
            store.Writer(store.Store(), "mine")
        else:
            with pytest.raises(commits.StoreError, match="H200 of 34.4 GB; this one has 2 × NVIDIA H200 of 68.7 GB"):
                store.Writer(store.Store(), "mine")


@pytest.mark.parametrize("names", [[], ["NVIDIA H200"]])
def test_a_container_with_a_quota_of_the_cores_is_another_machine(names, clone, monkeypatch):
    monkeypatch.setattr(machine, "gpus", gpus(*names))
    add(store.Writer(store.Store(), "whole"), "numpy", 40_000)
    monkeypatch.setattr(machine, "core_count", lambda: "1.5 of 16")
    has = f"{names[0]} and" if names else "no GPU, and"
    with pytest.raises(commits.StoreError, match=f"with {has} [0-9]+ cores.*; this one has {has} 1.5 of 16 cores"):
        store.Writer(store.Store(), "whole")
    for _ in range(2):
        add(store.Writer(store.Store(), "part"), "numpy", 40_000)
    monkeypatch.setattr(machine, "core_count", lambda: "16")
    with pytest.raises(commits.StoreError, match=f"with {has} 1.5 of 16 cores.*; this one has {has} [0-9]+ cores"):
        store.Writer(store.Store(), "part")


def test_without_a_gpu_another_processor_is_another_machine(clone, monkeypatch):
    monkeypatch.setattr(machine, "gpus", gpus())
    add(store.Writer(store.Store(), "mine"), "numpy", 40_000)
    path = clone / "benchmarks/results/mine/machine.json"
    facts = json.loads(path.read_text())
    assert facts["cpu_model"]
    older = {key: value for key, value in facts.items() if key != "cpu_model"}
    for there in (facts | {"os": "Linux 7"}, facts, older):
        path.write_text(json.dumps(there))
        add(store.Writer(store.Store(), "mine"), "numpy", 40_000)
        # Nobody knows of which model the older results are.
        assert json.loads(path.read_text()).get("cpu_model") == there.get("cpu_model")
    with monkeypatch.context() as less:
        less.setattr(machine, "processor_model", lambda: "")  # as where /proc is not to be seen
        path.write_text(json.dumps(facts))
        store.Writer(store.Store(), "mine")
    for change in ({"cpu": "another processor"}, {"num_cpu": "999"}, {"cpu_model": "cpu family 1"}):
        changed = facts | change
        path.write_text(json.dumps(changed))
        described = f"{changed['num_cpu']} cores of {changed['cpu']} ({changed['cpu_model']})"
        words = re.escape(f"with no GPU, and {described}; this one")
        with pytest.raises(commits.StoreError, match=words):
            store.Writer(store.Store(), "mine")
    path.write_text("{")
    with pytest.raises(commits.StoreError, match="fix it, or move it away"):
        store.Writer(store.Store(), "mine")


def test_a_machine_of_which_asv_wrote_down_no_gpu_is_known_by_its_results(clone, monkeypatch):
    monkeypatch.setattr(machine, "gpus", gpus())
    add(store.Writer(store.Store(), "mine"), "numpy", 40_000)  # no GPU is known yet: the processor decides
    monkeypatch.setattr(machine, "gpus", gpus("NVIDIA H200"))
    store.Writer(store.Store(), "mine")
    monkeypatch.setattr(machine, "gpus", gpus())
    add(store.Writer(store.Store(), "mine"), "torch", 40_000, device="2 × NVIDIA H200", driver="580.1")
    for number in (2, 4):  # a GPU may have been left alone
        monkeypatch.setattr(machine, "gpus", gpus(*number * ["NVIDIA H200"]))
        store.Writer(store.Store(), "mine")
    monkeypatch.setattr(machine, "gpus", gpus("NVIDIA H200", "NVIDIA H200", "NVIDIA T400"))  # or one of two kinds
    store.Writer(store.Store(), "mine")
    for name in ("NVIDIA H200", "NVIDIA H100 NVL"):
        monkeypatch.setattr(machine, "gpus", gpus(name))
        with pytest.raises(commits.StoreError, match=f"with 2 × NVIDIA H200; this one has {name}"):
            store.Writer(store.Store(), "mine")


def test_the_same_twice_is_nothing_to_compare(clone):
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    commit = git(clone, "rev-parse", "HEAD")
    environment = store.existing(".".join(map(str, sys.version_info[:2])))
    for option, one, other in (
        ("machine", "m", "m"),
        ("commit", commit, commit[:8]),
        ("environment", environment, "main"),
    ):
        said = invoked("tables", f"--{option}", one, f"--{option}", other, code=2)[1]
        both = f"--{option} {one} and --{option} {other} select the same results"
        assert said == f"{both}: name two that differ, or one to see its results.\n"


def test_what_the_other_options_make_the_same_is_nothing_to_compare(clone):
    environment = store.existing(".".join(map(str, sys.version_info[:2])))
    for name in ("one", "two"):
        add(store.Writer(store.Store(), name), "numpy", 40_000)
    path = next((clone / "benchmarks/results/two").glob("*-existing*.json"))
    text = path.read_text().replace(f'"env_name": "{environment}"', '"env_name": "other"')
    path.write_text(text)
    path.rename(path.with_name(path.name.replace(environment, "other")))
    both = ["--environment", environment, "--environment", "main"]
    assert "select the same results" in invoked("tables", *both, "--machine", "one", code=2)[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--resume"], "only work with --save"),
        (["--machine", ""], "only work with --save"),
        (["--save", "-s", "1000"], "omit --size"),
        (["--save", "--machine", "../evil"], "'../evil' is no name of a machine"),
        (["--save", "--machine", ""], "'' is no name of a machine"),
    ],
)
def test_options_that_do_not_fit_say_so(clone, arguments, words):
    _, err = invoked("compare", "multiply", "-t", "numpy", *arguments, code=2)
    assert words in err


@pytest.mark.parametrize(
    ("facts", "memory"),
    [
        ({"ram": "2048", "gpu": "NVIDIA H200", "gpu_ram": "4096"}, (2048, 4096)),
        ({"ram": "2048", "gpu": "NVIDIA H200", "gpu_ram": "much"}, (2048, None)),
        ({"ram": "2048", "gpu": "NVIDIA H100 80GB HBM3"}, (2048, 80 * 2**30)),
        ({"ram": "2048", "gpu": "Tesla V100-SXM2-32GB, NVIDIA A100-SXM4-40GB"}, (2048, 32 * 2**30)),
        ({"ram": "2048", "gpu": "NVIDIA H100 80GB HBM3, NVIDIA H200"}, (2048, None)),
        ({"ram": "2048", "gpu": "NVIDIA GH200 480GB"}, (2048, None)),  # its CPU's
        ({"ram": "2048", "gpu": "NVIDIA H100 80GB HBM3 MIG 1g.10gb"}, (2048, None)),  # the whole GPU's
        ({"ram": "", "gpu": ""}, (None, None)),
        ({}, (None, None)),
    ],
)
def test_the_memory_of_a_stored_machine_is_what_its_file_says(clone, facts, memory):
    path = clone / "benchmarks/results/box/machine.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"machine": "box", "version": 1} | facts))
    assert store.Store().memory_of("box") == memory
    path.write_text("no JSON")
    assert store.Store().memory_of("box") == (None, None)


def test_without_a_commit_it_says_so(clone):
    shutil.rmtree(clone / ".git")
    _, err = invoked("tables", code=2)
    assert "is not a git repository with a commit. Clone the project with git clone, and run this there." in err


def test_outside_of_a_clone_it_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, err = invoked("tables", code=2)
    assert "run this command inside a clone" in err


def test_every_stored_result_belongs_to_a_commit_and_has_its_conditions(tmp_path, monkeypatch):
    """Of those that are committed."""
    require_clone()
    git(tmp_path, "clone", "--quiet", ROOT, "clone")
    monkeypatch.chdir(tmp_path / "clone")
    results, complaints = store.Store().load()
    assert complaints == []
    assert results, "there are no results"
    assert all(each.versions for each in results if each.ok), "a result without its conditions"
