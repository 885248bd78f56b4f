"""Lines of ``python benchmarks/limits.py --save``: one line of limits.jsonl in benchmarks/results per run. Those that
came in from others are in a file of that name in their machine's folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gpu_cookbook.results import Origin
from gpu_cookbook.store import commits, door

FILE, KIND = "limits.jsonl", "limits"


@dataclass(frozen=True)
class Kept:
    """One stored run and its origin. ``rows``: (what, technique, measured as text, limit as text, share or ratio, to
    reach, 'share' or 'ratio')."""

    origin: Origin
    device: str
    driver: str
    rows: tuple[tuple[Any, ...], ...]
    changed: frozenset[str]  # files whose code has changed since


def kept(folder: Path) -> tuple[dict[str, Kept], list[str]]:
    """{machine: its newest run}, the newest last, in this file and in those of the machines; and what is wrong with
    each line that cannot be used."""
    found, complaints = [], []
    for path, machine_name in door.everywhere(folder, FILE).items():
        runs, faults = kept_in(path, folder.parents[1], machine_name)
        found += runs
        complaints += faults
    newest: dict[str, Kept] = {}
    for run in sorted(found, key=lambda run: run.origin.date):
        newest.pop(run.origin.machine, None)
        newest[run.origin.machine] = run
    return newest, complaints


def kept_in(path: Path, root: Path, machine_name: str | None) -> tuple[list[Kept], list[str]]:
    """The runs in one file, and what is wrong with each line that cannot be used. ``root``: of the clone;
    ``machine_name``: whose lines they must be, unless the file is shared."""
    return door.made_of_lines(path, KIND, partial(_kept, root), machine_name)


def _kept(root: Path, line: Mapping[str, Any]) -> Kept:
    changed = commits.changed_since(root, line["commit"])
    origin = Origin(line["machine"], line["commit"], "", line["date"])
    return Kept(origin, line["device"], line["driver"], tuple(map(tuple, line["rows"])), changed)
