"""Rows of ``gpu-cookbook scale --save``: one line of benchmarks/results/scale.jsonl per run, with all its rows."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Origin, Status
from gpu_cookbook.scaling import EMPTY, WORKLOAD, BadInput, Row, ScaleError, completed, from_record, judged, record
from gpu_cookbook.store import commits, journal
from gpu_cookbook.store.asv_files import Writer

FILE = "scale.jsonl"


@dataclass(frozen=True)
class Kept:
    """One stored run and its origin."""

    origin: Origin
    processor: str
    gpus: tuple[str, ...]
    driver: str | None
    rows: tuple[Row, ...]


def keep(writer: Writer, rows: Iterable[Row]) -> None:
    """Appends one line to FILE: the rows as they were measured, without those that were skipped. StoreError if the code
    is no longer that of the writer's commit."""
    writer.refuse_what_is_not_committed()
    measured = [row for row in rows if row.status != Status.SKIPPED]
    if not measured:
        return
    recipes = [recipe for row in measured if (recipe := catalogue.find(WORKLOAD, row.technique))]
    nvidia = machine.nvidia()
    line = {
        "machine": writer.machine.machine,
        "processor": machine.processor(),
        "gpus": [gpu.name for gpu in machine.gpus()],
        "driver": nvidia and nvidia.driver,
        "versions": machine.versions(tuple(sorted({package for recipe in recipes for package in recipe.packages}))),
        "date": time.strftime("%Y-%m-%d"),
        "commit": writer.commit,
        "rows": [record(row) for row in measured],
    }
    journal.append(writer.store.folder / FILE, line)


def kept(folder: Path) -> list[Kept]:
    """The runs in FILE, the newest last. ScaleError if a line cannot be read."""
    path = folder / FILE
    try:
        return [_kept(number, line) for number, line in journal.read(path, strict=True)]
    except ValueError as error:
        raise ScaleError(f"{path} cannot be read ({error}): fix it, or move it away.") from None


def _kept(number: int, line: dict[str, Any]) -> Kept:
    try:
        if missing := [
            key for key in ("machine", "processor", "gpus", "driver", "commit", "date", "rows") if key not in line
        ]:
            raise ValueError(f"it has no {missing[0]}")
        if not (isinstance(line["rows"], list) and all(isinstance(data, dict) for data in line["rows"])):
            raise ValueError("its rows are not a list of objects")
        origin = Origin(line["machine"], line["commit"], "", line["date"])
        rows = tuple(from_record(data, origin) for data in line["rows"])
        return Kept(origin, line["processor"], tuple(line["gpus"]), line["driver"], rows)
    except ValueError as error:
        raise ValueError(f"line {number} was not written by 'scale --save': {error}") from None


def kept_of(folder: Path, name: str) -> list[Row]:
    """The stored rows of a machine, judged and completed: the newest for each recipe, workers and array."""
    runs = kept(folder)
    if not runs:
        raise BadInput(f"No rows are stored yet. To store some: gpu-cookbook scale --save --machine {name}")
    mine = [run for run in runs if run.origin.machine == name]
    if not mine:
        names = sorted({run.origin.machine for run in runs})
        raise BadInput(f"No rows are stored for '{name}'. Stored machines: {', '.join(names)}.")
    rows: dict[tuple[Any, ...], Row] = {}
    for run in mine:
        old = stale(folder, run.origin.commit, {row.technique for row in run.rows})
        again = {row.run for row in run.rows}
        # An empty round belongs to its run: one that ended badly may have stored such a row, and a later one none.
        rows = {key: row for key, row in rows.items() if row.mode != EMPTY or row.run not in again}
        for row in run.rows:
            origin = replace(run.origin, stale=row.technique in old)
            rows[*row.run, row.mode, row.size, row.chunk] = replace(row, origin=origin)
    return completed(judged(rows.values()))


def stale(folder: Path, commit: str, techniques: Iterable[str]) -> set[str]:
    """The techniques whose recipe was removed, or whose code has changed since that commit."""
    try:
        changed = commits.changed_since(folder.parents[1], commit)
    except commits.StoreError as error:
        raise ScaleError(f"A line of {folder / FILE} {error}. In a shallow clone, run: git fetch --unshallow") from None
    recipes = {technique: catalogue.find(WORKLOAD, technique) for technique in techniques}
    return {name for name, recipe in recipes.items() if not recipe or changed & commits.sources(recipe)}
