"""The fastest recipes beside their targets, and the ladders from the recipe that one writes first to the fastest."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_cookbook import catalogue
from gpu_cookbook.render import tables
from gpu_cookbook.render.format import STALE, UNKNOWN
from gpu_cookbook.results import Metric, Result, of_one_environment, of_one_state
from gpu_cookbook.store import commits
from gpu_cookbook.store.limits import Kept
from gpu_cookbook.store.selecting import select
from gpu_cookbook.units import digits

LADDERS = (  # (workload, size, metric, techniques)
    ("multiply", 2**28, "device", ("cupy", "cupy_raw", "cupy_tuned")),
    ("matmul", 200, "device", ("pycuda", "torch", "pycuda_tuned")),
    ("matmul", 4_096, "device", ("pycuda", "pycuda_blocked_tuned", "pyopencl_tuned", "torch")),
    ("matmul", 200, "transfer", ("torch", "torch_transfer_tuned")),
    ("norm", 2**28, "device", ("cupy_raw_atomics", "cupy_raw", "cupy_raw_shuffles", "cupy_tuned")),
    ("subset_mean", 40_000, "resident", ("torch", "torch_tuned", "cupy_tuned")),
    ("random_subset_mean", 100_000, "resident", ("dask_cupy", "cupy", "cupy_tuned")),
    ("random_subset_mean", 100_000, "resident", ("numpy", "dask", "numba_cpu_tuned")),
)

HEADINGS = ("what", "technique", "measured", "against", "comes to", "to reach", "reached")


def table(
    title: str, head: Sequence[str], align: str, rows: Iterable[Sequence[tables.Entry]], *notes: str
) -> tables.Table:
    return tables.Table(title, head, align, [*map(tuple, rows)], [tables.Entry(note, "note") for note in notes], [])


def is_there(row: Sequence[Any]) -> bool:
    """Whether the recipe of a stored row still exists; True for a row that belongs to no recipe. Rows of older runs
    about host arrays are not shown: docs/transfers.md has what is stored of them."""
    workload, technique = row[0].split()[0], row[1]
    of_a_recipe = workload in catalogue.workloads() and technique != "an empty kernel"
    return "host arrays" not in row[0] and (not of_a_recipe or catalogue.find(workload, technique) is not None)


def entries(row: Sequence[Any], changed: frozenset[str]) -> tuple[tables.Entry, ...]:
    """One of the rows of a run as a row of a table. ``changed``: files whose code has changed since it was measured."""
    what, technique, measured, limit, value, reach, kind = row
    workload = what.split()[0]
    recipe = catalogue.find(workload, technique)
    stale = recipe is not None and bool(changed & commits.sources(recipe))
    sign = "≥" if kind == "share" else "≤"
    reached = value is not None and reach is not None and (value >= reach if kind == "share" else value <= reach)
    others = (
        STALE * stale + measured,
        limit,
        UNKNOWN if value is None else f"{digits(value)} {'of it' if kind == 'share' else '×'}",
        UNKNOWN if reach is None else f"{sign} {digits(reach)}",
        UNKNOWN if reach is None else "yes" if reached else "no",
    )
    named = tables.Entry(technique, recipe=(workload, technique) if recipe else None)
    return tables.Entry(what), named, *map(tables.Entry, others)


def of_machine(run: Kept, results: Sequence[Result]) -> tuple[tables.Table, tables.Table]:
    """The table of a stored run, and the ladders of its machine. ``results``: all that are stored."""
    origin = run.origin
    measured = (
        f"Measured on {origin.machine} ({run.device}, driver {run.driver}), {origin.date}, commit"
        f" {origin.commit[:8]}. {STALE} The recipe or its kernel has changed since."
    )
    head = ("ladder", "step", "what it is", "time", "gain")
    return (
        table("The fastest recipes and their targets", HEADINGS, "llrlrrl", rows_of(run), measured),
        table("Ladders", head, "lllrr", (step.entries for step in ladders(results, origin.machine))),
    )


def rows_of(run: Kept) -> list[tuple[tables.Entry, ...]]:
    """The rows of a stored run, in the columns of HEADINGS."""
    return [entries(row, run.changed) for row in run.rows if is_there(row)]


def apart(runs: Mapping[str, Kept]) -> tables.Table:
    """The targets that some of these machines reach and others do not, with the code of today. ``runs``: the newest of
    each machine."""
    of_each = [{(row[0].text, row[1].text): row for row in rows_of(run)} for run in runs.values()]
    shared = [key for key in of_each[0] if all(key in rows for rows in of_each)] if of_each else []
    differing = []
    for key in shared:
        targets = [rows[key] for rows in of_each]
        reached = {target[-1].text for target in targets}
        if len(reached) > 1 and not any(target[2].text.startswith(STALE) for target in targets):
            what, technique, *_, to_reach, _ = targets[0]
            each = (entry for target in targets for entry in (target[-3], target[-1]))
            differing.append((what, technique, to_reach, *each))
    head = [*HEADINGS[:2], HEADINGS[-2], *(text for name in runs for text in (name, "reached"))]
    return table("Targets that not every machine reaches", head, f"llr{'rl' * len(runs)}", differing)


@dataclass(frozen=True)
class Step:
    """A stored step of a ladder. ``gain``: how many times as fast as the step before; None for the first, and if only
    one of the two is stale."""

    ladder: str  # workload, size and metric
    recipe: catalogue.Recipe
    result: Result
    metric: Metric
    gain: float | None

    @property
    def what(self) -> str:
        says = f"; of the samples {tables.FEWER}" if self.recipe.makes_fewer_samples else ""
        return self.recipe.summary.partition(" in ")[2].rstrip(".") + says

    @property
    def entries(self) -> tuple[tables.Entry, ...]:
        recipe = (self.recipe.workload, self.recipe.technique)
        gain = f"{digits(self.gain)} ×" if self.gain else ""
        named = tables.Entry(self.recipe.technique, recipe=recipe)
        time = tables.metric_entry(self.result, self.metric)
        return tables.Entry(self.ladder), named, tables.Entry(self.what), time, tables.Entry(gain)


def ladders(results: Sequence[Result], name: str) -> Iterator[Step]:
    """Every step of LADDERS that is stored for this machine. ``results``: all that are stored."""
    newest, _ = select(results, [name])
    known = {each.work: each for each in of_one_environment(newest)}
    for workload, size, metric, techniques in LADDERS:
        before: Result | None = None
        label = "on the CPU: " if techniques[0] == "numpy" else ""
        for technique in techniques:
            result = known.get((workload, technique, size))
            recipe = catalogue.find(workload, technique)
            time = result.value(Metric(metric)) if result else None
            if result is None or time is None or recipe is None:
                continue
            slower = before.value(Metric(metric)) if before and of_one_state(before, result) else None
            gain = slower / time if slower else None
            yield Step(label + f"{workload} {result.label}, {metric}", recipe, result, Metric(metric), gain)
            before = result
