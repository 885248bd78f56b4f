"""What asv's files have no place for: under which conditions a result was measured, why it has no metrics, and what
earlier measurements of it gave.

Each measurement of a result is a line of benchmarks/results/MACHINE/runs.jsonl, found by commit, environment, recipe
and size. The newest counts.
"""

import json
import math
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Metric, Result, Run, Size, Status, keyed
from gpu_cookbook.store import door, journal
from gpu_cookbook.store.commits import StoreError

FILE, KIND = "runs.jsonl", "runs"
CONDITIONS = {  # what a line calls them, with the unit, and a Result
    **{name: name for name in ("device", "driver", "cuda", "math", "versions", "cache_bytes")},
    "copy_bandwidth_gb_per_s": "copy_bandwidth",
    "cache_bandwidth_gb_per_s": "cache_bandwidth",
    "arithmetic_g_per_s": "arithmetic",
    "empty_kernel_s": "empty_kernel",
    "took_s": "took",
}
ROUNDED = 1e-9  # relative: both files have every digit
Place = tuple[str, str, str, str, Size]  # commit, asv's environment, workload, technique and size
THIS = Run.now()


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the file."""

    commit: str
    environment: str
    workload: str
    technique: str
    size: Size
    status: str
    run: str | None = None  # Run.started and Run.instance; what is older than these files has neither
    instance: str | None = None
    date: str | None = None
    reason: str | None = None
    device: str | None = None
    driver: str | None = None
    cuda: str | None = None
    math: str | None = None
    clock: str | None = None
    versions: str | None = None
    copy_bandwidth_gb_per_s: float | None = None
    cache_bytes: int | None = None
    cache_bandwidth_gb_per_s: float | None = None
    arithmetic_g_per_s: float | None = None
    empty_kernel_s: float | None = None
    took_s: float | None = None
    doubts: dict[str, str] = field(default_factory=dict)  # see Result.doubts
    values: dict[str, float] = field(default_factory=dict)  # of each metric: the median where there are samples

    @property
    def place(self) -> Place:
        return self.commit, self.environment, self.workload, self.technique, self.size

    @property
    def under(self) -> tuple[str | None, ...]:
        """What must be the same for another measurement to be a repetition."""
        return self.device, self.driver, self.versions

    def agrees(self, values: Mapping[Metric, float]) -> bool:
        """Whether nothing of this line differs from these values. The first result does not count: it may be that of
        another run."""
        own = {metric: value for name, value in self.values.items() if (metric := Metric(name)) != Metric.FIRST}
        if not own:
            return Metric.RESIDENT not in values
        return all(math.isclose(value, values.get(metric, math.nan), rel_tol=ROUNDED) for metric, value in own.items())

    @property
    def told(self) -> dict[str, Any]:
        """What a Result has of this line: the conditions; if it went wrong or was skipped, also that and why."""
        doubts = {Metric(name): doubt for name, doubt in self.doubts.items()}
        known = {attribute: getattr(self, name) for name, attribute in CONDITIONS.items()}
        ending = {} if self.status == Status.OK else {"status": Status(self.status), "reason": self.reason}
        return {"clock": self.clock, "doubts": doubts, **known, **ending}


def record(
    folder: Path,
    result: Result,
    commit: str,
    environment: str,
    run: Run = THIS,
    metrics: Collection[Metric] = tuple(Metric),
) -> None:
    """Adds a line for this result to the file of the machine whose ``folder`` this is. ``environment``: asv's name for
    it. ``metrics``: those that asv's file has from this run. StoreError if the line could not be read again."""
    line = Line(
        commit=commit,
        environment=environment,
        workload=result.workload,
        technique=result.technique,
        size=result.size,
        run=run.started,
        instance=run.instance,
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        status=str(result.status),
        reason=result.reason,
        clock=machine.clock() if machine.is_gpu(result.device) else None,
        doubts={str(metric): doubt for metric, doubt in result.doubts.items() if metric in metrics},
        values={str(metric): value for metric, value in result.values.items() if metric in metrics},
        **{name: getattr(result, attribute) for name, attribute in CONDITIONS.items()},
    )
    known = {name: value for name, value in asdict(line).items() if value not in (None, {})}
    try:
        door.fit(json.dumps(known).encode(), KIND)
    except door.Unfit as error:
        raise StoreError(f"{result.workload}, {result.technique} could not be read again: {error}") from None
    journal.append(folder / FILE, known)


class Lines:
    """The lines of a machine's file that can be used."""

    def __init__(self, folder: Path) -> None:
        self.lines, self.complaints = door.made_of_lines(folder / FILE, KIND, _line)
        self.last = {line.place[:-1]: line.run for line in self.lines}  # run of each recipe
        self.every = keyed(self.lines, lambda line: line.place)
        newest = [line for *_, line in self.every.values()]
        failed = (each for each in newest if each.status != Status.OK and each.run == self.last[each.place[:-1]])
        self._failed = keyed(failed, lambda line: line.place[:2])

    def of(self, place: Place) -> Line | None:
        """The newest line of a result."""
        return self.every[place][-1] if place in self.every else None

    def about(self, place: Place, values: Mapping[Metric, float]) -> Line | None:
        """The newest line of a result that has these values, which are asv's; the newest of all if none has, or if asv
        has no values. A process that was killed may have left a line whose values never came into asv's file."""
        mine = self.every.get(place, ()) if values else ()
        return next((line for line in reversed(mine) if line.agrees(values)), self.of(place))

    def runs(self, place: Place) -> dict[Metric, dict[Run, float]]:
        """Every value of a result that is not doubtful and was measured with the versions and the driver of the newest:
        an upgrade is no repetition."""
        found: dict[Metric, dict[Run, float]] = {}
        for line in self.every.get(place, ()):
            same = line.under == self.every[place][-1].under
            for name, value in line.values.items() if same else ():
                if line.run and name not in line.doubts:
                    found.setdefault(Metric(name), {})[Run(line.run, line.instance)] = value
        return found

    def without_metrics(self, commit: str, environment: str) -> list[Line]:
        """The results that went wrong or were skipped when their recipe was measured last."""
        return self._failed.get((commit, environment), [])


def _line(data: dict[str, Any]) -> Line:
    size = data["size"]
    known = {part.name: data[part.name] for part in fields(Line) if part.name in data}
    line = Line(**known | {"size": tuple(size) if isinstance(size, list) else size})
    if line.workload in catalogue.workloads() and not catalogue.is_size(line.workload, line.size):
        raise ValueError(f"{line.size} is no size of {line.workload}")
    return line
