"""Cells in asv's own result files, under the names of the suite in benchmarks/: written and read through asv's classes.

``compare --save`` writes here what ``asv run`` would, in a fraction of the time; ``tables`` reads what either wrote.
"""

import ast
import contextlib
import fcntl
import io
import itertools
import json
import math
import re
import sys
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path

import gpu_cookbook.kernels
from gpu_cookbook import catalogue, machine
from gpu_cookbook.run import measure
from gpu_cookbook.store import conditions
from gpu_cookbook.store.commits import StoreError, changed_since, git, sources

# The benchmarks of a workload's class -> the figure of a cell, and what asv's statistics of it are called there.
TIMED = {"time_resident": "resident", "track_device_time": "device", "time_transfer": "transfer"}
CODE = ("recipes", "kernels", "gpu_cookbook")  # what a figure depends on
SCALARS = {"track_first_result": "first_result_s", "track_peak_device_memory": "peak_device_memory_bytes"}
COPYING = "device_copy_bandwidth_gb_per_s"
STATISTICS = {
    "q_25": "q1_s",
    "q_75": "q3_s",
    "repeat": "samples",
    "ci_99_a": "ci99_a_s",
    "ci_99_b": "ci99_b_s",
}


class Store:
    """The results under benchmarks/results of a clone."""

    def __init__(self):
        from asv import config, repo

        self.root = _root()
        self.config = config.Config.load(str(self.root / "asv.conf.json"))
        self.config.repo = str(self.root)
        self.config.benchmark_dir = str(self.root / "benchmarks")
        self.config.results_dir = str(self.root / "benchmarks" / "results")
        self.folder = Path(self.config.results_dir)
        self.scratch = self.root / ".asv"  # asv's own, which git ignores
        if not git(self.root, "rev-parse", "--verify", "--quiet", "HEAD"):
            raise StoreError(f"Stored results belong to commits, and {self.root} is no git repository with one.")
        self.repo = repo.get_repo(self.config)

    def load(self):
        """(cells, complaints): every stored cell with its machine, commit, environment and whether it is stale; and a
        line for each file that cannot be used."""
        known = conditions.read(self.folder)
        cells, complaints = [], []
        for path in sorted(self.folder.glob("*/*.json")):
            if path.name == "machine.json":
                continue
            try:
                cells += self._read(path, known)
            except Exception as error:  # whatever a broken file does to asv's reader: the others are shown
                complaints.append(f"{path.relative_to(self.root)}: {_first_line(error)}")
        return cells, complaints

    def _read(self, path, known):
        from asv import results, util

        try:
            stored = results.Results.load(str(path), machine_name=path.parent.name)
        except (util.UserError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise StoreError(f"not a result file of asv, or cut off ({_first_line(error)})") from error
        changed = changed_since(self.root, stored.commit_hash)
        date = int(stored.date)
        cells = {}
        for name in stored.get_all_result_keys():
            _, workload, benchmark = (f".{name}".rsplit(".", 2) + ["", ""])[:3]
            if workload in catalogue.workloads() and stored.benchmark_version[name] == measure.VERSION:
                self._fill(cells, stored, name, workload, benchmark, known)
        measured = max(map(int, stored.started_at.values()))
        for cell in cells.values():
            recipe = _recipe(cell["workload"], cell["technique"])
            cell |= {
                "machine": path.parent.name,
                "commit": stored.commit_hash,
                "environment": stored.env_name,
                "measured_at": (date, measured),
                "date": time.strftime("%Y-%m-%d", time.gmtime(measured / 1000)),
                "stale": recipe is None or bool(changed & sources(recipe)),
            }
        return [_judged(cell) for cell in cells.values() if cell["status"]]

    def _fill(self, cells, stored, name, workload, benchmark, known):
        """Adds one benchmark's values to the cells that they belong to."""
        params = stored.get_result_params(name)
        values = stored.get_result_value(name, params)
        statistics = stored.get_result_stats(name, params)
        first_size = catalogue.workload_module(workload).SIZES[0]
        for param, value, stats in zip(itertools.product(*params), values, statistics, strict=True):
            technique, *size = map(ast.literal_eval, param)
            size = size[0] if size else first_size  # the first result is the recipe's, shown with its first size
            cell = cells.setdefault((workload, technique, size), _empty(workload, technique, size))
            if benchmark == "track_conditions":
                if value in known:
                    _apply(cell, known[value])
            elif value is None:
                cell["status"] = "failed"  # whatever else went well
            elif not math.isnan(value):
                cell["status"] = cell["status"] or "ok"
                if benchmark in SCALARS:
                    cell[SCALARS[benchmark]] = value
                elif benchmark in TIMED:
                    figure = TIMED[benchmark]
                    cell[f"{figure}_s"] = value
                    for key, ours in STATISTICS.items():
                        cell[f"{figure}_{ours}"] = (stats or {}).get(key)


def _judged(cell):
    """A cell of `asv run` has not been held against what the device can do: what compare refuses is refused here."""
    if cell["status"] == "ok" and "resident_s" in cell:
        probe = {"copy_bandwidth_gb_per_s": cell.get(COPYING), "cache_bytes": cell.get("device_cache_bytes")}
        try:
            measure.judge(cell, catalogue.workload_module(cell["workload"]), cell["size"], probe)
        except measure.Refused as error:
            cell |= {"status": "refused", "reason": str(error)}
    return cell


def select(cells, machines=None, commits=None, environments=None):
    """([cells], []), the newest of each machine and workload; or ([], [(before, after), …]) where two machines, commits
    or environments are named: a pair a machine, since two of them never stand for one another unasked.

    A StoreError names the known ones where nothing fits.
    """
    named = {"machine": machines or (), "commit": commits or (), "environment": environments or ()}
    for key, wanted in named.items():
        if len(wanted) > 2:
            raise StoreError(f"--{key} may be given twice at most, to compare two.")
        for word in wanted:
            if not any(_fits(cell, key, word) for cell in cells):
                known = sorted({cell[key][:8] if key == "commit" else cell[key] for cell in cells})
                there = f"There are: {', '.join(known)}." if known else "None are stored yet: compare --save."
                raise StoreError(f"No results of {key} '{word}'. {there}")
    double = [key for key, wanted in named.items() if len(wanted) == 2]
    if len(double) > 1:
        raise StoreError(f"Compare two of one kind: --{' and --'.join(double)} were both given twice.")
    sides = [
        _newest(cells, {key: wanted[min(side, len(wanted) - 1)] for key, wanted in named.items() if wanted})
        for side in range(2)
    ]
    if not double:
        return sides[0], []
    if double == ["machine"]:
        return [], [tuple(sides)]
    both = sorted({cell["machine"] for cell in sides[0]} & {cell["machine"] for cell in sides[1]})
    if not both:
        raise StoreError("No machine has results of both.")
    return [], [tuple([cell for cell in side if cell["machine"] == name] for side in sides) for name in both]


def _fits(cell, key, word):
    return cell[key].startswith(word) if key == "commit" else cell[key] == word


def _newest(cells, wanted):
    """Of each machine and workload what belongs to the newest commit; of its environments, the one with most figures,
    or else the last one."""
    mine = [cell for cell in cells if all(_fits(cell, key, word) for key, word in wanted.items())]

    def run(cell):
        return cell["machine"], cell["workload"], cell["commit"], cell["environment"]

    figures = Counter(run(cell) for cell in mine if cell["status"] == "ok")
    best = {}
    for cell in mine:
        date, measured = cell["measured_at"]
        rank = (date, figures[run(cell)], measured, run(cell))
        best[run(cell)[:2]] = max(rank, best.get(run(cell)[:2], rank))
    return [cell for cell in mine if run(cell) == best[run(cell)[:2]][-1]]


def _empty(workload, technique, size):
    recipe = _recipe(workload, technique)
    about = {"framework": recipe.framework if recipe else technique, "lane": catalogue.lane_of(technique)}
    unknown = dict.fromkeys(("math", "device", "driver", "cuda", "clock", "versions", "status", "reason"))
    return {"workload": workload, "technique": technique, "size": size, **about, **unknown}


def _apply(cell, found):
    """The conditions of a line of conditions.jsonl, as a cell has them."""
    recipe = _recipe(cell["workload"], cell["technique"])
    wanted = ("python", *sorted(recipe.packages if recipe else found["versions"]))
    cell |= {key: found[key] for key in ("device", "driver", "cuda", "clock", "math")}
    cell[COPYING] = found["copy_bandwidth_gb_per_s"]
    cell["device_cache_bytes"] = found["cache_bytes"]
    versions = (found["versions"][module] for module in wanted if module in found["versions"])
    cell["versions"] = ", ".join(dict.fromkeys(versions))
    if found["status"] != "ok":
        cell |= {"status": found["status"], "reason": found["reason"]}


class Writer:
    """Adds cells to the file of this machine, commit and environment, each as soon as it is measured."""

    def __init__(self, store, machine_name=None, resume=False):
        """``resume``: keeps the stored sizes of a recipe that are not measured again; else they are forgotten, as they
        may come from other versions."""
        from asv import environment
        from asv import machine as asv_machine
        from asv_runner import discovery

        self.store = store
        self.resume = resume
        self.commit = store.repo.get_hash_from_name("HEAD")
        self.refuse_what_is_not_committed()
        self._refuse_another_installation()
        if machine_name is not None and not re.fullmatch(r"\w[\w.-]*", machine_name):
            raise StoreError(
                f"'{machine_name}' cannot name a machine: letters, digits, '_', '-' and '.', as in my-gpu."
            )
        machine_name = machine_name or asv_machine.Machine.get_unique_machine_name()
        defaults = asv_machine.Machine.get_defaults() | {"machine": machine_name}
        if machine.gpus():
            defaults["gpu"] = ", ".join(gpu.name for gpu in machine.gpus())
        self.machine = asv_machine.Machine()
        self.machine.__dict__.update(defaults)
        # As asv names an environment that exists, but by Python's version, not by its path, which is nobody's business
        # and another one after the clone has moved.
        self.python = ".".join(map(str, sys.version_info[:2]))
        self.environment = environment.get_env_name("existing", self.python, {}, {})
        text = io.StringIO()
        discovery.list_benchmarks(store.config.benchmark_dir, text)
        self.benchmarks = {benchmark["name"]: benchmark for benchmark in json.loads(text.getvalue())}
        self._results()  # found out now, not after the measuring
        self.measured = set()  # (workload, technique) of this run

    def refuse_what_is_not_committed(self):
        root = self.store.root
        if git(root, "status", "--porcelain", "--", *CODE) or git(root, "rev-parse", "HEAD") != self.commit:
            raise StoreError(f"A stored figure belongs to a commit: commit {', '.join(CODE)} first, then measure.")

    def _refuse_another_installation(self):
        root = self.store.root
        for folder, package in zip(CODE, (gpu_cookbook.recipes, gpu_cookbook.kernels, gpu_cookbook), strict=True):
            installed = Path(next(iter(package.__path__)))
            for file in git(root, "ls-files", "--", folder).splitlines():
                copy = installed / Path(file).relative_to(folder)
                if not copy.exists() or copy.read_bytes() != (root / file).read_bytes():
                    raise StoreError(
                        f"The gpu-cookbook that runs is not the one of {root}: pip install --editable {root}"
                    )

    def done(self):
        """The cells of this commit, machine and environment that are measured, with these versions of everything."""
        cells, _ = self.store.load()
        mine = (self.machine.machine, self.commit, self.environment)
        return {
            (cell["workload"], cell["technique"], cell["size"]): cell
            for cell in cells
            if (cell["machine"], cell["commit"], cell["environment"]) == mine
            and cell["status"] == "ok"
            and cell.get(COPYING)  # compare's own: asv run has no copy bandwidth beside it
            and "resident_s" in cell
            and cell["versions"] == machine.versions(_recipe(cell["workload"], cell["technique"]).packages)
        }

    def add(self, recipe, cell, samples):
        """Stores one cell. ``samples``: {figure: seconds of each call}, from which asv computes its statistics.

        One that was skipped leaves what was measured before, as where a GPU is not visible for once.
        """
        self.refuse_what_is_not_committed()
        key = (recipe.workload, recipe.technique)
        sizes = catalogue.workload_module(recipe.workload).SIZES
        with self._locked():
            stored = self._results()
            if cell["status"] == "skipped" and self._has(stored, recipe, cell["size"]):
                return
            if key not in self.measured and not self.resume:
                for size in sizes:
                    self._put_all(stored, recipe, {"size": size, "status": "skipped"}, {}, math.nan)
            self.measured.add(key)
            self._put_all(stored, recipe, cell, samples, conditions.record(self.store.folder, cell))
            self._save(stored)

    def _has(self, stored, recipe, size):
        name = f"workloads.{recipe.workload}.time_resident"
        if name not in stored.get_all_result_keys():
            return False
        params = self.benchmarks[name]["params"]
        index = list(itertools.product(*params)).index((repr(recipe.technique), repr(size)))
        value = stored.get_result_value(name, params)[index]
        return value is not None and not math.isnan(value)

    def _put_all(self, stored, recipe, cell, samples, number):
        """Every figure of a cell, and the number of its conditions."""
        self._put(stored, recipe, "track_conditions", cell, number)
        for benchmark, figure in TIMED.items():
            self._put(stored, recipe, benchmark, cell, cell.get(f"{figure}_s"), samples.get(figure))
        for benchmark, figure in SCALARS.items():
            # The first result is the recipe's own, not a size's: a size that has none says nothing about it.
            first = cell["size"] == catalogue.workload_module(recipe.workload).SIZES[0]
            if benchmark != "track_first_result" or figure in cell or first:
                self._put(stored, recipe, benchmark, cell, cell.get(figure))

    def _put(self, stored, recipe, benchmark, cell, value, samples=None):
        from asv import runner

        described = self.benchmarks.get(f"workloads.{recipe.workload}.{benchmark}")
        if described is None:  # random_subset_mean has no transfer
            return
        wanted = [repr(recipe.technique), *([repr(cell["size"])] if len(described["params"]) == 2 else [])]
        combinations = list(itertools.product(*described["params"]))
        index = combinations.index(tuple(wanted))
        empty = [math.nan] * len(combinations)
        if value is None:  # asv has null for what failed, NaN for what does not run or is not measured
            value = None if cell["status"] in ("failed", "refused") else math.nan
        result = runner.BenchmarkResult(
            result=[*empty[:index], value, *empty[index + 1 :]],
            samples=[samples if i == index else None for i in range(len(empty))],
            number=[1 if i == index and samples else None for i in range(len(empty))],
            errcode=0,
            stderr="",
            profile=None,
        )
        stored.add_result(described, result, selected_idx={index})

    def _results(self):
        from asv import results

        params = dict(self.machine.__dict__) | {"python": self.python}
        stored = results.Results(
            params, {}, self.commit, self.store.repo.get_date(self.commit), self.python, self.environment, {}
        )
        try:
            stored.load_data(str(self.store.folder))
        except Exception as error:  # whatever a broken file does to asv's reader
            name = f"{self.machine.machine}/{self.commit[:8]}-{self.environment}.json"
            raise StoreError(
                f"{self.store.folder / name} cannot be read ({_first_line(error)}): mend it, or move it away."
            ) from error
        return stored

    def _save(self, stored):
        """Each file in one step: whoever is killed here leaves the old one or the new one."""
        from asv import util

        with tempfile.TemporaryDirectory(dir=self.store.scratch) as folder:
            util.write_json(f"{folder}/benchmarks.json", self.benchmarks, 2)  # asv's list of the suite
            self.machine.save(folder)
            stored.save(folder)
            for file in Path(folder).rglob("*.json"):
                target = self.store.folder / file.relative_to(folder)
                target.parent.mkdir(exist_ok=True)
                file.replace(target)

    @contextlib.contextmanager
    def _locked(self):
        for folder in (self.store.folder, self.store.scratch):
            folder.mkdir(parents=True, exist_ok=True)
        with (self.store.scratch / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _root():
    """The clone that the current folder is in."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / "asv.conf.json").exists() and (folder / "recipes").is_dir():
            return folder
    raise StoreError("Stored results are part of a clone of GPU Cookbook: run this inside of one.")


@cache
def _recipe(workload, technique):
    return next(
        (r for r in catalogue.recipes() if (r.workload, r.technique) == (workload, technique)),
        None,
    )


def _first_line(error):
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
