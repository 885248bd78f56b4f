"""The stored results, read once for all pages, and how a page names one of them."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TypeVar

from readme import GPU_MACHINE
from sphinx.errors import SphinxError
from sphinx.util import logging

from gpu_cookbook import catalogue, scaling, units
from gpu_cookbook import results as typed
from gpu_cookbook.render import all_reduce, concepts, launches, scaling_tables, timelines
from gpu_cookbook.render.all_reduce import REDUCED
from gpu_cookbook.render.format import NOISE
from gpu_cookbook.results import Crossing, Metric, Result, Size
from gpu_cookbook.run.launches import COUNTS
from gpu_cookbook.scaling import Row
from gpu_cookbook.store import asv_files, commits, limits, together, transfers
from gpu_cookbook.store import scaling as kept
from gpu_cookbook.store.selecting import select
from gpu_cookbook.units import seconds

Run = TypeVar("Run", transfers.Kept, together.Kept)
GPUS_MACHINE = "nvidia-h100-x4"
METRICS = {  # as a page names them
    "resident": Metric.RESIDENT,
    "prepared": Metric.PREPARED,
    "device": Metric.DEVICE,
    "transfer": Metric.TRANSFER,
    "pinned": Metric.PINNED,
    "first": Metric.FIRST,
}


class NotStored(SphinxError):
    """A page names a number that is not among the stored results, or the results cannot be read."""

    category = "Stored results"


def complain(complaints: Iterable[str]) -> None:
    """A warning for each, which fails the build; everything else is shown."""
    for complaint in complaints:
        logging.getLogger(__name__).warning(complaint)


@cache
def store() -> asv_files.Store:
    """One for all pages: each asks git, in processes of its own, about the clone."""
    return asv_files.Store()


@cache
def every_result() -> list[Result]:
    found, complaints = store().load()
    complain(complaints)
    return found


def compared() -> dict[str, list[Result]]:
    """results() of the machines where NumPy was measured, too; others have only a few."""
    return {name: mine for name, mine in results().items() if any(each.is_numpy for each in mine)}


@cache
def results() -> dict[str, list[Result]]:
    """{machine: the results that the tables show of each recipe}, machines with a GPU first."""
    found, _ = select(every_result())
    machines = typed.grouped(found, lambda each: each.origin.machine)
    machines.sort(key=lambda mine: (not any(each.driver for each in mine), mine[0].origin.machine))
    # Speedups are against NumPy on the same machine.
    return {mine[0].origin.machine: typed.completed(mine) for mine in machines}


@cache
def files() -> list[str]:
    """The files from which all this was read: a page is rebuilt when one of them changes."""
    return [str(path) for path in store().folder.rglob("*.json*")]


def of(machine: str, workload: str | None = None) -> list[Result]:
    return [each for each in results()[machine] if workload in (None, each.workload)]


@cache
def over_one_numpy(machine: str, workload: str) -> list[Result]:
    """Of a recipe that was measured in several environments, the main one's."""
    return typed.over_one_numpy(of(machine, workload))


def past(machine: str, workload: str | None = None) -> list[Result]:
    """The results of every commit."""
    return [each for each in every_result() if each.stored.machine == machine and workload in (None, each.workload)]


@cache
def web_address() -> str | None:
    return commits.web_address(store().root)


def commit_address(commit: str) -> str | None:
    """The page of a commit, if the clone's remote is an address that has one."""
    base = web_address()
    return f"{base}/commit/{commit}" if base else None


def recipe_changed(before: Result, after: Result) -> bool:
    """Whether the code of the recipe, of its workload or of its kernels is not the same at the two commits. Of a recipe
    that was removed, nothing is known."""
    recipe = catalogue.find(after.workload, after.technique)
    changed = commits.changed_since(store().root, before.stored.commit, after.stored.commit)
    return recipe is not None and bool(changed & commits.sources(recipe))


def named(words: str) -> tuple[Result, Metric]:
    """What "WORKLOAD TECHNIQUE [SIZE] [METRIC] [MACHINE] [ENVIRONMENT]" names: resident, GPU_MACHINE and, if it has
    several, its main environment are the defaults. The size may be omitted for a first result, which has only one."""
    workload, technique, *others = words.split()
    size = next((_size(word) for word in others if word[0].isdigit()), None)
    word = next((word for word in others if word in METRICS), "resident")
    metric = METRICS[word]
    machine = next((word for word in others if word in results()), GPU_MACHINE)
    environment = next((word for word in others if word in catalogue.environments()), None)
    unknown = [other for other in others if not other[0].isdigit() and other not in (word, machine, environment)]
    mine = [each for each in of(machine, workload) if each.technique == technique and each.value(metric) is not None]
    mine = [each for each in mine if environment in (None, each.environment)]
    mine = typed.of_one_environment(mine)
    if metric == Metric.FIRST:
        found = mine
    elif size is None:
        raise NotStored(f"'{words}' names no size")
    else:
        found = [each for each in mine if each.size == size]
    if unknown or not found:
        raise NotStored(f"'{words}' is not among the results of {machine}")
    return found[0], metric


def _size(word: str) -> Size:
    """40_000 is a number, and 1_000_000x200 a tuple."""
    numbers = tuple(int(number.replace("_", "")) for number in word.split("x"))
    return numbers if numbers[1:] else numbers[0]


def crossing(workload: str, technique: str, metric: str, other: str) -> tuple[list[Result], Crossing | None]:
    """From which size a technique is faster than another one, whose data is where its recipe takes it from: NumPy's,
    and PyTorch's on the CPU, is in the host's memory; None if all times are doubtful, or of different states of the
    code. And the results that were compared."""
    sizes = catalogue.workload_module(workload).SIZES
    if other == "numpy":  # known from the results themselves, also if they are stale
        one, measured = named(f"{workload} {technique} {max(sizes)} {metric}")
        if measured in one.crossings:
            return [one], one.crossings[measured]
    found, points, apart = [], [], []
    for size in sizes:
        with contextlib.suppress(NotStored):  # not every technique can do every size
            one, measured = named(f"{workload} {technique} {size} {metric}")
            base, resident = named(f"{workload} {other} {size} resident")
            if typed.of_one_state(one, base) and not (one.doubt(measured) or base.doubt(resident)):
                points.append((size, one.value(measured), base.value(resident)))
                found += [one, base]
            else:
                apart += [one, base]
    if points:
        return found, Crossing.of(points, partial(catalogue.work, workload))
    if apart:
        return apart, None
    raise NotStored(f"'{workload} {technique} {metric}' was not compared with {other}")


def best(workload: str, lane: str, size: int) -> tuple[list[Result], list[Result]]:
    """The fastest results of a lane on GPU_MACHINE, stale or not: one, or several that tie; and those that do not
    count, because their times are doubtful. Recipes that round their factors do not count either."""
    mine = [each for each in of(GPU_MACHINE, workload) if (each.peers, each.size) == (lane, size)]
    mine = typed.of_one_environment([each for each in mine if each.value(Metric.RESIDENT) is not None])
    if not mine:
        raise NotStored(f"'{workload} {lane} {size}' is not among the results of {GPU_MACHINE}")
    doubtful = [each for each in mine if each.doubt(Metric.RESIDENT)]
    rivals = [replace(each, origin=None) for each in mine if each not in doubtful]
    first = typed.ranks(rivals, Metric.RESIDENT)
    return [each for each in mine if each.technique in first], doubtful


@cache
def scaled() -> list[Row]:
    """The rows of GPUS_MACHINE."""
    rows, complaints = kept.kept_of(store().folder, GPUS_MACHINE)
    complain(complaints)
    return rows


def scaled_of(machine: str) -> list[Row]:
    """The rows of any machine; none if it has none. scaled() complains about lines that cannot be used."""
    runs, _ = kept.kept(store().folder)
    here = any(run.origin.machine == machine for run in runs)
    return kept.kept_of(store().folder, machine)[0] if here else []


@cache
def scaled_runs() -> list[kept.Kept]:
    """The stored runs of GPUS_MACHINE, the newest last."""
    runs, _ = kept.kept(store().folder)
    return [run for run in runs if run.origin.machine == GPUS_MACHINE]


def scaled_row(words: str) -> Row:
    """The newest of scaled_rows."""
    return scaled_rows(words, scaled())[0]


def scaled_rows(words: str, rows: Iterable[Row]) -> list[Row]:
    """The rows of "TECHNIQUE WORKERS [SIZE [CHUNK]] [cores] [weak] [empty]": size and chunk default to those of the
    experiment. For an empty round, neither is used."""
    technique, workers, *others = words.split()
    unknown = [word for word in others if not (word[0].isdigit() or word in ("cores", scaling.WEAK, scaling.EMPTY))]
    numbers = [int(word.replace("_", "")) for word in others if word[0].isdigit()]
    own = (scaling_tables.STORY_SIZE, scaling_tables.STORY_CHUNK)
    mode = next((word for word in others if word in (scaling.WEAK, scaling.EMPTY)), scaling.STRONG)
    array = (0, 0) if mode == scaling.EMPTY else (*numbers, *own[len(numbers) :])
    wanted = (technique, int(workers), "core" if "cores" in others else "GPU", mode, *array)
    found = [
        row
        for row in rows
        if row.ok and (row.technique, row.workers, row.kind, row.mode, row.size, row.chunk) == wanted
    ]
    if unknown or not found:
        raise NotStored(f"'{words}' is not among the rows of {GPUS_MACHINE}")
    return found


@cache
def every_transferred() -> list[transfers.Kept]:
    """Every run of benchmarks/transfers.py, the newest last."""
    found, complaints = transfers.every(store().folder)
    complain(complaints)
    return found


def transferred() -> dict[str, transfers.Kept]:
    """{machine: its newest run of benchmarks/transfers.py}."""
    return {name: runs[-1] for name, runs in _by_machine(every_transferred()).items()}


@cache
def launched() -> dict[str, dict[str, transfers.Kept]]:
    """{machine: {way to launch: its newest run of benchmarks/launches.py}}."""
    found, complaints = transfers.every(store().folder, transfers.LAUNCHES)
    complain(complaints)
    return {name: transfers.by_way(runs) for name, runs in _by_machine(found).items()}


@cache
def reduced() -> dict[str, dict[str, transfers.Kept]]:
    """{machine: {way to reduce: its newest run of benchmarks/all_reduce.py}}."""
    found, complaints = transfers.every(store().folder, transfers.ALL_REDUCES)
    complain(complaints)
    return {name: transfers.by_way(runs) for name, runs in _by_machine(found).items()}


@cache
def conceptual() -> dict[str, transfers.Kept]:
    """{machine: its newest run of benchmarks/concepts.py}."""
    found, complaints = transfers.every(store().folder, transfers.CONCEPTS)
    complain(complaints)
    return {name: runs[-1] for name, runs in _by_machine(found).items()}


@cache
def limited() -> dict[str, limits.Kept]:
    """{machine: its newest run of benchmarks/limits.py}."""
    found, complaints = limits.kept(store().folder)
    complain(complaints)
    return found


@cache
def handed_over() -> dict[str, together.Merged]:
    """{machine: what the newest runs of benchmarks/together.py found}, the one with most pairs first."""
    found, complaints = together.every(store().folder)
    complain(complaints)
    merged = {name: together.merged(runs) for name, runs in _by_machine(found).items()}
    return dict(sorted(merged.items(), key=lambda item: -len(item[1].handovers)))


def _by_machine(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """{machine: its runs}, GPU_MACHINE first."""
    found = typed.keyed(runs, lambda run: run.origin.machine)
    return dict(sorted(found.items(), key=lambda item: (item[0] != GPU_MACHINE, item[0])))


@dataclass(frozen=True)
class Number:
    """A number of one run, and how it is written."""

    value: float
    text: str
    origin: typed.Origin
    stale: bool


def moved(words: str) -> Number | None:
    """What "STEP [share | rate | range | ROW]" names: the step's time, its share of the limit, a copy's rate, the
    shortest and the longest time of all runs of the same machine, or how long a row of its drawing was busy. The step
    may be "limit". Of GPU_MACHINE, or of the first machine where it was measured; None if there is none."""
    name, *others = words.split()
    known = {"limit": None, timelines.ALLOCATION: None, **timelines.WAYS, **timelines.COPIES, **timelines.SMALL}
    if name not in known or others not in ([], *([word] for word in ("share", "rate", "range", *timelines.ROWS))):
        raise NotStored(f"'{words}' names nothing that benchmarks/transfers.py measures")
    for run in transferred().values():
        step, text = run.steps.get(name), None
        if others == ["share"]:
            value = timelines.share(run, name)
        elif others == ["rate"]:
            value = timelines.rate(run, name)
        elif others == ["range"]:
            mine = [each for each in every_transferred() if each.origin.machine == run.origin.machine]
            times = sorted(filter(None, (each.seconds(name) for each in mine)))
            value = times[-1] if times else None
            text = times and f"{seconds(times[0])} to {seconds(times[-1])} in {len(times)} runs"
        elif others:
            value = timelines.busy(step, others[0]) if step else None
        else:
            value = timelines.limit(run) if name == "limit" else run.seconds(name)
        if value:
            if others in (["share"], ["rate"]):
                text = f"{100 * value:.0f} %" if others == ["share"] else units.rate(value)
            noisy = not others and step is not None and step.time is not None and step.time.noisy
            text = NOISE * noisy + (text or seconds(value))
            return Number(value, text, run.origin, step is not None and step.stale)
    return None


def over_the_bus(sent: int, origin: typed.Origin | None = None) -> Number | None:
    """How long so many bytes take from page-locked memory to the GPU: in the run of the same machine and commit as this
    origin, or else in the newest run of that machine, which is GPU_MACHINE if there is no origin; None if there is no
    run."""
    machine, commit = (origin.machine, origin.commit) if origin else (GPU_MACHINE, "")
    runs = [run for run in every_transferred() if run.origin.machine == machine and run.seconds("limit_up")]
    if not runs:
        return None
    run = next((run for run in reversed(runs) if run.origin.commit == commit), runs[-1])
    copy = run.steps["limit_up"]
    value = copy.time.median * sent / (4 * run.elements)
    return Number(value, NOISE * copy.time.noisy + seconds(value), run.origin, copy.stale)


def launch(words: str) -> Number | None:
    """The time that "NAME COUNT METRIC" names: of a launch in that way, with so many arguments, on GPU_MACHINE, or on
    the first machine where it was measured; None if there is none."""
    known = {f"{name} {count} {what}" for name in launches.WAYS for count in COUNTS for what in launches.STYLES}
    if words not in known:
        raise NotStored(f"'{words}' names nothing that benchmarks/launches.py measures")
    for ways in launched().values():
        run = ways.get(words.split()[0])
        step = run and run.steps.get(words.replace(" ", "_"))
        if run and step and step.time:
            text = NOISE * step.time.noisy + seconds(step.time.median)
            return Number(step.time.median, text, run.origin, step.stale)
    return None


def reduction(words: str) -> Number | None:
    """The time that "NAME GPUS ELEMENTS" names: of an all-reduce on GPUS_MACHINE; None if there is none."""
    name, *numbers = words.split()
    try:
        gpus, count = (int(number.replace("_", "")) for number in numbers)
    except ValueError:
        gpus = count = 0
    if name not in all_reduce.WAYS or count not in REDUCED:
        raise NotStored(f"'{words}' names nothing that benchmarks/all_reduce.py measures")
    run = reduced().get(GPUS_MACHINE, {}).get(all_reduce.key(name, gpus))
    step = run and run.steps.get(all_reduce.key(name, gpus, count))
    if not (run and step and step.time):
        return None
    text = NOISE * step.time.noisy + seconds(step.time.median)
    return Number(step.time.median, text, run.origin, step.stale)


def concept(words: str) -> Number | None:
    """What "STEP [rate]" names: the time of a kernel or of a load, or the bytes that it moves in a second, on
    GPU_MACHINE, or on the first machine where it was measured; None if there is none."""
    name, *others = words.split()
    if name not in concepts.CASES or others not in ([], ["rate"]):
        raise NotStored(f"'{words}' names nothing that benchmarks/concepts.py measures")
    for run in conceptual().values():
        step = run.steps.get(name)
        if step and step.time:
            value = concepts.rate(step) if others else step.time.median
            if value is None:
                raise NotStored(f"of {name} no bytes are counted")
            text = units.rate(value) if others else concepts.time_of(step)
            return Number(value, NOISE * step.time.noisy + text, run.origin, step.stale)
    return None


def framework_key(name: str) -> str:
    """The framework's name as ?framework= takes it."""
    return name.lower().replace(" ", "-")
