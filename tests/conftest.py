import gc
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import typer.testing
from cloning import copy_repository, git, make_repository  # noqa: F401 - tests take git from here

from gpu_cookbook import catalogue, cli, machine
from gpu_cookbook.run import compare, rules, runner
from gpu_cookbook.store import commits

ROOT = Path(__file__).parents[1]
FEWER_CALLS = str(ROOT / "tests" / "fewer_calls")  # in processes that measure: see its sitecustomize.py
# As gpu-cookbook sets them for each recipe: JAX would take most of a GPU's memory, beside what other tests need of it,
# and SciPy and scikit-learn would not dispatch to arrays on a GPU.
os.environ |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "SCIPY_ARRAY_API": "1"}
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (FEWER_CALLS, os.environ.get("PYTHONPATH"))))
CHROMIUM = shutil.which("chromium")
GET_CHROMIUM = "chromium is not on PATH: apt install chromium"
in_browser = pytest.mark.skipif(not CHROMIUM, reason=GET_CHROMIUM)
# PyOpenCL is not installed everywhere, and PoCL does not know every processor.
NO_OPENCL = machine.obstacle(catalogue.find("multiply", "pyopencl"))
in_opencl = pytest.mark.skipif(bool(NO_OPENCL), reason=NO_OPENCL or "")
# The files that take longest, the longest first: they begin first, so that all processes end at about the same time.
LONGEST = (
    *("test_site", "test_scale_clusters", "test_wrong", "test_store", "test_sending", "test_new_framework", "test_cli"),
    *("test_transfers", "test_scale_command", "test_endings", "test_door", "test_scale_out", "test_suite"),
)
# Their tests share nothing, and there are some of each recipe: each goes to whichever process is free, in the end. The
# last ones are those that take a few seconds each.
SINGLY = ("test_show", "test_late", "test_numba_simulator", "test_recipes")
HANG = 300  # seconds after which something hangs, however busy the machine is
# The command, without 'compare' measuring what this machine can do and checking the recipes before, which take most of
# its time.
MADE_UP = """
import functools, sys
from gpu_cookbook import cli
from gpu_cookbook.results import Probe
from gpu_cookbook.run import compare, runner
runner.run = functools.partial(runner.run, probe=Probe("made up", 1e3, 2**20))
if sys.argv[1:2] == ["compare"]:
    compare.check = lambda recipes, finished: compare.Outcome()
cli.app(prog_name="gpu-cookbook")
"""
UNPROBED = (sys.executable, "-c", MADE_UP)


def rejected(recipe, monkeypatch):
    """The results of a recipe's check; compare, which runs that check first, must measure nothing of it."""
    found, run = [], runner.run

    def checked(recipe, action, sizes):
        assert action == "check", "it was measured"
        found.extend(run(recipe, action, sizes))
        return found

    monkeypatch.setattr(runner, "run", checked)
    sizes = catalogue.default_sizes(recipe.workload)
    outcome = compare.Comparison([recipe], {recipe.workload: sizes}).measure(lambda *_: None, lambda: None, save=None)
    assert [(each.size, each.status) for each in outcome.results] == [(size, "failed") for size in sizes]
    assert not any(each.timings for each in outcome.results)
    return found


def workloads_of_kernels():
    """Those that every framework for kernels and arrays has a recipe of: convolution needs Fourier transforms,
    group_mean, group_mean_strings and read_parquet are on tables, pca needs eigenvectors, regression solves equations,
    and training needs derivatives."""
    tables = {"group_mean", "group_mean_strings", "read_parquet"}
    return set(catalogue.workloads()) - tables - {"convolution", "pca", "regression", "training"}


def starts_engine(recipe):
    return "engine" in recipe.functions


def starts_slowly(recipe):
    """It starts processes, or compiles for half a minute: JAX, for each shape of a chunk anew."""
    anew = recipe.workload == "random_subset_mean" and recipe.framework == "JAX"
    return starts_engine(recipe) or recipe.technique == "torch_compile" or anew


def together(recipes):
    """Test parameters: those recipes that run in one process, which are of one framework, but for those that start an
    engine."""
    found = {}
    for recipe in recipes:
        name = f"{recipe.workload}_{recipe.technique}" if starts_engine(recipe) else recipe.framework
        found.setdefault(name, []).append(recipe)
    return [pytest.param(mine, id=name) for name, mine in found.items()]


def recipes(*keep, slow=lambda recipe: False):
    """Test parameters: every recipe, those that cannot run here marked as skipped with the tool's own reason."""

    def marks(recipe):
        if reason := machine.obstacle(recipe):
            return [pytest.mark.skip(reason=reason)]
        return [pytest.mark.slow] if slow(recipe) else []

    return [
        pytest.param(recipe, id=f"{recipe.workload}-{recipe.technique}", marks=marks(recipe))
        for recipe in catalogue.recipes()
        if all(test(recipe) for test in keep)
    ]


def interruptible():
    """Ctrl-C interrupts a process that begins with this, wherever the tests themselves were started: what a shell
    starts in the background ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def until(condition, limit=HANG):
    """Waits until the condition is true, and returns its value."""
    end = time.monotonic() + limit
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {limit} s in vain"
        time.sleep(0.02)
    return value


def invoked(*arguments, code=0):
    """(standard output, standard error) of a command of the tool that ends with ``code``, in this process."""
    done = typer.testing.CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == code, done.output
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done.stdout, done.stderr


def ran(script, *arguments, limit=HANG):
    """A script of this folder, in a process of its own."""
    command = [sys.executable, Path(__file__).with_name(script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=limit)


def require_right_sizes(script, recipe, limit=HANG):
    """A script that checks a recipe on what stands for a GPU: it says at how many sizes."""
    done = ran(script, recipe.path, limit=limit)
    assert done.returncode == 0, done.stderr
    assert "sizes right" in done.stdout


def altered(path, old, new, folder=None):
    """The file with ``new`` in the place of ``old``, which it has once: itself, or a copy in another folder."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
    path = folder / path.name if folder else path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def committed(path, text):
    """The commit of a clone that adds a file with this text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    git(path.parent, "add", path.name)
    git(path.parent, "commit", "--quiet", "--message=A file")
    return git(path.parent, "rev-parse", "HEAD")


def has_ended(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def whatever_the_rules_say(monkeypatch):
    """Recipes that import more than the rules allow, as most do that are wrong on purpose, run all the same."""
    monkeypatch.setattr(rules, "fault", lambda recipe: None)


@pytest.fixture
def kept_kernels(monkeypatch, tmp_path_factory):
    """What a recipe's process compiles is kept for the other tests, as it is between a user's processes. The tool gives
    each process an empty cache, so that first results can be compared; how long these take, no test says."""
    environment, base = runner.environment, tmp_path_factory.getbasetemp()
    cache = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "kernels"  # of all of pytest's processes
    # With a limit JAX locks its cache, in which it would otherwise write files that others read already.
    of_jax = {"DIR": f"{cache}/jax", "MAX_SIZE": str(2**30)}

    def keeping(folder):
        settings = environment(folder)
        kept = {name: str(cache) for name in settings if settings[name] == f"{folder}/cache"}
        kept |= {f"JAX_COMPILATION_CACHE_{name}": value for name, value in of_jax.items()}
        return settings | kept | {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}

    monkeypatch.setattr(runner, "environment", keeping)


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    """A repository of one commit with these recipes and no results."""
    folder = tmp_path_factory.mktemp("repository")
    make_repository(folder)
    return folder


@pytest.fixture(scope="session")
def written(repository):
    """When each file of it was written."""
    files = [path for path in repository.rglob("*") if ".git" not in path.parts and path.is_file()]
    return {path: path.stat().st_mtime for path in files}


@pytest.fixture(scope="session")
def list_suite():
    """asv's list of the benchmarks, made once: to make it takes half of the time of a Writer, and it is the same in
    every copy of the repository, as Python imports the suite only once."""
    from asv_runner import discovery

    found, find = [], discovery.list_benchmarks

    def listed(folder, file):
        if not found:
            text = io.StringIO()
            find(folder, text)
            found.append(text.getvalue())
        file.write(found[0])

    return listed


@pytest.fixture
def clone(repository, written, list_suite, tmp_path, monkeypatch):
    """A copy of that repository; the current folder is in it."""
    monkeypatch.setattr("asv_runner.discovery.list_benchmarks", list_suite)
    copy_repository(repository, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))  # asv's ~/.asv-machine.json
    commits.changed_since.cache_clear()
    yield tmp_path
    changed = [path for path, time in written.items() if path.stat().st_mtime != time]
    assert not changed, "changed in every copy: see cloning.rewrite()"


@pytest.fixture
def results(clone):
    """The folder of its results."""
    return clone / "benchmarks" / "results"


@pytest.fixture(scope="session")
def browser():
    """One for all: Playwright's are not started beside each other in one process."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield chromium
        chromium.close()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is made meanwhile stays: nobody looks for garbage in it, neither now nor during the tests."""
    gc.disable()
    found = yield
    gc.freeze()
    gc.enable()
    return found


def pytest_collection_modifyitems(items):
    places = {name: place - len(LONGEST) for place, name in enumerate(LONGEST)}
    places |= {name: place for place, name in enumerate(SINGLY, 1)}
    items.sort(key=lambda item: places.get(item.path.stem, 0))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        """One process runs a file, whose tests share what they set up; those of SINGLY are given out one by one."""

        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            return nodeid if Path(file).stem in SINGLY else file

    config.option.loadscopereorder = False  # the order is that of LONGEST
    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Only what this machine lacks may skip a test: for any other reason it fails."""
    report = yield
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
    lacks = r"needs an NVIDIA GPU|not installed|no OpenCL driver|on PATH|no clone|belongs to the environment"
    if reason and not re.search(lacks, reason):
        report.outcome, report.longrepr = "failed", f"skipped for no good reason: {reason}"
    return report


def pytest_terminal_summary(terminalreporter):
    skipped = terminalreporter.stats.get("skipped", [])
    if count := sum(GET_CHROMIUM in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(f"{count} tests open the site in a browser, and were skipped: {GET_CHROMIUM}")
