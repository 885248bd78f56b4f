"""The asv suite gives asv what compare measures, and no number of what is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cloning import rewrite
from conftest import git, in_opencl

from gpu_cookbook import catalogue
from gpu_cookbook.store import commits

ROOT = Path(__file__).parents[1]
ASV = Path(sys.executable).with_name("asv")
MULTIPLY = catalogue.FOLDER / "multiply" / "with_numpy.py"
WRONG = ROOT / "tests" / "wrong" / "multiply"
# asv's own class runs a benchmark of the suite, in which every technique is the recipe in {path}.
SUITE = """
import math, sys
from dataclasses import replace
from pathlib import Path
from asv_runner.discovery import _get_benchmark
from gpu_cookbook import catalogue
from gpu_cookbook.results import Probe
sys.path.insert(0, {root!r})
from benchmarks import workloads
recipe = catalogue.read(Path({path!r}))
catalogue.choose = lambda *_: [recipe]
measured = []
run = workloads.compare.runner.run

def once(recipe, action, sizes, *rest, **options):
    if action == "measure":
        measured.append(sizes)
    return run(recipe, action, sizes, *rest, probe=Probe("this CPU", 1e9, 0), **options)

workloads.compare.runner.run = once

def benchmark(name, *params):
    found = _get_benchmark(name, workloads, workloads.multiply, getattr(workloads.multiply, name))
    found._current_params = params
    return found
"""


def run(path, code):
    """(exit code, what it prints) of code after SUITE."""
    text = SUITE.format(root=str(ROOT), path=str(path)) + code
    done = subprocess.run([sys.executable, "-P", "-c", text], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_asv_gets_the_samples_that_were_measured_and_each_recipe_is_measured_once():
    code, said = run(
        MULTIPLY,
        """
for name in ("time_prepared", "time_device", "track_peak_device_memory"):
    assert benchmark(name, "numpy", 40_000).do_setup() is True  # which skips it
known = workloads._result("multiply", "numpy", 40_000)
for name, size, value in (("track_first_result", (), known["first"]["total"]), ("track_error", (40_000,), 0)):
    tracked = benchmark(name, "numpy", *size)
    assert not tracked.do_setup() and tracked.do_run() == value
resident = benchmark("time_resident", "numpy", 40_000)
assert not resident.do_setup()
found = resident.do_run()
samples = known["timings"]["resident"]["samples"]
assert found["number"] == 1 and len(found["samples"]) == len(samples) >= 10
assert all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(found["samples"], samples))
assert len(measured) == 1
""",
    )
    assert code == 0, said


@pytest.mark.slow
def test_the_first_of_a_workload_measures_all_that_asv_was_asked_for(tmp_path):
    """In asv itself: the plugin tells the suite what --bench chose."""
    wanted = "multiply.time_(resident|transfer)\\('(numpy|joblib|unknown)', 40000"
    told = "import sys; sys.stderr.write(f'measured: {[each.technique for each in recipes]} {sizes}')"
    suite = (ROOT / "benchmarks" / "workloads.py").read_text()
    for name in ("recipes", "kernels", "gpu_cookbook", "asv.conf.json"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    (tmp_path / "benchmarks" / "__init__.py").touch()
    (tmp_path / "benchmarks" / "workloads.py").write_text(
        suite.replace("    found = {each", f"    {told}\n    found = {{each")
    )
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "All"]):
        git(tmp_path, *arguments)
    commit = git(tmp_path, "rev-parse", "HEAD")
    command = [ASV, "run", "-E", "existing", "--set-commit-hash", commit, "--show-stderr", "--bench", wanted]
    subprocess.run([ASV, "machine", "--yes"], cwd=tmp_path, env=os.environ | {"HOME": str(tmp_path)}, check=True)
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"HOME": str(tmp_path)}, capture_output=True, text=True, timeout=600
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert said.count("measured: ") == said.count("measured: ['numpy', 'joblib'] [40000]") == 1, said
    (lines,) = (tmp_path / "benchmarks" / "results").glob("*/runs.jsonl")
    found = map(json.loads, lines.read_text().splitlines())
    stored = {(line["technique"], line["size"]): {*line.get("values", ())} for line in found}
    assert stored == {(technique, 40_000): {"resident", "transfer"} for technique in ("joblib", "numpy")}


def test_what_was_measured_in_this_run_is_read_without_the_recipes(monkeypatch, tmp_path):
    """asv starts some twenty processes for each recipe."""
    monkeypatch.setenv("GPU_COOKBOOK_ASV", str(tmp_path))
    code, said = run(
        MULTIPLY,
        """
catalogue.choose = None
kept = [{"size": 40_000, "status": "ok", "error": 0.25}]
(workloads._scratch() / "multiply-numpy.json").write_text(workloads.json.dumps(kept))
tracked = benchmark("track_error", "numpy", 40_000)
assert not tracked.do_setup() and tracked.do_run() == 0.25
""",
    )
    assert code == 0, said


@pytest.mark.parametrize(
    "older",
    ["sys.modules['gpu_cookbook.run.precision'] = None", "import gpu_cookbook.results as r; r.Result = r.Timing"],
)
def test_commits_of_before_this_suite_are_not_measured(older):
    code = f"""
import sys
{older}
from benchmarks import workloads
assert "cupy" in workloads.multiply.params[0]
try:
    workloads._measured("multiply", "numpy")
except NotImplementedError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "this commit is older than this suite can measure" in done.stdout, done.stderr


def test_an_asv_without_what_its_plugin_needs_says_what_to_install():
    code = "import sys; from asv.main import main; sys.modules['msgspec'] = None; sys.argv = ['asv', 'show']; main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "pip install --editable" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def refused_by_asv(*options):
    """What asv run says, which refuses this."""
    command = [ASV, "run", "--machine", "m", "--bench", "multiply.time_resident.*'numpy', 40000", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


STORED = ("-E", "existing", "--set-commit-hash")


def test_a_run_in_which_asv_would_not_take_all_samples_is_refused(clone):
    for options in (["--quick"], *(["--attribute", f"{name}=1"] for name in ("rounds", "repeat", "number"))):
        assert "omit --quick, and --attribute rounds, repeat" in refused_by_asv(*STORED, "HEAD", *options)
    assert not (clone / "benchmarks/results").exists()


def test_asv_stores_nothing_of_other_code_than_that_of_the_commit(clone):
    from test_store import commit_later

    old = git(clone, "rev-parse", "HEAD")
    assert "add -E existing" in refused_by_asv("--set-commit-hash", old)
    commit_later(clone)
    said = refused_by_asv(*STORED, old)
    assert f"belongs to a commit, and {old[:8]} is not the one that is checked out" in said
    assert "and nonsense is not the one that is checked out" in refused_by_asv(*STORED, "nonsense")
    rewrite(clone / "recipes/multiply/with_numpy.py", "# other\n")
    assert "commit your changes in recipes, kernels, gpu_cookbook first" in refused_by_asv(*STORED, "HEAD")
    assert not (clone / "benchmarks/results").exists()


@pytest.mark.slow
def test_asv_stores_nothing_if_the_code_changes_while_it_measures(clone):
    suite = (clone / "benchmarks/workloads.py").read_text()
    changing = '    (ROOT / "recipes/multiply/new.py").touch()\n    found = {each'
    rewrite(clone / "benchmarks/workloads.py", suite.replace("    found = {each", changing))
    subprocess.run([ASV, "machine", "--yes", "--machine", "m"], check=True)
    assert "commit your changes in recipes, kernels, gpu_cookbook first" in refused_by_asv(*STORED, "HEAD")
    assert {path.name for path in (clone / "benchmarks/results/m").iterdir()} == {"machine.json"}


def test_asv_writes_nothing_under_the_name_of_another_machine(clone):
    path = clone / "benchmarks/results/m/machine.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"machine": "m", "gpu": "A GPU that is made up", "version": 1}')
    before = path.read_bytes()
    subprocess.run([ASV, "machine", "--yes", "--machine", "m"], check=True)
    said = refused_by_asv(*STORED, "HEAD")
    assert "m has the results of another machine, with A GPU that is made up; this one has " in said
    assert path.read_bytes() == before


def test_asv_leaves_a_machines_facts_as_compare_writes_them(clone):
    from test_store import add, store

    subprocess.run([ASV, "machine", "--yes", "--machine", "m"], check=True)  # it knows the name, and nothing else
    path = clone / "benchmarks/results/m/machine.json"

    def facts_after_asv():
        command = [ASV, "run", "-E", "existing", "--machine", "m", "--bench", "just-discover"]
        subprocess.run(command, check=True, timeout=600)
        return json.loads(path.read_text())

    there = facts_after_asv()
    assert {"cpu", "num_cpu", "ram", "cpu_model"} <= there.keys()
    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    assert json.loads(path.read_text()) == there
    path.write_text(json.dumps(there | {"cooling": "water"}))
    assert facts_after_asv() == there | {"cooling": "water"}


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["resident", "transfer"])
def test_a_profile_is_that_of_a_real_call(metric, tmp_path):
    code, said = run(
        MULTIPLY,
        f"""
timed = benchmark("time_{metric}", "numpy", 40_000)
timed.do_setup()
timed.do_run()
timed.do_profile({str(tmp_path / "profile")!r})
import pstats
names = {{name for _, _, name in pstats.Stats({str(tmp_path / "profile")!r}).stats}}
assert "multiply" in names and ("download" in names) == ("{metric}" == "transfer"), names
""",
    )
    assert code == 0, said


@pytest.mark.parametrize(
    "name",
    [
        "dropped_tail",
        pytest.param("float64", marks=pytest.mark.slow),
        pytest.param("pyopencl_not_waited", marks=[pytest.mark.slow, in_opencl]),
    ],
)
def test_a_wrong_recipe_has_no_times(name):
    code, said = run(WRONG / f"with_{name}.py", "benchmark('time_resident', 'x', 40_000).do_setup()")
    assert code == 1 and "RuntimeError: failed its check" in said


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("catalogue.choose = unknown", "not at this commit: Unknown technique 'x'"),
        ("workloads.FITS = False", "this commit is older than this suite can measure"),
        ("workloads.measure.VERSION = 'other'", "this commit measures in another way: version other, not "),
        ("workloads.machine.obstacle = lambda _: 'needs a GPU'", "needs a GPU"),
    ],
)
def test_what_is_not_here_is_skipped_with_its_reason(change, reason):
    code, said = run(
        MULTIPLY,
        f"""
def unknown(*_):
    raise catalogue.UnknownName("Unknown technique 'x'")
{change}
try:
    workloads._result("multiply", "x", 40_000)
except NotImplementedError as error:
    print(error)
assert benchmark("time_resident", "x", 40_000).do_setup() is True
""",
    )
    assert code == 0 and reason in said, said


def test_parameters_are_those_of_the_clone_whatever_is_installed():
    """asv names a benchmark's parameters by their number, in every commit that it measures."""
    code, said = run(MULTIPLY, "catalogue.recipes = catalogue.of_workload = None; print(workloads.multiply.params[0])")
    assert code == 0 and said.startswith("['numpy', ") and "'cuda_core', 'cuda_core_tuned', 'cupy', " in said


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://example.org/some/cookbook.git", "https://example.org/some/cookbook"),
        ("git@example.org:some/cookbook.git", "https://example.org/some/cookbook"),
        ("ssh://git@example.org/some/cookbook", "https://example.org/some/cookbook"),
        ("ssh://git@example.org:2222/some/cookbook", "https://example.org/some/cookbook"),
        ("https://user:secret@example.org/some/cookbook", None),
        ("/home/someone/cookbook", None),
        ("", None),
    ],
)
def test_links_lead_to_the_remote_or_nowhere(remote, address, tmp_path):
    git(tmp_path, "init", "--quiet")
    if remote:
        git(tmp_path, "remote", "add", "origin", remote)
    assert commits.web_address(tmp_path) == address


@pytest.mark.slow
def test_published_pages_link_to_the_commits_of_the_remote(clone):
    from test_store import add, store

    add(store.Writer(store.Store(), "m"), "numpy", 40_000)
    for remote, links in (
        (None, {"project_url": "#", "show_commit_url": "#/?commit="}),
        (
            "git@example.org:a/b.git",
            {"project_url": "https://example.org/a/b", "show_commit_url": "https://example.org/a/b/commit/"},
        ),
    ):
        if remote:
            git(clone, "remote", "add", "origin", remote)
        done = subprocess.run([ASV, "publish", "--no-pull"], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        index = json.loads((clone / ".asv/html/index.json").read_text())
        assert links.items() <= index.items()
