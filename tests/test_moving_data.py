"""docs/transfers and benchmarks/transfers.py: the scripts run on a GPU, and everywhere on a device that is as late as
CUDA allows (late_script.py); traces become bars, and a line of the store is read or refused. The lines here are made
up."""

import copy
import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from cloning import gpu_machine
from conftest import committed, git, ran
from lines import loaded, page_of, require_that_changes_cost_one_line, write

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import timelines
from gpu_cookbook.store import commits, transfers

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "transfers.py"
SCRIPTS = sorted((ROOT / "docs" / "transfers").glob("*.py"))
MACHINE = gpu_machine()  # whose figures are in the text

benchmark = loaded(SCRIPT)


# ---- The scripts.


def late(text, tmp_path, seed, gpus=2):
    """A script's run on the late device; with small pieces, so that there are many of them."""
    for large, small in (("2**22", "2**12"), ("2**20", "2**10"), ("000_011", "0_011")):
        text = text.replace(large, small)
    path = tmp_path / "script.py"
    path.write_text(text, encoding="utf-8")
    return ran("late_script.py", path, seed, gpus)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_waits_for_all_that_it_uses(script, tmp_path):
    for seed in range(3):
        done = late(script.read_text(encoding="utf-8"), tmp_path, seed)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("elements, all right\n")


def test_one_gpu_is_enough_to_be_told_so(tmp_path):
    script = ROOT / "docs" / "transfers" / "between_gpus.py"
    assert late(script.read_text(encoding="utf-8"), tmp_path, 0, gpus=1).stdout == "one GPU: nothing to copy to\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("page_locked", ".get(out=out)", ".get(out=out, blocking=False)"),
        ("asynchronous", "    stream.synchronize()\n    np.testing", "    np.testing"),
        ("asynchronous", "a * b  # this thread", "a * b\n    a[:] = 1  # this thread"),
        ("in_pieces", "        stream.synchronize()\n", ""),
        ("both_ways", "    for stream in streams:\n        stream.synchronize()\n", ""),
        ("both_ways", "rooms[number % 2]", "rooms[0]"),
        ("both_ways", "        with stream:\n            rooms", "        if stream:\n            rooms"),
        ("zero_copy", "    cp.cuda.get_current_stream().synchronize()\n", ""),
        ("zero_copy", "return cupyx.empty_pinned(n, np.float32)", "return np.empty(n, np.float32)"),
        ("staged", "            stream.synchronize()\n", ""),
        ("staged", "lanes[number]", "lanes[number % 2]"),
        ("staged", "cupyx.empty_pinned((3, PIECE), np.float32)", "np.empty((3, PIECE), np.float32)"),
        ("registered", "            stream.synchronize()\n", "            pass\n"),
        ("registered", "        cp.cuda.runtime.hostUnregister(x.ctypes.data)\n", ""),
        ("unified", "    cp.cuda.get_current_stream().synchronize()\n", ""),
        ("unified_prefetched", "    stream.synchronize()\n", ""),
        ("between_gpus", "    cp.copyto(out, x)\n    cp.cuda.get_current_stream().synchronize()\n", "    pass\n"),
    ],
)
def test_a_script_that_does_not_wait_is_found_out(name, right, wrong, tmp_path):
    text = (ROOT / "docs" / "transfers" / f"{name}.py").read_text(encoding="utf-8")
    assert text.count(right) == 1
    changed = text.replace(right, wrong)
    assert any(late(changed, tmp_path, seed).returncode for seed in range(5))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_form(script):
    text = script.read_text(encoding="utf-8")
    assert "np.testing.assert_array_equal" in text
    assert text.strip().splitlines()[-1].lstrip().startswith("print(")
    assert not catalogue.read(script).fault


def test_the_benchmark_has_every_script():
    assert {*benchmark.STEPS, "between_gpus"} == {script.stem for script in SCRIPTS}
    for name, kind in benchmark.STEPS.items():
        text = (benchmark.SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
        assert ("def array(n):" in text) == (kind != benchmark.ORDINARY)


# ---- The benchmark.


def test_without_a_gpu_it_says_so(tmp_path):
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, SCRIPT], cwd=tmp_path, capture_output=True, text=True, env=hidden)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "These are transfers to an NVIDIA GPU, but this machine has none.\n"


def event(kind, name, start, duration, thread=7):
    return {"ph": "X", "cat": kind, "name": name, "ts": 1000 + start, "dur": duration, "tid": thread}


def test_bars_are_those_of_a_trace():
    main, other = benchmark.aliases(), (70_001, 2**40 + 5, 5, 5 - 2**32, 2**32 - 5)
    events = [
        event("user_annotation", benchmark.MARK, 0, 100, thread=main[0]),
        event("gpu_user_annotation", benchmark.MARK, 3, 80),
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 10, 20),
        event("kernel", "cupy_multiply__float32_float32_float32", 30, 5),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 35, 10),
        event("gpu_memcpy", "Memcpy PtoP (Device -> Device)", 46, 1),
        event("cuda_runtime", "cudaMemcpyAsync", 4, 2, thread=main[2]),
        event("cuda_runtime", "cudaStreamSynchronize", 7, 95, thread=main[2]),
        event("cuda_driver", "cuLaunchKernel", 8, 1, thread=5),
        event("cuda_runtime", "cudaDeviceSynchronize", 101, 5),  # the profiler's own, after the call
        event("kernel", "cupy_multiply__float32_float32_float32", -50, 5),  # of the call before
        event("cuda_runtime", "cudaMemcpyAsync", -60, 5, thread=77),
        {"ph": "M", "name": "process_name"},
    ]
    before = (((70_002, 78), -20, 3), ((70_003, 79), 100, 3))
    bars = benchmark.bars_of(events, [*before, (main, 1.5, 2), (other, 9, 3)], 1000, 100)
    assert sorted(bars) == [
        ("down", 35, 10),
        ("host 1", 1.5, 2),
        ("host 1", 4, 2),
        ("host 2", 8, 1),
        ("host 2", 9, 3),
        ("kernel", 30, 5),
        ("peer", 46, 1),
        ("up", 10, 20),
        ("wait 1", 7, 93),
    ]
    assert benchmark.busy(bars) == {"down": 10, "host": 8, "kernel": 5, "peer": 1, "up": 20, "wait": 93}


def test_only_the_shortest_gaps_are_closed(monkeypatch):
    up = [("up", start, 1.0) for start in (0, 2, 3.5, 9)]
    kernels = [("kernel", start, 0.1) for start in (0, 0.2, 0.4)]
    host = [("host 1", 0.0, 1.0), ("host 1", 1.3, 0.7), ("host 2", 0.0, 1.0), ("host 2", 6.0, 1.0)]
    every = [*host, *kernels, *up]
    for most, others, left, closed in (
        (4, 7, every, 0),
        (4, 6, [*host, *kernels, ("up", 0, 1), ("up", 2, 2.5), ("up", 9, 1)], 0.5),
        (3, 7, [("host 1", 0, 2), *host[2:], *kernels, *up], 0.3),
        (4, 1, [*host, *kernels, ("up", 0, 10)], 4.5),  # never a gap between kernels
    ):
        monkeypatch.setattr(benchmark, "MOST_BARS", {"host": most})
        monkeypatch.setattr(benchmark, "MOST_OTHERS", others)
        found, gap = benchmark.fewer(reversed(every))
        assert sorted(found) == sorted(left) and gap == closed
    assert benchmark.fewer([("up", 0, 5), ("up", 1, 2), ("up", 4, 3)])[0] == [("up", 0, 7)]


def test_of_several_threads_only_the_work_is_left():
    one = [("host 1", 0, 1), ("wait 1", 1, 8), ("kernel", 2, 5)]
    assert sorted(benchmark.fewer(one)[0]) == sorted(one)
    two = [("host 2", 1, 1), *one]
    assert sorted(benchmark.fewer(two)[0]) == [("host 1", 0, 1), ("host 2", 1, 1), ("kernel", 2, 5)]


# ---- The store.


def measured(name, milliseconds, bars=()):
    time_s = milliseconds / 1e3
    step = {"step": name, "time_s": time_s, "q1_s": 0.99 * time_s, "q3_s": 1.01 * time_s, "samples": 15}
    traced = {"traced_s": 1.1 * time_s, "closed_us": 3.5, "busy_us": {"host": 9, "up": 40_000}, "bars": bars}
    return step | (traced if bars else {})


DRAWN_ON_ONE_GPU = [name for name in (*benchmark.STEPS, *benchmark.RECIPES) if name in timelines.DRAWN]


def made_up(commit, machine_name="made-up", date="2026-11-23"):
    """A line with times that nobody measured."""
    whole = [["host 1", 5, 9], ["wait 1", 20, 49000], ["up", 30, 40000], ["kernel", 40030, 500], ["down", 41000, 9000]]
    return {
        "machine": machine_name,
        "device": "A GPU that is made up",
        "driver": "1.2.3",
        "processor": "A processor, 16 cores",
        "versions": "Python 3.12.3",
        "date": date,
        "commit": commit,
        "elements": 2**28,
        "steps": [
            *(measured(name, 20 + number) for number, name in enumerate(("limit_up", "limit_down", "limit_both"))),
            measured("allocate_page_locked", 350),
            measured("numpy", 300),
            measured("torch_cpu", 43),
            *(measured(name, 300 - 20 * n, whole) for n, name in enumerate(DRAWN_ON_ONE_GPU)),
            *(measured(name, 50) for name in benchmark.RECIPES if name not in timelines.DRAWN),
            *(measured(name, 0.01 * number) for number, name in enumerate(timelines.SMALL, 1)),
            {"step": "gpu_to_gpu", "reason": "there is only one GPU"},
            {"step": "gpu_to_gpu_through_host", "reason": "there is only one GPU"},
            measured("host_copies", 75),
        ],
    }


@pytest.fixture
def line(clone):
    """Makes a line of a commit that there is."""
    return functools.partial(made_up, git(clone, "rev-parse", "HEAD"))


def test_a_line_is_read_as_it_was_written(results, line):
    write(results / transfers.FILE, line(date="2026-11-20"), line(), line("other"))
    found, complaints = transfers.kept(results)
    assert complaints == [] and list(found) == ["made-up", "other"]
    kept = found["made-up"]
    assert kept.origin.date == "2026-11-23" and kept.elements == 2**28
    written = [transfers.record(step) for step in kept.steps.values()]
    assert json.loads(json.dumps(written)) == line()["steps"]
    assert kept.seconds("numpy") == 0.3 and kept.seconds("gpu_to_gpu") is None and kept.seconds("nosuch") is None


def test_a_line_in_a_machine_s_own_folder_counts(results, line):
    write(results / transfers.FILE, line("mine", "2026-11-20"))
    write(results / "mine" / transfers.FILE, line("mine", "2026-11-22"))
    write(results / "yours" / transfers.FILE, line("mine", "2026-11-24"))
    found, (complaint,) = transfers.kept(results)
    assert found["mine"].origin.date == "2026-11-22"
    assert complaint.endswith("line 1: belongs to mine, not to yours")


def test_a_step_is_stale_once_its_script_has_changed(clone, results, line):
    script = clone / "docs" / "transfers" / "both_ways.py"
    write(results / transfers.FILE, made_up(committed(script, "PIECE = 1\n")))
    for text, stale in (("PIECE = 1  # of what?\n", set()), ("PIECE = 2\n", {"both_ways"})):
        script.write_text(text)
        commits.changed_since.cache_clear()
        assert {step.name for step in transfers.kept(results)[0]["made-up"].steps.values() if step.stale} == stale


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda steps: steps[6].pop("q1_s"), '"q1_s" is a required property'),
        (lambda steps: steps[6].update(q1_s=1.0), "the quartiles of pageable do not enclose its median"),
        (lambda steps: steps[6].pop("traced_s"), '"traced_s" is a required property'),
        (lambda steps: steps[6]["bars"].append(["up", 400_000, 1]), "a bar of pageable ends after its call"),
        (lambda steps: steps[6]["bars"].append(["sideways", 1, 1]), "does not match"),
        (lambda steps: steps[6]["bars"].append(["up", 1]), "has less than 3 items"),
        (lambda steps: steps[6]["busy_us"].update(up=400_000), "something is busy for longer than pageable takes"),
        (lambda steps: steps[6]["busy_us"].update(sideways=1), "sideways"),
        (lambda steps: steps.append(steps[0]), "has a step twice"),
    ],
)
def test_what_makes_no_sense_costs_its_line(change, words, results, line):
    wrong = copy.deepcopy(line())
    change(wrong["steps"])
    write(results / transfers.FILE, wrong, line("other"))
    found, (complaint,) = transfers.kept(results)
    assert list(found) == ["other"]
    assert f"{transfers.FILE}, line 1: " in complaint and words in complaint


def test_a_line_of_an_unknown_commit_is_named(results, line):
    write(results / transfers.FILE, line() | {"commit": "1" * 40})
    found, (complaint,) = transfers.kept(results)
    assert not found and "belongs to a commit that this repository does not have (11111111)" in complaint


def test_a_line_that_was_changed_anywhere_costs_at_most_itself(results, line):
    require_that_changes_cost_one_line(
        results / transfers.FILE,
        line(),
        lambda: transfers.every(results),
        lambda run: [timelines.ladder(run), timelines.copies(run), timelines.small(run)],
        few=300,
    )


# ---- What the page shows.


@pytest.fixture
def kept(results, line):
    write(results / transfers.FILE, line())
    return transfers.kept(results)[0]["made-up"]


def test_the_page_names_the_steps_that_are_measured(kept):
    assert {*timelines.WAYS} == {*timelines.ON_CPU, *benchmark.STEPS, *benchmark.RECIPES}
    known = {*timelines.WAYS, *timelines.COPIES, timelines.ALLOCATION}
    assert known | {*timelines.SMALL} == {*kept.steps}
    assert {*transfers.RECIPES} <= {*kept.steps}
    limits = {name for name in known if name.startswith("limit_")}
    others = {name for name in benchmark.RECIPES if transfers.RECIPES[name][1] != "cupy_transfer_tuned"}
    assert sorted(timelines.DRAWN) == sorted(
        known - {*timelines.ON_CPU, timelines.ALLOCATION, "host_copies"} - limits - others
    )
    kinds = {"ordinary": "pageable", "page-locked": "page_locked", "unified": "unified"}
    for name, kind in (benchmark.STEPS | benchmark.RECIPES).items():
        assert kinds[timelines.WAYS[name][1]] == kind


def test_numbers_follow_from_the_line(kept):
    assert timelines.limit(kept) == pytest.approx(0.04)
    assert timelines.share(kept, "both_ways") == pytest.approx(0.04 / 0.22)
    assert timelines.rate(kept, "limit_both") == pytest.approx(2 * 2**30 / 0.022)
    rows = {(row[0].text, row[1].text): [entry.text for entry in row[2:]] for row in timelines.ladder(kept).rows}
    assert rows["both ways at once", "page-locked"] == ["220 ms", "1.36", "18 %", "1.36", "0.195"]
    assert rows["NumPy, one core", "ordinary"] == ["300 ms", "1.00", "–", "1.00", "0.143"]
    assert [row[2].text for row in timelines.copies(kept).rows] == [
        *("53.7 GB/s", "51.1 GB/s", "97.6 GB/s"),
        "42.9 GB/s",  # of the host's copies
    ]
    assert [[entry.text for entry in row[1:]] for row in timelines.small(kept).rows[:3]] == [
        ["10.0 µs", "1.00"], ["20.0 µs", "0.500"], ["30.0 µs", "0.333"],
    ]  # fmt: skip


def test_a_step_that_was_not_measured_says_why(kept):
    steps = dict(kept.steps) | {"unified": transfers.Step("unified", reason="no <b>unified</b> memory")}
    table = timelines.ladder(replace(kept, steps=steps))
    (row,) = (row for row in table.rows if row[0].text == timelines.WAYS["unified"][0])
    assert row[2].text == "not measured: no <b>unified</b> memory" and len(row) == len(table.head)
    assert timelines.timeline(replace(kept, steps=steps), "unified") is None
    del steps["pageable"], steps["limit_up"]
    assert len(timelines.ladder(replace(kept, steps=steps)).rows) == len(table.rows) - 1


def test_stale_and_noisy_times_are_marked(kept):
    step = kept.steps["zero_copy"]
    steps = dict(kept.steps) | {"zero_copy": replace(step, stale=True, time=replace(step.time, q3=1.0))}
    table = timelines.ladder(replace(kept, steps=steps))
    assert any(row[2].text == "†~200 ms" for row in table.rows)
    assert [note.text[0] for note in table.notes] == ["†", "~"]
    assert timelines.small(kept).notes == []


def test_a_drawing_has_every_bar_and_the_page_s_colours(kept):
    chart = timelines.timeline(kept, "pageable")
    drawn = ElementTree.fromstring(chart.svg)
    strokes = [each for each in drawn.iter() if "stroke-width: 11" in each.get("style", "")]
    assert [each.get("d").count("M") for each in strokes] == [1, 1, 1]  # the bus twice, and the kernel
    texts = {"".join(each.itertext()).strip() for each in drawn.iter() if each.tag.endswith("text")}
    assert {"host", "bus to the GPU", "kernel", "bus from the GPU", "40.0 ms", "9.00 µs", "ms"} <= texts
    assert "currentColor" in chart.svg and "#010203" not in chart.svg and "<script" not in chart.svg
    assert chart.text == (
        "One call of 330 ms under the profiler. Busy: host 9.00 µs; bus to the GPU 40.0 ms; kernel –; bus from the GPU"
        " –."
    )
    assert "Gaps of up to 3.50 µs were closed" in chart.table.notes[0].text
    assert timelines.timeline(kept, "numpy") is None and timelines.timeline(kept, "gpu_to_gpu") is None


def test_steps_that_are_compared_have_one_scale(kept):
    def ticks(name):
        drawn = ElementTree.fromstring(timelines.timeline(kept, name).svg)
        texts = ("".join(each.itertext()).strip() for each in drawn.iter() if each.tag.endswith("text"))
        return [text for text in texts if text.isdigit()]

    assert ticks("pageable") == ticks("page_locked") != ticks("both_ways") == ticks("zero_copy")


@pytest.mark.slow
@pytest.mark.parametrize("machines", [[], [MACHINE], [MACHINE, "another"]])
def test_the_page_shows_what_is_stored(machines, tmp_path):
    source, file = tmp_path / "docs", tmp_path / "lines"
    shutil.copytree(ROOT / "docs" / "transfers", source / "transfers")
    shutil.copy(ROOT / "docs" / "transfers.md", source / "index.md")
    head = git(ROOT, "rev-parse", "HEAD")
    write(file, *(made_up(head, name) for name in machines))
    page = page_of(source, "transfers", file, "every_transferred", "runs")
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))
    assert page.count("<svg") == len(machines) * len(DRAWN_ON_ONE_GPU)
    assert ("Not measured yet" in words) == (not machines)
    on_two_gpus = len(re.findall(r"\{moved\}`gpu_to_gpu", (source / "index.md").read_text(encoding="utf-8")))
    unknown = words.count("(not measured yet)")
    assert unknown == on_two_gpus if machines else unknown > on_two_gpus
    if machines:
        assert "It takes 220 ms, which is 18 % of what the bus can do, and is 1.36 × as fast as the first" in words
        assert f"Not measured on {MACHINE}: there is only one GPU." in words
        assert ("sd-tab-set" in page) == (len(machines) > 1)


def test_the_page_has_every_script_and_every_drawing():
    page = (ROOT / "docs" / "transfers.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^```\{literalinclude\} transfers/(\w+)\.py$", page, re.M)} == {s.stem for s in SCRIPTS}
    steps = [*DRAWN_ON_ONE_GPU, "small", "gpu_to_gpu", "gpu_to_gpu_through_host"]
    included = re.findall(r"^```\{include\} generated/transfers-(\w+)\.md$", page, re.M)
    assert included == steps  # in the order of the benchmark


def test_a_number_that_nobody_measures_is_an_error(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    stored = importlib.import_module("stored")
    for words in ("nosuch", "both_ways sideways", "both_ways up down", "both_ways range share"):
        with pytest.raises(stored.NotStored, match="names nothing that benchmarks/transfers.py measures"):
            stored.moved(words)


def test_each_tuned_recipe_is_called_with_page_locked_arrays_of_its_own(monkeypatch):
    def loaded(step):
        framework = step.removesuffix("_page_locked")
        if framework == "recipe_pycuda":
            raise ImportError("No module named 'pycuda'")
        return SimpleNamespace(
            pinned=lambda elements: f"page-locked by {framework}",
            round_trip=lambda a, b, out: (framework, a, b, out),
            device=SimpleNamespace(vendor="The pocl project", name="cpu-EPYC "),
        )

    monkeypatch.setattr(benchmark, "recipe", loaded)
    found = {each.name: each for each in benchmark.of_recipes(("ordinary",) * 3)}
    assert list(found) == list(benchmark.RECIPES)
    for name, way in found.items():
        framework = name.removesuffix("_page_locked")
        if framework == "recipe_pycuda":
            assert way.reason == "ImportError: No module named 'pycuda'"
        elif framework == "recipe_pyopencl":
            assert way.reason == "RuntimeError: OpenCL has only cpu-EPYC"
        else:
            arrays = (f"page-locked by {framework}" if name != framework else "ordinary",) * 3
            assert way.arrays == arrays and way.call(*arrays) == (framework, *arrays)


# ---- All of the benchmark, on the late device.

ALL = """
import importlib.util
import sys
from types import SimpleNamespace

sys.path[:0] = [{late!r}]
import fake_cupy

fake_cupy.install(gpus=2)
spec = importlib.util.spec_from_file_location("transfers", {script!r})
transfers = importlib.util.module_from_spec(spec)
sys.modules["transfers"] = transfers
spec.loader.exec_module(transfers)
transfers.ELEMENTS, transfers.ROUNDS, transfers.SMALL_CALLS, transfers.RECIPES = 3_000_000, 2, transfers.CALLS, {{}}
transfers.warm_up = transfers.require_gpu = lambda: None
transfers.transfers.commit_here = lambda *_: {commit!r}
gpus = [SimpleNamespace(name="A GPU that is made up")]
transfers.transfers.machine = SimpleNamespace(
    nvidia=lambda: SimpleNamespace(driver="1.2.3", gpus=gpus),
    processor=lambda: "A processor",
    versions=lambda packages: "Python",
)
transfers.FILE = transfers.Path({file!r})
{more}
transfers.main("made-up")
"""


@pytest.mark.slow
@pytest.mark.skipif(not machine.installed("torch"), reason="torch not installed")
@pytest.mark.parametrize("broken", [False, True])
def test_a_run_stores_a_line_with_every_step(broken, clone, results):
    more = "wrong = transfers.script('zero_copy')\nwrong.multiply = lambda a, b, out: None\n"
    more += "load = transfers.script\ntransfers.script = lambda name: wrong if name == 'zero_copy' else load(name)\n"
    values = {
        "late": str(Path(__file__).with_name("late")),
        "script": str(SCRIPT),
        "commit": git(clone, "rev-parse", "HEAD"),
    }
    text = ALL.format(**values, file=str(results / transfers.FILE), more=more * broken)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, complaints = transfers.kept(results)
    steps = found["made-up"].steps
    known = {*timelines.WAYS, *timelines.COPIES, *timelines.SMALL, timelines.ALLOCATION}
    assert complaints == [] and {*steps} == known - {*benchmark.RECIPES}
    of_torch = {
        name: steps.pop(name) for name in [*steps] if name.startswith("small_torch") and name != "small_torch_cpu"
    }
    assert len(of_torch) == 5 and all(step.reason and not step.time for step in of_torch.values())  # no GPU for it here
    failed = {name: step.reason for name, step in steps.items() if not step.time}
    assert all(reason.startswith("Wrong: element 0 is nan, not ") for reason in failed.values())
    assert {*failed} == ({"zero_copy"} if broken else set())
    once = {timelines.ALLOCATION, *(f"small_{part}" for part in timelines.PARTS)}  # not in every round
    assert all(step.time.count == 2 * benchmark.CALLS for name, step in steps.items() if step.time and name not in once)
    assert {bar[0].split()[0] for bar in steps["staged"].bars} == {"host"}
    assert 1 <= len({bar[0] for bar in steps["staged"].bars}) <= 3  # 3,000,000 elements are three pieces
    assert "both_ways" in done.stdout and "round 2 of 2" in done.stderr


INTERRUPTED = """
import random

def turns(number):
    if number == 1:
        raise KeyboardInterrupt
    return random.Random(number)

transfers.random = SimpleNamespace(Random=turns)
transfers.small = tuple
"""


@pytest.mark.slow
@pytest.mark.skipif(not machine.installed("torch"), reason="torch not installed")
def test_the_rounds_before_ctrl_c_are_shown_and_not_stored(clone, results):
    values = {
        "late": str(Path(__file__).with_name("late")),
        "script": str(SCRIPT),
        "commit": git(clone, "rev-parse", "HEAD"),
    }
    text = ALL.format(**values, file=str(results / transfers.FILE), more=INTERRUPTED)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert "both_ways" in done.stdout and done.stderr.count("Stopped early: this was not stored.\n") == 1
    assert not (results / transfers.FILE).exists()
