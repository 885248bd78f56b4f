"""Rows of ``gpu-cookbook scale --save``: one line of benchmarks/results/scale.jsonl per run, with all its rows. Runs
that came in from others are in a file of the same name in their machine's folder."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Origin, Status
from gpu_cookbook.scaling import EMPTY, WORKLOAD, BadInput, Row, completed, from_record, judged, record
from gpu_cookbook.store import commits, door, journal, sent
from gpu_cookbook.store.asv_files import Writer
from gpu_cookbook.store.machines import MACHINE
from gpu_cookbook.words import plain

FILE, KIND = "scale.jsonl", "scale"


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


def kept(folder: Path) -> tuple[list[Kept], list[str]]:
    """The runs in FILE and in those of the machines, the newest last, and what is wrong with each line that cannot be
    used."""
    runs: list[Kept] = []
    unnamed: list[Kept] = []  # the same runs
    complaints = []
    for path, machine_name in door.everywhere(folder, FILE).items():
        found, faults = kept_in(path, folder.parents[1], machine_name)
        complaints += faults
        for run in found:  # whoever has sent lines may still have them in both
            if (same := _unnamed(run)) not in unnamed:
                unnamed.append(same)
                runs.append(run)
            elif run.origin.contributor:
                runs[unnamed.index(same)] = run
    return sorted(runs, key=lambda run: run.origin.date), complaints


def _unnamed(run: Kept) -> Kept:
    """The run without who sent it."""
    rows = tuple(replace(row, origin=row.origin and replace(row.origin, contributor=None)) for row in run.rows)
    return replace(run, origin=replace(run.origin, contributor=None), rows=rows)


def kept_in(path: Path, root: Path, machine_name: str | None) -> tuple[list[Kept], list[str]]:
    """The runs in one file, and what is wrong with each line that cannot be used. ``root``: of the clone;
    ``machine_name``: whose lines they must be, unless the file is shared."""
    senders = sent.contributors(sent.lines(path.parent)[0])  # asv_files.py says what is wrong with the lines
    return door.made_of_lines(path, KIND, partial(_kept, root, senders), machine_name)


def _kept(root: Path, senders: Mapping[str, str], line: Mapping[str, Any]) -> Kept:
    """ValueError if a row makes no sense; StoreError if the repository does not have the commit."""
    origin = Origin(line["machine"], line["commit"], "", line["date"], contributor=senders.get(line["commit"]))
    rows = [from_record(data, origin) for data in line["rows"]]
    for row in rows:
        if row.time and row.time.quartiles and not row.time.quartiles[0] <= row.time.median <= row.time.quartiles[1]:
            raise ValueError(f"the quartiles of {row.technique} do not enclose its median")
    old = stale(root, origin.commit, {row.technique for row in rows})
    rows = [replace(row, origin=replace(origin, stale=row.technique in old)) for row in rows]
    return Kept(origin, line["processor"], tuple(line["gpus"]), line["driver"], tuple(rows))


def kept_of(folder: Path, name: str) -> tuple[list[Row], list[str]]:
    """The stored rows of a machine, judged and completed: the newest for each recipe, workers and array. And what is
    wrong with lines that cannot be used; BadInput has it, too, if there are no such rows."""
    runs, complaints = kept(folder)
    mine = [run for run in runs if run.origin.machine == name]
    if not mine:
        names = sorted({run.origin.machine for run in runs})
        there = f"No rows are stored for '{plain(name)}'. {catalogue.similar(name, names)}"
        how = f"To store some: gpu-cookbook scale --save --machine {name if MACHINE.fullmatch(name) else 'NAME'}"
        told = f"{there if runs else 'No rows are stored yet.'} {how}"
        if complaints and not runs:  # what they say comes first, such as that the commits are to be fetched
            told = "No rows can be used."
        raise BadInput("\n".join([*complaints, told]))
    rows: dict[tuple[Any, ...], Row] = {}
    for run in mine:
        again = {row.run for row in run.rows}
        # A run may have stored that its empty round failed, and a later one nothing, if all went well. The time of an
        # empty round stays until there is another: a run that was stopped early has none.
        rows = {key: row for key, row in rows.items() if row.mode != EMPTY or row.ok or row.run not in again}
        rows |= {(*row.run, row.mode, row.size, row.chunk): row for row in run.rows}
    return completed(judged(rows.values())), complaints


def stale(root: Path, commit: str, techniques: Iterable[str]) -> set[str]:
    """The techniques whose recipe was removed, or whose code has changed since that commit. StoreError if there is no
    such commit."""
    changed = commits.changed_since(root, commit)
    recipes = {technique: catalogue.find(WORKLOAD, technique) for technique in techniques}
    return {name for name, recipe in recipes.items() if not recipe or changed & commits.sources(recipe)}
