"""Results in asv's own files, under the names of the suite in benchmarks/: written and read through asv's classes.

``compare --save`` writes what ``asv run`` would write, in a fraction of the time; ``tables`` reads the files of both.
"""

import ast
import contextlib
import fcntl
import gc
import io
import itertools
import json
import math
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import gpu_cookbook.kernels
from gpu_cookbook import catalogue, machine
from gpu_cookbook.catalogue import Recipe
from gpu_cookbook.results import (
    FirstResult,
    Key,
    Metric,
    Origin,
    Result,
    Run,
    Size,
    Status,
    Timing,
    judged,
)
from gpu_cookbook.run import measure
from gpu_cookbook.store import commits, door, runs, sent
from gpu_cookbook.store.commits import (
    CODE,
    StoreError,
    UnknownCommit,
    changed_since,
    commit_named,
    git,
    is_changed,
    sources,
    without_commits,
)
from gpu_cookbook.store.machines import (
    GPU_RAM,
    bytes_of,
    facts_for,
    gpus_in,
    parameters,
    refuse_another_machine,
    require_name,
)
from gpu_cookbook.store.runs import Lines
from gpu_cookbook.store.selecting import fits
from gpu_cookbook.words import plain

BENCHMARKS = {  # the benchmarks of a workload's class, and the metric of each
    "time_resident": Metric.RESIDENT,
    "time_prepared": Metric.PREPARED,
    "time_device": Metric.DEVICE,
    "time_transfer": Metric.TRANSFER,
    "time_pinned": Metric.PINNED,
}
SCALARS = {
    "track_first_result": Metric.FIRST,
    "track_peak_device_memory": Metric.MEMORY,
    "track_error": Metric.ERROR,
}
METRICS = BENCHMARKS | SCALARS
ROUNDED = 1e-4  # relative: asv keeps five digits of a quartile and of an interval, and every digit of the median


class Store:
    """The results under benchmarks/results of a clone."""

    def __init__(self) -> None:
        from asv import config, repo

        self.root = _root()
        try:
            self.config = config.Config.load(str(self.root / "asv.conf.json"))
        except Exception as error:  # whatever a broken file does to asv's reader
            raise StoreError(f"{self.root / 'asv.conf.json'} cannot be read: {_first_line(error)}") from None
        self.config.repo = str(self.root)
        self.config.benchmark_dir = str(self.root / "benchmarks")
        self.config.results_dir = str(self.root / "benchmarks" / "results")
        self.folder = Path(self.config.results_dir)
        self.scratch = self.root / ".asv"  # asv's own folder, which git ignores
        commits.head(self.root)
        self.repo = repo.get_repo(self.config)

    def load(self, machine_folder: Path | None = None) -> tuple[list[Result], list[str]]:
        """Every stored result with its origin, and one line for each file, or line of a file, that cannot be used.
        ``machine_folder``: read only this one, wherever it is. All objects of the process are kept from garbage
        collection from then on."""
        # Nothing of the millions of objects that are made is garbage: to look for it takes a fifth of the time.
        collects = gc.isenabled()
        gc.disable()
        try:
            return self._load(machine_folder)
        finally:
            gc.freeze()  # collections from now on would look through all of it: a tenth of the time of a table
            if collects:
                gc.enable()

    def machines(self) -> list[str]:
        """Those that have results of compare or asv, whether they can be used or not."""
        return sorted({path.parent.name for path in self.folder.glob("*/*-*.json")})

    def commit_of(self, word: str, results: Iterable[Result]) -> str:
        """The commit that is meant: what git knows by this word; the word itself if it begins a commit of these
        results, or if git knows none."""
        if any(fits(each, "commit", word) for each in results):
            return word
        return commit_named(self.root, word) or word

    def memory_of(self, machine_name: str) -> tuple[int | None, int | None]:
        """The bytes of a stored machine's memory, and of its smallest GPU's; None where machine.json does not say. An
        older one tells a GPU's only by its name: 'NVIDIA H100 80GB HBM3'. In 'NVIDIA GH200 480GB' that is the CPU's,
        and of a MIG device the whole GPU's."""
        try:
            facts = door.read_file(self.folder / machine_name / "machine.json")
        except (door.Unfit, OSError):
            return None, None
        named = [re.search(r"^(?!.*(?:GH200|MIG)).*?\b(\d{1,4}) ?GB\b", name, re.ASCII) for name in gpus_in(facts)]
        gpus = [int(each[1]) * 2**30 for each in named if each]
        known = gpus and len(gpus) == len(named)
        return bytes_of(facts, "ram"), bytes_of(facts, GPU_RAM) or (min(gpus) if known else None)

    def _load(self, machine_folder: Path | None) -> tuple[list[Result], list[str]]:
        files: dict[Path, Any] = {}
        complaints: list[str] = []
        for path in sorted(machine_folder.glob("*.json") if machine_folder else self.folder.glob("*/*.json")):
            try:
                if path.name == "machine.json":
                    door.read_file(path)
                else:
                    files[path] = _stored(path)
            except Exception as error:  # asv's reader may raise anything for a broken file: show the other files
                complaints.append(f"{door.shown(path)}: {_first_line(error)}")
        # Read last: a result that is stored meanwhile has its line before it is in its file.
        lines = {folder: Lines(folder) for folder in dict.fromkeys(path.parent for path in files)}
        broken = [complaint for each in lines.values() for complaint in each.complaints]
        senders = {}
        for folder in lines:
            known, faults = sent.lines(folder)
            senders[folder] = sent.contributors(known)
            broken += faults
        results: list[Result] = []
        unknown: dict[str, UnknownCommit] = {}
        for path, stored in files.items():
            try:
                sender = senders[path.parent].get(stored.commit_hash)
                results += self._results_of(path, stored, lines[path.parent], sender)
            except UnknownCommit as error:
                unknown[door.shown(path)] = error
            except Exception as error:
                complaints.append(f"{door.shown(path)}: {_first_line(error)}")
        complaints += without_commits(unknown, door.shown(machine_folder or self.folder), "files")
        return results, broken + complaints

    def _results_of(self, path: Path, stored: Any, lines: Lines, contributor: str | None) -> list[Result]:
        changed = changed_since(self.root, stored.commit_hash)
        found: dict[tuple[str, str, Size], _Parts] = {}
        for name in stored.get_all_result_keys():
            _, workload, benchmark = (f".{name}".rsplit(".", 2) + ["", ""])[:3]
            known_here = workload in catalogue.workloads() and benchmark in METRICS
            if known_here and stored.benchmark_version[name] in measure.VERSIONS:
                self._fill(found, stored, name, workload, benchmark)
        for each in lines.without_metrics(stored.commit_hash, stored.env_name):
            if each.workload in catalogue.workloads():
                found.setdefault((each.workload, each.technique, each.size), _Parts())
        measured = max(stored.started_at.values())
        # What has no date of its own was measured after its commit was made, and not after the file's newest result.
        first, last = (time.strftime("%Y-%m-%d", time.gmtime(each / 1000)) for each in (stored.date, measured))
        versions = {stored.benchmark_version[name] for name in stored.get_all_result_keys()}
        origin = Origin(
            machine=path.parent.name,
            commit=stored.commit_hash,
            environment=stored.env_name,
            date=last if first == last else f"by {last}",
            order=(stored.date, measured),
            definition=" and ".join(version for version in measure.VERSIONS if version in versions),
            contributor=contributor,
        )
        environment = environment_of(stored.env_name)
        old = versions != {measure.VERSION}
        results = []
        for key, parts in found.items():
            workload, technique, size = key
            recipe = catalogue.find(workload, technique)
            place = (stored.commit_hash, stored.env_name, *key)
            line = lines.about(place, parts.values)
            if not parts.known and (line is None or line.status == Status.OK):
                continue  # nothing is known about it, not even a reason
            stale = recipe is None or bool(changed & sources(recipe)) or old
            result = Result(
                workload=workload,
                technique=technique,
                framework=recipe.framework if recipe else technique,
                lane=catalogue.lane_of(technique),
                environment=environment,
                size=size,
                origin=replace(origin, stale=stale, date=line.date if line and line.date else origin.date),
                runs=lines.runs(place),
                **parts.told | (line.told if line else {}),
            )
            results.append(judged(result))  # a file may hold what compare would have refused
        return results

    def _fill(
        self, found: dict[tuple[str, str, Size], "_Parts"], stored: Any, name: str, workload: str, benchmark: str
    ) -> None:
        """Adds the values of one benchmark to the results to which they belong."""
        params = stored.get_result_params(name)
        values = stored.get_result_value(name, params)
        statistics = stored.get_result_stats(name, params)
        axes = [list(map(_parameter, axis)) for axis in params]
        # The first result belongs to the recipe and is shown with its smallest size.
        techniques, sizes = (axes[0], axes[1]) if axes[1:] else (axes[0], catalogue.workload_module(workload).SIZES[:1])
        for size in sizes:
            if not catalogue.is_size(workload, size):
                raise StoreError(f"{name}: {size} is no size of {workload}")
        keys, texts = itertools.product(techniques, sizes), itertools.product(*params)
        for (technique, size), text, value, stats in zip(keys, texts, values, statistics, strict=True):
            key = (workload, technique, size)
            if (parts := found.get(key)) is None:
                parts = found[key] = _Parts()
            if value is None:
                parts.failed = True  # even if other metrics succeeded
            elif not math.isnan(value):
                if benchmark in SCALARS:
                    parts.scalars[SCALARS[benchmark]] = value
                elif benchmark in BENCHMARKS:
                    try:
                        parts.timings[BENCHMARKS[benchmark]] = _timing(value, stats or {})
                    except ValueError as error:
                        raise StoreError(f"{name}, {', '.join(text)}: {error}") from None


@dataclass
class _Parts:
    """What asv's files contain about one result."""

    timings: dict[Metric, Timing] = field(default_factory=dict)
    scalars: dict[Metric, float] = field(default_factory=dict)
    failed: bool = False

    @property
    def values(self) -> dict[Metric, float]:
        return {metric: timing.median for metric, timing in self.timings.items()} | self.scalars

    @property
    def known(self) -> bool:
        """Whether a file says anything about the result."""
        return bool(self.failed or self.timings or self.scalars)

    @property
    def told(self) -> dict[str, Any]:
        """What a Result has of these parts."""
        return {
            "status": Status.FAILED if self.failed else Status.OK,
            "timings": self.timings,
            "first": FirstResult(self.scalars[Metric.FIRST]) if Metric.FIRST in self.scalars else None,
            "peak_memory": self.scalars.get(Metric.MEMORY),
            "error": self.scalars.get(Metric.ERROR),
        }


@cache
def _parameter(word: str) -> Any:
    """The value of a benchmark's parameter: asv keeps its repr(). The same few are in every file."""
    return ast.literal_eval(word)


def _timing(median: float, stats: Mapping[str, Any]) -> Timing:
    """ValueError if the quartiles or the interval do not enclose the median."""
    q1, q3 = (stats.get(name) for name in ("q_25", "q_75"))
    low, high = (stats.get(name) for name in ("ci_99_a", "ci_99_b"))
    for name, (least, most) in {"quartiles": (q1, q3), "interval": (low, high)}.items():
        if (least is None) != (most is None):
            raise ValueError(f"one of the {name}'s ends is missing")
        if (
            least is not None
            and most is not None
            and not least - ROUNDED * abs(least) <= median <= most + ROUNDED * abs(most)
        ):
            raise ValueError(f"the {name} from {least} to {most} does not enclose the median, {median}")
    return Timing(median, q1, q3, stats.get("repeat"), None if low is None or high is None else (low, high))


def _stored(path: Path) -> Any:
    """What asv reads from a file of results, once it is known to be one, and one of this folder's machine."""
    from asv import results

    data = door.read_file(path)
    if (name := data["params"]["machine"]) != path.parent.name:
        raise StoreError(f"belongs to the machine {name}, not to {path.parent.name}")
    for name, (values, params, _, _, *columns) in data["results"].items():
        there = math.prod(map(len, params))
        for column in (values, *columns[1:8]):  # without the duration and the profile
            if isinstance(column, list) and len(column) != there:
                raise StoreError(f"{name}: {len(column)} values for {there} combinations of technique and size")
    return results.Results.load(str(path), machine_name=path.parent.name)


def _content(path: Path) -> bytes | None:
    """What is in a file; None if it cannot be read, as a link that leads nowhere."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def refuse_what_is_not_committed(root: Path, commit: str) -> None:
    """StoreError if the code of the clone is not that of the commit for which results are to be stored."""
    if git(root, "rev-parse", "HEAD") != commit:
        raise StoreError(
            f"A stored result belongs to a commit, and {plain(commit[:8])} is not the one that is checked out: check it"
            " out first, then measure."
        )
    if is_changed(root, CODE):
        raise StoreError(
            f"A stored result belongs to a commit: commit your changes in {', '.join(CODE)} first, then measure."
        )


def existing(python: str) -> str:
    """The name of an environment that asv did not make: as asv names it, but with Python's version instead of its path,
    which is private and changes when the clone is moved."""
    name = f"existing-py{python}"
    return name if machine.environment() == machine.MAIN else f"{name}-{machine.environment()}"


def environment_of(asv_name: str) -> str:
    """Our name for the environment that asv calls existing-py3.12-rapids: rapids."""
    return next((name for name in catalogue.environments() if asv_name.endswith(f"-{name}")), machine.MAIN)


class Writer:
    """Adds each result to the file of this machine, commit and environment as soon as it is measured."""

    def __init__(self, store: Store, machine_name: str | None = None, resume: bool = False) -> None:
        """``resume``: keep a recipe's stored results at sizes that are not measured again; otherwise discard them,
        because they may come from other versions."""
        from asv import machine as asv_machine
        from asv_runner import discovery

        self.store = store
        self.resume = resume
        self.commit = store.repo.get_hash_from_name("HEAD")
        self.refuse_what_is_not_committed()
        self._refuse_another_installation()
        if machine_name is None:
            machine_name = asv_machine.Machine.get_unique_machine_name()
        require_name(machine_name, "--machine")
        refuse_another_machine(store.folder / machine_name)
        self.machine = asv_machine.Machine()
        self.machine.__dict__.update(facts_for(store.folder / machine_name))
        self.python = ".".join(map(str, sys.version_info[:2]))
        self.environment = existing(self.python)
        text = io.StringIO()
        discovery.list_benchmarks(store.config.benchmark_dir, text)
        self.benchmarks = {benchmark["name"]: benchmark for benchmark in json.loads(text.getvalue())}
        self._try_places()
        self._results()  # fail now, not after the measurement
        self.measured: set[tuple[str, str]] = set()  # (workload, technique) of this run
        self.unusable: list[str] = []  # what done() could not use

    def refuse_what_is_not_committed(self) -> None:
        refuse_what_is_not_committed(self.store.root, self.commit)

    def _try_places(self) -> None:
        """StoreError if something cannot be written that is to be written once there are results."""
        folders = (self.store.folder, self.store.folder / self.machine.machine)
        try:
            with self._locked():
                new = not folders[1].exists()
                for folder in folders:
                    folder.mkdir(parents=True, exist_ok=True)
                    tempfile.TemporaryFile(dir=folder).close()
                for file in [*folders[0].glob("*.jsonl"), *folders[1].glob("*.jsonl")]:
                    file.open("ab").close()
                if self.machine.machine in self.store.machines() and not (folders[1] / "machine.json").exists():
                    self.machine.save(str(folders[0]))  # asv skips what has none
                if new:  # The first result makes it again. asv run knows no lock, and may have stored something.
                    with contextlib.suppress(OSError):
                        folders[1].rmdir()
        except OSError as error:
            raise StoreError(f"Results cannot be stored in {folders[1]}: {_first_line(error)}") from None

    def _refuse_another_installation(self) -> None:
        root = self.store.root
        for folder, package in zip(CODE, (gpu_cookbook.recipes, gpu_cookbook.kernels, gpu_cookbook), strict=True):
            installed = Path(next(iter(package.__path__)))
            names = git(root, "ls-files", "-z", "--", folder, ":!*.md")  # a wheel has no .md
            for file in filter(None, names.split("\0")):
                if _content(installed / Path(file).relative_to(folder)) != _content(root / file):
                    raise StoreError(
                        f"The running gpu-cookbook is not the one in {root}. To install that one:"
                        f" pip install --editable {root}"
                    )

    def done(self) -> dict[Key, Result]:
        """The newest results of this machine and environment that need not be measured again: at whatever commit, their
        code was the same, and so were the versions that are installed, and the driver. A doubtful result of another
        commit does not count."""
        results, self.unusable = self.store.load(self.store.folder / self.machine.machine)
        nvidia = machine.nvidia()

        def of_today(each: Result) -> bool:
            recipe = catalogue.find(each.workload, each.technique)
            if recipe is None or each.stale or each.versions != machine.versions(recipe.packages):
                return False
            on_host = each.driver is None and recipe.runs_on == "CPU"
            return nvidia is None or on_host or each.driver == nvidia.driver

        mine = [
            each
            for each in sorted(results, key=lambda each: each.stored.order)
            if (each.stored.machine, each.stored.environment) == (self.machine.machine, self.environment)
            and of_today(each)
        ]
        return {
            key: each
            for key, each in {each.key: each for each in mine}.items()
            if each.value(Metric.RESIDENT) is not None
            and all(each.value(metric) is not None for metric in each.runs)  # asv run stores what --bench names
            and each.copy_bandwidth  # measured by compare: asv run stores no copy bandwidth
            and (each.stored.commit == self.commit or not each.doubts)
        }

    def add(self, recipe: Recipe, result: Result, run: Run = runs.THIS) -> None:
        """Stores one result of a run; asv computes its statistics from the samples.

        A skipped result does not replace one that was measured before, for instance when a GPU is temporarily
        not visible.
        """
        self.refuse_what_is_not_committed()
        suite = self.benchmarks.get(f"workloads.{recipe.workload}.time_resident")
        fault = recipe.fault or catalogue.workload_fault(recipe.workload)
        if fault or suite is None or repr(recipe.technique) not in suite["params"][0]:
            return  # it is broken, and the suite goes on without it
        key = (recipe.workload, recipe.technique)
        sizes = catalogue.workload_module(recipe.workload).SIZES
        with self._locked():
            stored = self._results()
            if result.status == Status.SKIPPED and (
                self._has(stored, recipe, result.size)
                or self.resume
                and key not in self.measured
                and self._knows(result)
            ):
                return
            if key not in self.measured and not self.resume:
                for size in sizes:
                    self._put_all(stored, recipe, Result.of(recipe, size, Status.SKIPPED))
            elif key not in self.measured and result.size != sizes[0]:
                result = replace(result, first=None)  # which is shown with the smallest size, and measured with it
            self.measured.add(key)
            self._put_all(stored, recipe, result)
            folder = self.store.folder / self.machine.machine
            self._save(stored, lambda: runs.record(folder, result, self.commit, self.environment, run))

    def _knows(self, skipped: Result) -> bool:
        """Whether the newest line of this result says so already, in the last run that stored anything of its recipe:
        what an earlier one skipped is not shown."""
        place = self.commit, self.environment, *skipped.work
        line = self._before.of(place)
        return (
            line is not None
            and (line.status, line.reason) == (skipped.status, skipped.reason)
            and line.run == self._before.last[place[:-1]]
        )

    @cached_property
    def _before(self) -> Lines:
        """The lines as they were before this run, which adds at most one of each result when it resumes."""
        return Lines(self.store.folder / self.machine.machine)

    def _has(self, stored: Any, recipe: Recipe, size: Size) -> bool:
        name = f"workloads.{recipe.workload}.time_resident"
        if name not in stored.get_all_result_keys():
            return False
        params = self.benchmarks[name]["params"]
        index = list(itertools.product(*params)).index((repr(recipe.technique), repr(size)))
        value = stored.get_result_value(name, params)[index]
        return value is not None and not math.isnan(value)

    def _put_all(self, stored: Any, recipe: Recipe, result: Result) -> None:
        """Puts all metrics of a result into ``stored``."""
        for benchmark, metric in BENCHMARKS.items():
            samples = result.timings[metric].samples if metric in result.timings else ()
            self._put(stored, recipe, benchmark, result, result.value(metric), samples)
        for benchmark, metric in SCALARS.items():
            # The first result belongs to the recipe, not to a size: a larger size without one must not overwrite it.
            first = result.size == catalogue.workload_module(recipe.workload).SIZES[0]
            if metric != Metric.FIRST or result.first or first:
                self._put(stored, recipe, benchmark, result, result.value(metric))

    def _put(
        self,
        stored: Any,
        recipe: Recipe,
        benchmark: str,
        result: Result,
        value: float | None,
        samples: Sequence[float] = (),
    ) -> None:
        from asv import runner

        described = self.benchmarks.get(f"workloads.{recipe.workload}.{benchmark}")
        if described is None:  # random_subset_mean has no transfer
            return
        wanted = [repr(recipe.technique), *([repr(result.size)] if len(described["params"]) == 2 else [])]
        combinations = list(itertools.product(*described["params"]))
        index = combinations.index(tuple(wanted))
        empty = [math.nan] * len(combinations)
        if value is None:  # asv stores null for what failed, and NaN for what does not run or was not measured
            value = None if result.wrong else math.nan
        entry = runner.BenchmarkResult(
            result=[*empty[:index], value, *empty[index + 1 :]],
            samples=[list(samples) or None if i == index else None for i in range(len(empty))],
            number=[1 if i == index and samples else None for i in range(len(empty))],
            errcode=0,
            stderr="",
            profile=None,
        )
        stored.add_result(described, entry, selected_idx={index})

    def _results(self) -> Any:
        from asv import results

        params = parameters(self.machine.__dict__) | {"python": self.python}
        stored = results.Results(
            params, {}, self.commit, self.store.repo.get_date(self.commit), self.python, self.environment, {}
        )
        path = self.store.folder / results.get_filename(self.machine.machine, self.commit, self.environment)
        try:
            if path.exists():
                _stored(path)
            stored.load_data(str(self.store.folder))
        except Exception as error:  # whatever a broken file does to asv's reader
            raise StoreError(f"{path} cannot be used ({_first_line(error)}): fix it, or move it away.") from error
        return stored

    def _save(self, stored: Any, record: Callable[[], None]) -> None:
        """Replaces each file in one step, so that a process that is killed here leaves either the old file or the new
        one. StoreError if the new one could not be read again. ``record``, which adds the line of runs.jsonl, comes
        when all files have been written, for instance to a disk that could be full, but none has been replaced."""
        from asv import util

        folder = self.store.scratch / "unsaved"
        # What a process that was killed here has left. Nobody else is here, because of the lock.
        shutil.rmtree(folder, ignore_errors=True)
        for file in self.store.folder.rglob(".*.json.new"):
            file.unlink()
        folder.mkdir()
        util.write_json(f"{folder}/benchmarks.json", self.benchmarks, 2)  # asv's list of the suite
        self.machine.save(str(folder))
        stored.save(str(folder))
        new = {}
        for file in folder.rglob("*.json"):
            try:
                door.read_file(file)
            except door.Unfit as error:
                raise StoreError(f"{file.relative_to(folder)} could not be read again: {error}") from None
            target = self.store.folder / file.relative_to(folder)
            target.parent.mkdir(exist_ok=True)
            new[target.with_name(f".{target.name}.new")] = file, target  # beside it, on the same file system
        try:
            for there, (file, _) in new.items():
                shutil.copyfile(file, there)
            record()
            for there, (_, target) in new.items():
                there.replace(target)
        finally:
            for there in new:
                there.unlink(missing_ok=True)
        shutil.rmtree(folder)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        for folder in (self.store.folder, self.store.scratch):
            folder.mkdir(parents=True, exist_ok=True)
        with (self.store.scratch / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _root() -> Path:
    """The clone that the current folder is in."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise StoreError("The current folder was deleted: change to a clone of GPU Cookbook.") from None
    for folder in (here, *here.parents):
        if (folder / "asv.conf.json").exists() and (folder / "recipes").is_dir():
            return folder
    raise StoreError("Stored results are part of a clone of GPU Cookbook: run this command inside a clone.")


def _first_line(error: BaseException) -> str:
    return plain((str(error).strip() or type(error).__name__).split("\n")[0])[:300]
