"""docs/launches and benchmarks/launches.py: the scripts run on a device that is as late as CUDA allows
(late_launches.py), or as they are; what a launch takes is measured, stored, read and drawn. The lines here are made
up."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import typer
from conftest import altered, committed, git, ran
from lines import loaded, page_of, require_that_changes_cost_one_line, write

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import launches as shown
from gpu_cookbook.results import Timing
from gpu_cookbook.run import launches, measure
from gpu_cookbook.run.launches import COUNTS
from gpu_cookbook.store import commits, transfers
from gpu_cookbook.store.commits import StoreError
from gpu_cookbook.store.transfers import Step

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "launches.py"
SCRIPTS = sorted((ROOT / "docs" / "launches").glob("with_*.py"))
ON_LATE = {  # the scripts whose frameworks have a fake, and all that makes their arrays
    **{name: ("zeros",) for name in ("cuda_compute", "cuda_core", "cupy", "cutile", "numba_mlir", "pycuda")},
    "numba": ("zeros", "zeros_of_cupy", "zeros_of_torch"),
}

benchmark = loaded(SCRIPT)


# ---- The scripts.


late = partial(ran, "late_launches.py")


def script(name):
    return ROOT / "docs" / "launches" / f"with_{name}.py"


@pytest.mark.parametrize(("name", "zeros"), [(name, each) for name in ON_LATE for each in ON_LATE[name]])
def test_a_script_adds_one_with_each_launch_and_waits_for_it(name, zeros):
    for seed in range(2):
        done = late(script(name), zeros, seed)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("4 arguments, all right\nright\n")


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("cuda_core", "    stream.sync()\n\n\ndef download", "    pass\n\n\ndef download"),
        ("cuda_core", "    launch(builder, one,", "    launch(stream, one,"),
        ("cupy", "    cp.cuda.get_current_stream().synchronize()", "    pass"),
        ("cupy", "    with cp.cuda.Stream(non_blocking=True) as stream:  #", "    if stream := cp.cuda.Stream():  #"),
        ("cuda_compute", "    cp.cuda.get_current_stream().synchronize()", "    pass"),
        ("cuda_compute", "        x[15] + ONE,", "        x[15],"),
        (
            "cuda_compute",
            "op, both = kernels[len(arrays)], ZipIterator(*arrays)",
            "op, both = kernels[len(arrays)], ZipIterator(*zeros(len(arrays)))",
        ),
        ("cutile", "    cp.cuda.get_current_stream().synchronize()", "    pass"),
        ("cutile", "    with cp.cuda.Stream(non_blocking=True) as stream:  #", "    if stream := cp.cuda.Stream():  #"),
        (
            "cutile",
            "    ct.store(q, (0,), ct.load(q, (0,), (1,)) + 1)",
            "    ct.store(q, (0,), ct.load(p, (0,), (1,)) + 1)",
        ),
        ("numba_mlir", "    cuda.synchronize()", "    pass"),
        ("numba_mlir", "[1, 1, stream](*arrays)", "[1, 1](*arrays)"),
        ("numba_mlir", "    q[0] += ONE\n", ""),
        ("numba", "    cuda.synchronize()", "    pass"),
        ("numba", "    q[0] += 1\n", ""),
        ("pycuda", "    autoprimaryctx.context.synchronize()", "    pass"),
        ("pycuda", "[x.gpudata for x in arrays]", "len(arrays) * [arrays[0].gpudata]"),
    ],
)
def test_a_script_that_does_not_is_found_out(name, right, wrong, tmp_path):
    shutil.copytree(ROOT / "docs" / "launches", tmp_path / "launches")
    path = altered(tmp_path / "launches" / f"with_{name}.py", right, wrong)
    assert any(late(path, "zeros", seed).returncode for seed in range(3))


@pytest.mark.parametrize("name", ["pyopencl", "jax", "warp"])
def test_a_script_runs_as_it_is(name):
    if obstacle := machine.obstacle(catalogue.read(script(name))):
        pytest.skip(obstacle)
    done = subprocess.run([sys.executable, script(name)], capture_output=True, text=True, timeout=120)
    assert done.stdout.endswith("4 arguments, all right\n"), done.stderr


def test_the_kernels_compile():
    from gpu_cookbook.run.cuda_core import Program, ProgramOptions

    text = script("cupy").with_name("add_one.cu").read_text(encoding="utf-8")
    code = Program(text, "c++", ProgramOptions(arch="sm_90")).compile("cubin").code
    assert all(f"add_{count}\0".encode() in code for count in COUNTS)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_form(path):
    recipe = catalogue.read(path)
    assert recipe.follows and not recipe.fault
    assert ("prepared" in recipe.functions) == (recipe.technique != "numba")
    assert {"zeros", "add_one", "wait", "download"} <= {*recipe.functions}


def test_every_script_is_measured_and_every_measurement_has_a_name():
    measured = {name: benchmark.script_of(name) for name in shown.WAYS}
    assert {name for name, _ in measured.values()} == {path.stem.removeprefix("with_") for path in SCRIPTS}
    for name, (each, zeros) in measured.items():
        assert zeros in catalogue.read(script(each)).functions
        sources = transfers.sources(f"{name}_4_resident")
        assert f"docs/launches/with_{each}.py" in sources and all((ROOT / path).exists() for path in sources)
        kernels = re.findall(r'with_name\("([^"]*)"\)', script(each).read_text(encoding="utf-8"))
        assert sources == {f"docs/launches/{file}" for file in (f"with_{each}.py", *kernels)}


# ---- Measuring.


def made_up(**functions):
    """A script whose arrays are lists of one number."""

    def add_one(arrays):
        for x in arrays:
            x[0] += 1
        return arrays

    usual = {"add_one": add_one, "wait": lambda arrays: None, "download": lambda arrays: [x[0] for x in arrays]}
    return SimpleNamespace(**usual | functions)


def outcomes(module):
    return {(count, what): each for count, what, each in launches.outcomes(module, lambda n: [[0] for _ in range(n)])}


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(measure, "BUDGET", 1e-4)


def test_every_time_is_taken(quick):
    module = made_up()
    module.prepared = lambda arrays: lambda: module.add_one(arrays)
    found = outcomes(module)
    assert {*found} == {(count, what) for count in COUNTS for what in ("resident", "issued", "prepared")}
    assert all(isinstance(each, Timing) and each.median > 0 and each.count for each in found.values())


def test_what_a_framework_does_not_have_is_left_out(quick):
    assert {what for _, what in outcomes(made_up())} == {"resident", "issued"}


def test_what_adds_anything_else_is_not_kept(quick):
    def twice(arrays):
        module.add_one(arrays)
        return lambda: module.add_one(arrays)

    def last_one_missing(arrays):
        for x in arrays[:15]:
            x[0] += 1
        return arrays

    module = made_up()
    module.prepared = twice
    found = outcomes(module)
    assert re.fullmatch(r"argument 1 holds \d+ after \d+ launches", found[4, "prepared"])
    assert isinstance(found[4, "resident"], Timing)
    found = outcomes(made_up(add_one=last_one_missing))
    assert isinstance(found[4, "issued"], Timing) and found[16, "issued"].startswith("argument 16 holds 0 after ")


def test_what_fails_costs_only_itself(quick):
    def fails(arrays):
        raise RuntimeError("no graphs here")

    found = outcomes(made_up(prepared=fails))
    assert {what for (_, what), each in found.items() if isinstance(each, Timing)} == {"resident", "issued"}
    assert found[1, "prepared"] == "RuntimeError: no graphs here"


def test_a_batch_counts_as_so_many_launches(quick, monkeypatch):
    monkeypatch.setattr(measure, "clock", iter(range(10**9)).__next__)
    found = outcomes(made_up())
    assert found[1, "resident"].median == 1 and found[1, "issued"].median == 1 / launches.BATCH


# ---- The benchmark.

SMALL = '''"""Launches nothing.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import os
import time


def zeros(n):
    return [[0] for _ in range(n)]


def zeros_of_torch(n):
    import nosuch


def add_one(arrays):
    if len(arrays) == 4:
        {does}
    for x in arrays:
        x[0] += 1
    return arrays


def wait(arrays):
    pass


def download(arrays):
    return [x[0] for x in arrays]
'''


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    """A folder of scripts that stands for docs/launches."""
    monkeypatch.setattr(benchmark, "SCRIPTS", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("os._exit(3)", "ended with exit code 3"),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL, which the system sends when memory runs out"),
        ("time.sleep(60)", "timed out after 5 s"),
    ],
)
def test_a_script_that_crashes_or_hangs_loses_only_what_follows(does, reason, scripts, monkeypatch):
    monkeypatch.setattr(benchmark, "LIMIT", 5)
    (scripts / "with_numba.py").write_text(SMALL.format(does=does))
    *done, last = benchmark.measured("numba")
    assert [step.name for step in done] == ["numba_1_resident", "numba_1_issued"]
    assert all(step.time.count >= measure.SAMPLES and not step.reason for step in done)
    assert last == Step("numba", reason=reason)


def test_a_library_that_is_missing_is_named(scripts):
    (scripts / "with_numba.py").write_text(SMALL.format(does="pass"))
    assert [*benchmark.measured("numba_on_torch")] == [
        Step("numba_on_torch", reason="ModuleNotFoundError: No module named 'nosuch'")
    ]


def test_what_does_not_run_on_the_gpu_is_not_taken_for_it(scripts, monkeypatch):
    (scripts / "with_numba.py").write_text(SMALL.format(does="pass"))
    monkeypatch.setattr(machine, "gpus", lambda: (SimpleNamespace(name="A GPU that is made up"),))
    (step,) = benchmark.measured("numba")
    assert step.reason == f"it runs on {machine.processor()}, not on the GPU"


@pytest.mark.skipif(bool(machine.gpus()), reason="there is a GPU")
def test_without_a_gpu_the_others_say_why():
    (step,) = benchmark.measured("cupy")
    assert step == Step("cupy", reason="needs an NVIDIA GPU, but this machine has none")


def test_a_run_is_stored_and_read_again(clone, scripts, monkeypatch, capsys):
    for name in ("numba", "pyopencl"):
        (scripts / f"with_{name}.py").write_text(SMALL.format(does="pass"))
    results = clone / "benchmarks" / "results"
    monkeypatch.setattr(shown, "WAYS", {name: shown.WAYS[name] for name in ("numba", "numba_on_torch")})
    monkeypatch.setattr(benchmark, "ROOT", clone)
    monkeypatch.setattr(benchmark, "FILE", results / transfers.LAUNCHES)
    benchmark.main("made-up")
    assert re.search(r"Numba +[~\d.]+ µs", capsys.readouterr().out)
    found, complaints = transfers.kept(results, transfers.LAUNCHES)
    assert complaints == [] and found["made-up"].origin.commit == git(clone, "rev-parse", "HEAD")
    assert {*found["made-up"].steps} == {f"numba_{n}_{what}" for n in COUNTS for what in ("resident", "issued")} | {
        "numba_on_torch"
    }
    (results / "other").mkdir()
    (results / "other" / "machine.json").write_text('{"machine": "other", "gpu": "Another GPU", "version": 1}')
    with pytest.raises(StoreError, match="other has the results of another machine, with Another GPU; this one has"):
        benchmark.main("other")
    (clone / "gpu_cookbook").mkdir(exist_ok=True)
    (clone / "gpu_cookbook" / "new.py").write_text("")
    with pytest.raises(StoreError, match="A stored line belongs to a commit"):
        benchmark.main("made-up")


def test_what_was_measured_before_ctrl_c_is_shown(monkeypatch, capsys):
    def measured(name):
        yield Step(f"{name}_1_resident", Timing(0.00123, 0.001, 0.002, 9))
        raise KeyboardInterrupt

    monkeypatch.setattr(benchmark, "measured", measured)
    with pytest.raises(typer.Exit) as ended:
        benchmark.main()
    out, err = capsys.readouterr()
    assert ended.value.exit_code == 130 and "1.23 ms" in out and err.splitlines()[1:] == ["Stopped early."]


def test_each_environment_measures_its_own_scripts(monkeypatch, capsys):
    found = {}
    for name in ("main", "cutile", "numba_mlir", "cuda_compute"):
        monkeypatch.setenv(machine.VARIABLE, name)
        found[name] = benchmark.ways_here()
    assert [found.pop(name) for name in ("cutile", "numba_mlir", "cuda_compute")] == [
        ["cutile"],
        ["numba_mlir"],
        ["cuda_compute"],
    ]
    assert {*found["main"]} == {*shown.WAYS} - {"cutile", "numba_mlir", "cuda_compute"}
    monkeypatch.setenv(machine.VARIABLE, "nvmath")
    with pytest.raises(typer.Exit):
        benchmark.main()
    known = "cuda_compute, cutile, main, numba_mlir"
    assert f"No script of docs/launches belongs to the environment nvmath: those of {known} do." in " ".join(
        capsys.readouterr().err.split()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pyopencl", "warp"])
def test_a_framework_is_measured(name):
    if obstacle := machine.obstacle(catalogue.read(script(name))):
        pytest.skip(obstacle)
    steps = {step.name: step for step in benchmark.measured(name)}
    names = {f"{name}_{count}_{what}" for count in COUNTS for what in ("resident", "issued", "prepared")}
    assert {*steps} == names and all(step.time for step in steps.values()), steps


# ---- The store.


def measured(name, microseconds):
    time_s = microseconds / 1e6
    return {"step": name, "time_s": time_s, "q1_s": 0.99 * time_s, "q3_s": 1.01 * time_s, "samples": 1000}


def line(commit, machine_name="made-up"):
    """A line with times that nobody measured."""
    steps = []
    for number, name in enumerate(shown.WAYS):
        for what in ("resident", "issued", *["prepared"] * (benchmark.script_of(name)[0] != "numba")):
            steps += [measured(f"{name}_{n}_{what}", 10 * (number + 1) + n) for n in COUNTS if name != "triton"]
    missing = [
        {"step": "triton", "reason": "triton not installed: pip install triton"},
        {"step": "cupy_16_prepared", "reason": "argument 16 holds 0.0 after 7 launches"},
    ]
    return {
        "machine": machine_name,
        "device": "A GPU that is made up",
        "driver": "1.2.3",
        "processor": "A processor, 16 cores",
        "versions": "Python 3.12.3",
        "date": "2026-11-23",
        "commit": commit,
        "elements": 1,
        "steps": [*(step for step in steps if step["step"] != "cupy_16_prepared"), *missing],
    }


@pytest.fixture
def kept(clone, results):
    write(results / transfers.LAUNCHES, line(git(clone, "rev-parse", "HEAD")))
    found, complaints = transfers.kept(results, transfers.LAUNCHES)
    assert complaints == []
    return found["made-up"]


@pytest.fixture
def ways(kept):
    return transfers.by_way([kept])


def test_a_line_is_read_as_it_was_written(clone, results, kept):
    written = [transfers.record(step) for step in kept.steps.values()]
    assert json.loads(json.dumps(written)) == line(git(clone, "rev-parse", "HEAD"))["steps"]
    assert transfers.kept(results)[0] == {}  # they are no ways from host to host


@pytest.mark.parametrize(
    ("file", "stale"),
    [
        ("with_numba.py", {"numba", "numba_on_cupy", "numba_on_torch"}),
        ("with_pyopencl.py", {"pyopencl"}),
        ("add_one.cl", {"pyopencl"}),
        ("add_one.cu", {"cuda_core", "cupy", "pycuda"}),
    ],
)
def test_a_launch_is_stale_once_its_script_or_its_kernel_has_changed(file, stale, clone, results):
    path = clone / "docs" / "launches" / file
    write(results / transfers.LAUNCHES, line(committed(path, "first = 1\n")))
    path.write_text("second = 2\n")
    commits.changed_since.cache_clear()
    steps = transfers.kept(results, transfers.LAUNCHES)[0]["made-up"].steps.values()
    assert {re.sub(r"_\d+_\w+$", "", step.name) for step in steps if step.stale} == stale


def test_a_line_that_was_changed_anywhere_costs_at_most_itself(clone, results):
    path = results / transfers.LAUNCHES
    require_that_changes_cost_one_line(
        path,
        line(git(clone, "rev-parse", "HEAD")),
        lambda: transfers.every(results, transfers.LAUNCHES),
        lambda run: [shown.table(run.steps, run.device)],
    )


# ---- What the page shows.


def test_the_table_has_every_time_and_says_what_is_missing(kept):
    table = shown.table(kept.steps, "A title")
    rows = [[entry.text for entry in row] for row in table.rows]
    groups = [row[0].text for row in table.rows if row[0].mark == "group"]
    assert groups == ["resident", "issued", "prepared"]
    resident = rows[1 : rows.index(["issued", *[""] * 4])]
    assert [row[0] for row in resident] == list(shown.WAYS.values())
    assert ["CuPy", "31.0 µs", "34.0 µs", "46.0 µs", ""] in resident
    assert ["Triton", "–", "–", "–", "triton not installed: pip install triton"] in resident
    prepared = rows[rows.index(["prepared", *[""] * 4]) + 1 :]
    assert ["CuPy", "31.0 µs", "34.0 µs", "–", "16: argument 16 holds 0.0 after 7 launches"] in prepared
    assert not any(row[0].startswith(("Numba", "Triton")) for row in prepared)
    assert all(len(row) == len(table.head) == len(table.align) for row in table.rows) and table.notes == []
    steps = {name: step for name, step in kept.steps.items() if not step.reason}
    assert len(shown.table(steps, "").head) == 4


def test_stale_and_noisy_times_are_marked(kept):
    step = kept.steps["jax_4_issued"]
    steps = dict(kept.steps) | {"jax_4_issued": replace(step, stale=True, time=replace(step.time, q3=1.0))}
    table = shown.table(steps, "")
    assert any(row[2].text == "†~54.0 µs" for row in table.rows)
    assert [note.text[0] for note in table.notes] == ["†", "~"]


def test_the_chart_has_every_time(kept, ways):
    chart = shown.launches(ways)
    drawn = ElementTree.fromstring(chart.svg)
    texts = {"".join(each.itertext()).strip() for each in drawn.iter() if each.tag.endswith("text")}
    assert {*shown.WAYS.values()} - texts == {"Triton"}
    assert {"resident", "issued", "prepared", "with 1 argument", "with 16 arguments"} <= texts
    # One use of a marker for each time, and six in the legend.
    times = sum(step.time is not None for step in kept.steps.values())
    assert sum(each.tag.endswith("use") and "clip-path" not in each.attrib for each in drawn.iter()) >= times + 6
    assert chart.text.startswith("Resident, with 4 arguments: cuda.compute 14.0 µs; cuda.core 24.0 µs; ")
    assert "currentColor" in chart.svg and "#010203" not in chart.svg


def test_without_a_time_there_is_no_chart(kept):
    assert shown.launches({"jax": replace(kept, steps={"jax": Step("jax", reason="not installed")})}) is None


def test_the_newest_line_of_each_way_is_shown_with_its_origin(clone, results):
    """Of another environment, which has lines of its own, also of the same commit and day."""
    commit = git(clone, "rev-parse", "HEAD")
    other = {"date": "2026-11-24", "versions": "Python 3.12.3, cuda-tile 1.7.0"}
    main = line(commit)
    main["steps"] = [step for step in main["steps"] if not step["step"].startswith("cutile")]
    older = line(commit) | other | {"steps": [measured("cutile_4_resident", 1.0), measured("cutile_4_issued", 1.0)]}
    newer = line(commit) | other | {"steps": [measured("cutile_4_resident", 2.0)], "driver": ""}
    elsewhere = main | {"device": "Another GPU", "date": "2026-11-22", "steps": [measured("numba_mlir_4_issued", 3.0)]}
    write(results / transfers.LAUNCHES, elsewhere, older, newer, main)
    runs, complaints = transfers.every(results, transfers.LAUNCHES)
    assert complaints == [] and len(runs) == 4
    ways = transfers.by_way(runs)
    assert {*ways} == {step.split("_4_")[0] for step in {each["step"] for each in main["steps"]} if "_4_" in step} | {
        "cutile",
        "triton",
    }
    assert {*ways["cutile"].steps} == {"cutile_4_resident"} and ways["cutile"].seconds("cutile_4_resident") == 2e-6
    assert {*ways["numba_on_cupy"].steps} == {
        f"numba_on_cupy_{n}_{what}" for n in COUNTS for what in ("resident", "issued")
    }
    chart = shown.launches(ways)
    assert chart.title == "What a launch takes: A GPU that is made up"
    first, second = (note.text for note in chart.table.notes)
    where = f"made-up, commit {commit[:8]}"
    rest = ", ".join(label for name, label in shown.WAYS.items() if name in ways and name != "cutile")
    assert first == f"{rest}: {where}, 2026-11-23; driver 1.2.3; A processor, 16 cores; Python 3.12.3"
    assert second == f"cuTile: {where}, 2026-11-24; A processor, 16 cores; Python 3.12.3, cuda-tile 1.7.0"


def test_the_page_has_every_script():
    page = (ROOT / "docs" / "launches.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^```\{literalinclude\} launches/(.+\.py)$", page, re.M)) == [s.name for s in SCRIPTS]


@pytest.mark.slow
@pytest.mark.parametrize("machines", [[], ["nvidia-h200"], ["nvidia-h200", "amd-epyc"]])
def test_the_page_shows_what_is_stored(machines, tmp_path):
    source, file = tmp_path / "docs", tmp_path / "lines"
    shutil.copytree(ROOT / "docs" / "launches", source / "launches")
    text = (ROOT / "docs" / "launches.md").read_text(encoding="utf-8")
    text += "\nCuPy takes {launch}`cupy 4 resident`, JAX {launch}`jax 4 issued / cupy 4 resident` as long.\n"
    (source / "index.md").write_text(text, encoding="utf-8")
    head = git(ROOT, "rev-parse", "HEAD")
    lines = [line(head, name) for name in machines]
    for fewer in lines[:-1]:
        fewer["steps"] = [step for step in fewer["steps"] if not step["step"].startswith("warp")]
    write(file, *lines)
    stands = "{run.origin.machine: transfers.by_way([run]) for run in runs}"
    page = page_of(source, "launches", file, "launched", stands)
    assert page.count("<svg") == len(machines)
    if len(machines) > 1:  # that with most frameworks first
        assert re.findall(r'data-sync-id="(nvidia-h200|amd-epyc)"', page) == ["amd-epyc", "nvidia-h200"]
    assert ("Not measured yet" in page) == (not machines)
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))
    times = ("34.0 µs", "1.59 ×") if machines else ("(not measured yet)",) * 2
    assert "CuPy takes {}, JAX {} as long.".format(*times) in words


def test_a_launch_that_nobody_measures_is_an_error(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    stored = importlib.import_module("stored")
    for words in ("torch 4 resident", "cupy 5 resident", "cupy 4 device", "cupy four resident", "cupy 4"):
        with pytest.raises(stored.NotStored, match=r"names nothing that benchmarks/launches.py measures"):
            stored.launch(words)
