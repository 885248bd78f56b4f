"""Lines of ``python benchmarks/together.py --save``: one line of together.jsonl in benchmarks/results per run and
environment. Those that came in from others are in a file of that name in their machine's folder."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gpu_cookbook.results import Origin
from gpu_cookbook.store import commits, door
from gpu_cookbook.together import Handover, by_pair

FILE, KIND = "together.jsonl", "together"
SCRIPTS = "docs/together"
POOL = "one_pool"  # the script of what several libraries allocate from


@dataclass(frozen=True)
class Kept:
    """One stored run and its origin."""

    origin: Origin
    device: str
    driver: str
    versions: str
    handovers: tuple[Handover, ...]
    missing: Mapping[str, str]  # libraries, and why they took no part
    pool: Mapping[str, str]  # libraries, and why they do not allocate from the pool; "" if they do
    changed: frozenset[str]  # scripts whose code has changed since


@dataclass(frozen=True)
class Merged:
    """The newest handovers of one machine, with the run that each comes from."""

    runs: tuple[Kept, ...]
    handovers: Mapping[tuple[str, str], tuple[Kept, tuple[Handover, ...]]]
    pool: Mapping[str, tuple[Kept, str]]


def record(handovers: Iterable[Handover], missing: Mapping[str, str], pool: Mapping[str, str]) -> dict[str, Any]:
    """How a line goes on, as plain data for JSON."""
    return {"handovers": [asdict(each) for each in handovers], "missing": dict(missing), "pool": dict(pool)}


def every(folder: Path) -> tuple[list[Kept], list[str]]:
    """The runs of all lines, the newest last, and what is wrong with each line that cannot be used."""
    found, complaints = [], []
    for path, machine_name in door.everywhere(folder, FILE).items():
        runs, faults = kept_in(path, folder.parents[1], machine_name)
        found += runs
        complaints += faults
    return sorted(found, key=lambda run: run.origin.date), complaints


def kept_in(path: Path, root: Path, machine_name: str | None) -> tuple[list[Kept], list[str]]:
    """The runs in one file, and what is wrong with each line that cannot be used. ``root``: of the clone;
    ``machine_name``: whose lines they must be, unless the file is shared."""
    return door.made_of_lines(path, KIND, partial(_kept, root), machine_name)


def _kept(root: Path, line: Mapping[str, Any]) -> Kept:
    changed = commits.changed_since(root, line["commit"])
    found = tuple(Handover(**each) for each in line["handovers"])
    if len({(each.producer, each.consumer, each.way) for each in found}) < len(found):
        raise ValueError("has a handover twice")
    origin = Origin(line["machine"], line["commit"], "", line["date"])
    scripts = frozenset(Path(path).stem for path in changed if Path(path).parent == Path(SCRIPTS))
    return Kept(origin, line["device"], line["driver"], line["versions"], found, line["missing"], line["pool"], scripts)


def merged(runs: Sequence[Kept]) -> Merged:
    """The newest handovers of each pair: what excludes each other is installed in different environments, and each of
    them has lines of its own. ``runs``: those of one machine, the newest last. What was run on another device than the
    newest is left out."""
    handovers: dict[tuple[str, str], tuple[Kept, tuple[Handover, ...]]] = {}
    pool: dict[str, tuple[Kept, str]] = {}
    for run in runs:
        if run.device == runs[-1].device:
            handovers |= {pair: (run, tuple(those)) for pair, those in by_pair(run.handovers).items()}
            pool |= {name: (run, why) for name, why in run.pool.items()}
    used = {id(run) for run, _ in (*handovers.values(), *pool.values())}
    return Merged(tuple(run for run in runs if id(run) in used), handovers, pool)
