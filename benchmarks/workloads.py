"""The asv suite: one class per workload, one technique per recipe.

Nothing is listed here: a new recipe or workload appears by itself. asv starts a process for each benchmark, technique
and size. The first of a workload measures all of its recipes and sizes that asv was asked for, as
``gpu-cookbook compare`` does: in processes of their own, checked, and with everything that is watched. The others read
what was found. What asv then times are those very calls: its clock goes forward by what each of them took. So both
commands give the same numbers, and the start of a framework is paid once. Only ``asv profile`` calls a recipe in asv's
own process.

The techniques and sizes are those of the folder recipes beside this one, the measuring is that of the commit that asv
has installed: asv tells a benchmark's parameters by their number, so that they must not depend on the commit.
"""

import ast
import atexit
import importlib.util
import json
import os
import re
import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

try:
    from gpu_cookbook import catalogue, machine
    from gpu_cookbook.results import Result
    from gpu_cookbook.run import compare, measure
    from gpu_cookbook.run.loader import Loader
    from gpu_cookbook.run.precision import workload_for

    # What this suite needs of the commit that asv has installed.
    FITS = {"runs"} <= {*Result.__dataclass_fields__} and {"stopped"} <= {*compare.Outcome.__dataclass_fields__}
except (ImportError, AttributeError):
    FITS = False
if FITS:
    with suppress(Exception):  # whatever an older commit's raises: its cells say so
        catalogue.recipes()  # read once, for all processes that asv forks from the one that has imported this

ROOT = Path(__file__).parents[1]
# What the timed metrics mean: that of this clone, as its results are compared with those of other commits.
VERSION = re.search(r'^VERSION = "(.*)"', (ROOT / "gpu_cookbook/run/measure.py").read_text("utf-8"), re.MULTILINE)[1]
# gpu_cookbook/store/asv_plugin.py sets both: the folder of this run of asv, and what it was asked for.
SCRATCH, WANTED = "GPU_COOKBOOK_ASV", "GPU_COOKBOOK_ASV_WANTED"


class Replay:
    """A clock for asv: in each call between two readings it goes forward by the next of the measured samples."""

    def __init__(self):
        self.now, self.samples, self.played, self.running = 0.0, [], 0, False

    def __call__(self):
        self.running = not self.running
        return self.now

    def step(self):
        self.now += self.samples[self.played]
        self.played += 1


CLOCK = Replay()


def _recipe(workload, technique):
    """The recipe. If it does not run here, a NotImplementedError with the reason, for which asv shows n/a."""
    if not FITS:
        raise NotImplementedError("this commit is older than this suite can measure: check it out, and use its own")
    if measure.VERSION != VERSION:
        raise NotImplementedError(f"this commit measures in another way: version {measure.VERSION}, not {VERSION}")
    try:
        (recipe,) = catalogue.choose([workload], [technique])
    except catalogue.UnknownName as error:
        raise NotImplementedError(f"not at this commit: {error}") from None
    if reason := machine.obstacle(recipe):
        raise NotImplementedError(reason)
    return recipe


def _scratch():
    """The folder of this run of asv, environment and commit; None without asv."""
    if SCRATCH not in os.environ:
        return None
    # asv names its own environments to their processes, but no other one.
    environment = os.environ.get("ASV_ENV_NAME", sys.executable.replace("/", "_"))
    folder = Path(os.environ[SCRATCH], environment, os.environ.get("ASV_COMMIT", "installed"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def _measured(workload, technique):
    """What ``compare`` finds of the recipe on this machine, as plain data: a list with one result per size."""
    folder = _scratch()
    kept = folder and folder / f"{workload}-{technique}.json"
    # Looked for first: asv asks some twenty times for each recipe, and reading all recipes takes longer.
    if kept and kept.exists():
        return json.loads(kept.read_text("utf-8"))
    recipe = _recipe(workload, technique)
    recipes, sizes = [recipe], catalogue.default_sizes(workload)
    if folder:
        techniques, asked = json.loads(os.environ[WANTED])[workload]
        recipes += _others(recipe, techniques)
        sizes = [size for size in sizes if repr(size) in asked]
    comparison = compare.Comparison(recipes, {workload: sizes})
    outcome = comparison.measure(lambda *_: None, lambda: None, save=None)
    if outcome.stopped or outcome.interrupted:
        raise outcome.stopped or KeyboardInterrupt
    found = {each.technique: [] for each in recipes}
    for result in outcome.results:
        found[result.technique].append(asdict(replace(result, runs={})))  # the runs: the values are in it, too
    for name, results in found.items():
        if folder:
            (folder / f"{workload}-{name}.json").write_text(json.dumps(results), "utf-8")
    return json.loads(json.dumps(found[recipe.technique]))


def _others(recipe, techniques):
    """The other recipes of the workload with these techniques that run here."""
    for technique in techniques:
        if technique != recipe.technique:
            with suppress(NotImplementedError):
                yield _recipe(recipe.workload, technique)


def _result(workload, technique, size):
    """The result of one size. RuntimeError if it is wrong; NotImplementedError if there is none."""
    for result in _measured(workload, technique):
        if result["size"] in (size, list(size) if isinstance(size, tuple) else size):
            if result["status"] in ("failed", "refused"):
                raise RuntimeError(result["reason"])
            if result["status"] == "skipped":
                raise NotImplementedError(result["reason"])
            return result
    raise NotImplementedError("too large for a machine without a GPU")


def _timed(workload, metric):
    """A benchmark with the times of a metric."""

    def time(self, technique, size):
        if CLOCK.running:
            CLOCK.step()
        else:
            _real_call(workload, technique, size, metric)()

    def setup(technique, size):
        if not CLOCK.samples:
            timing = _result(workload, technique, size)["timings"].get(metric)
            if timing is None:
                raise NotImplementedError("does not apply")
            CLOCK.samples = timing["samples"]
            time.repeat = len(CLOCK.samples)
        elif CLOCK.played == len(CLOCK.samples):  # asv is about to profile a call
            _real_call(workload, technique, size, metric)()  # the first one compiles

    time.setup = setup
    return time


@cache
def _real_call(workload, technique, size, metric):
    """A function that calls the recipe in this process, in the way that the metric is measured."""
    recipe = _recipe(workload, technique)
    module = Loader(recipe).execute()
    engine = ExitStack()
    if hasattr(module, "engine"):
        engine.enter_context(module.engine())
        atexit.register(engine.close)
    calls = measure.Calls(module, workload_for(recipe), size)
    if metric == "prepared":
        calls.prepare()
        return partial(calls.replayed, calls.now)
    host = {"transfer": measure.PAGEABLE, "pinned": measure.PINNED}.get(metric)
    calls.begin(host=host)
    return partial(calls.there_and_back if host else calls.synchronised, calls.now)


def _tracked(workload, value, unit, default=()):
    """A benchmark with one number of a result; ``value`` takes it out of the result's data."""

    def track(self, technique, *size):
        return value(_result(workload, technique, *(size or default)))

    def setup(technique, *size):
        if value(_result(workload, technique, *(size or default))) is None:
            raise NotImplementedError("does not apply")

    track.setup, track.unit = setup, unit
    return track


def _module(path):
    """The module of a workload's __init__.py."""
    spec = importlib.util.spec_from_file_location(f"suite_{path.parent.name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _functions(path):
    """The names of a recipe's functions; None if the file cannot be read, as gpu-cookbook says."""
    with suppress(OSError, SyntaxError, ValueError, MemoryError, RecursionError):
        return {node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)}


def _suite(folder):
    facts, workload = _module(folder / "__init__.py"), folder.name
    sizes = list(facts.SIZES)
    found = {path.stem.removeprefix("with_"): _functions(path) for path in folder.glob("with_*.py")}
    # As NAME in gpu_cookbook/catalogue.py, which the commit that asv has installed may not have.
    usable = re.compile("[a-z][a-z0-9_]{0,99}")
    recipes = {name: functions for name, functions in found.items() if functions is not None and usable.fullmatch(name)}
    if not recipes:
        return None
    techniques = sorted(recipes, key=lambda name: (name != "numpy", name))

    class Suite:
        params = (techniques, sizes)
        param_names = ("technique", "size")
        version = VERSION
        timeout = 86_400  # a day: the first call checks and measures all, and ends what hangs by itself
        timer = CLOCK
        rounds = number = min_run_count = 1
        warmup_time = 0

        time_resident = _timed(workload, "resident")
        time_device = _timed(workload, "device")
        track_first_result = _tracked(
            workload, lambda result: (result["first"] or {}).get("total"), "seconds", sizes[:1]
        )
        track_first_result.params = (techniques,)
        track_first_result.param_names = ("technique",)
        track_peak_device_memory = _tracked(workload, lambda each: each["peak_memory"], "bytes")
        track_error = _tracked(workload, lambda each: each["error"], "relative")
        if any("prepared" in functions for functions in recipes.values()):
            time_prepared = _timed(workload, "prepared")
        arrays = any(isinstance(x, np.ndarray) for x in facts.inputs(facts.EDGE_SIZES[0]))
        if arrays and not hasattr(facts, "GIVEN"):
            time_transfer = _timed(workload, "transfer")
        if any("pinned" in functions for functions in recipes.values()):
            time_pinned = _timed(workload, "pinned")

    Suite.__name__ = Suite.__qualname__ = workload
    return Suite


for _path in sorted((ROOT / "recipes").glob("*/__init__.py")):
    with suppress(Exception, SystemExit):  # a broken workload: gpu-cookbook says what is wrong with it
        if _class := _suite(_path.parent):
            globals()[_path.parent.name] = _class
