"""A row of ``gpu-cookbook scale``: one recipe of random_subset_mean on a number of workers, cores or GPUs, at one size.
Strong scaling: all workers share one array. Weak scaling: each worker has an array of its own. Here is also what is
derived from several rows."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Origin, Status, Timing, grouped, named
from gpu_cookbook.units import counted
from gpu_cookbook.words import make_plain

WORKLOAD = "random_subset_mean"
NOTHING_TO_DRAW = "There is nothing to draw: a line needs the same recipe on at least two numbers of workers."
STRONG, WEAK, EMPTY = "strong", "weak", "empty"  # empty: tasks that do nothing, whose cost is the engine's own
SAME = 1e-12  # relative: two means of the same samples differ by less, whatever the order of the additions


class ScaleError(Exception):
    """The request cannot be run here; the message says why and what to do."""


class BadInput(ScaleError):
    """The request makes no sense on any machine."""


@dataclass(frozen=True)
class Cost:
    """Seconds that an engine takes by itself; None if they are lost in the noise, or if they do not apply."""

    round: float | None  # of one empty task on each worker
    task: float | None = None  # of one more task
    byte: float | None = None  # of one more byte that is sent to a task


@dataclass(frozen=True)
class Started:
    """The engine of a recipe, once it has started."""

    seconds: float  # since its imports began
    workers: int
    dashboard: str | None = None  # its address

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True)
class Answer:
    """How one problem went. Unless it failed, with a reason, the time, the mean and the workers lost are known."""

    status: Status = Status.OK
    reason: str | None = None
    time: Timing | None = None
    mean: float | None = None
    lost: int | None = None


@dataclass(frozen=True)
class Gain:
    """How a row compares with the same recipe on the fewest workers."""

    speedup: float
    efficiency: float
    base_workers: int
    base_stale: bool


@dataclass(frozen=True, kw_only=True)
class Row:
    """If nothing ran, ``mode`` is None, and ``workers`` and what belongs to the array are 0."""

    technique: str
    framework: str
    lane: str
    engine: str | None
    kind: str  # core, GPU, or worker of an engine that was already running
    workers: int
    status: Status
    reason: str | None = None
    environment: str = machine.MAIN
    mode: str | None = None
    size: int = 0
    rows: int = 0
    columns: int = 0
    chunk: int = 0
    time: Timing | None = None  # until the mean is on the host
    mean: float | None = None
    lost: int | None = None  # workers that were lost during the run
    start_s: float | None = None  # seconds until the engine had started
    cost: Cost | None = None  # of mode empty
    shared_samples: bool = False  # whether it averages the samples that the tuned lane shares
    gain: Gain | None = None  # see completed()
    origin: Origin | None = None

    def __post_init__(self) -> None:
        make_plain(self)

    @property
    def ok(self) -> bool:
        return self.status == Status.OK

    @property
    def measured(self) -> bool:
        """Whether it has a time and a mean."""
        return self.ok and self.mode != EMPTY

    @property
    def stale(self) -> bool:
        return self.origin is not None and self.origin.stale

    @property
    def timing(self) -> Timing:
        """The time of a row that was measured."""
        assert self.time is not None
        return self.time

    @property
    def answer(self) -> float:
        """The mean of a row that was measured."""
        assert self.mean is not None
        return self.mean

    @property
    def error(self) -> float:
        """The distance of the mean from 11, the mean of infinitely many samples."""
        return abs(self.answer - 11)

    @property
    def reference(self) -> float | None:
        """The mean that was computed independently of all recipes, if it averages the samples that the tuned lane
        shares; None where none is stored."""
        if not self.shared_samples:
            return None
        return catalogue.workload_module(WORKLOAD).shared_mean(self.rows, self.columns, 0)

    @property
    def uncompared(self) -> bool:
        """Whether its mean was compared with those of other tuned recipes only."""
        return self.measured and self.shared_samples and self.reference is None

    @property
    def gained(self) -> Gain:
        """The gain of a row that was measured, once the rows are completed."""
        assert self.gain is not None
        return self.gain

    @property
    def run(self) -> tuple[str, str, str, int]:
        return self.technique, self.environment, self.kind, self.workers

    @property
    def on(self) -> str:
        return amount(self.workers, self.kind)

    @property
    def name(self) -> str:
        """The technique, its environment if it is not the main one, and the size of its chunks if it is not the
        workload's own."""
        own = catalogue.workload_module(WORKLOAD).chunk(self.size)
        technique = named(self.technique, self.environment)
        return technique if self.chunk == own else f"{technique}, chunks of {self.chunk:,}"

    def same_work(self, other: "Row") -> bool:
        """Whether the two can be compared: the same recipe, array and kind of worker."""
        mine, others = ((row.technique, row.environment, row.kind, row.size, row.chunk) for row in (self, other))
        return mine == others


def amount(workers: int, kind: str) -> str:
    """'1 core', '4 GPUs', or '' if nothing ran."""
    return counted(workers, kind) if workers else ""


# ---- What is derived from several rows.


def judged(rows: Iterable[Row]) -> list[Row]:
    """The rows. A tuned recipe has failed if its mean is not that of the samples that its lane shares.

    The workload stores that mean for the sizes that are published. At another size the recipes can only be compared
    with each other: the mean that more than half of them have is taken to be correct; if there is none, all of them
    have failed."""
    rows = list(rows)
    faults: dict[int, str] = {}
    comparable = [row for row in rows if row.measured and row.shared_samples]
    for mine in grouped(comparable, lambda row: (row.rows, row.columns)):
        means = sorted(row.answer for row in mine)
        right = means[len(means) // 2]  # if more than half are equal, the middle one is one of them
        if (known := mine[0].reference) is not None:
            right, fault = known, f"that of the samples of this lane is {known!r}"
        elif sum(alike(mean, right) for mean in means) > len(means) / 2:
            fault = f"the other tuned recipes have {right!r}"
        else:
            fault = f"the tuned recipes have means from {means[0]!r} to {means[-1]!r}, and no value has a majority"
            right = math.nan
        faults |= {id(row): f"the mean is {row.mean!r}, but {fault}" for row in mine if not alike(row.answer, right)}
    return [replace(row, status=Status.FAILED, reason=faults[id(row)]) if id(row) in faults else row for row in rows]


def alike(mean: float, other: float) -> bool:
    return abs(mean - other) <= SAME * abs(other)


def tied(one: Row, other: Row) -> bool:
    """Whether the middle halves of their samples overlap."""
    return bool(one.timing.overlaps(other.timing))


def completed(rows: Iterable[Row]) -> list[Row]:
    """The rows with their gain over the same recipe on the fewest workers."""
    rows = list(rows)
    measured = [row for row in rows if row.measured]

    def complete(row: Row) -> Row:
        if not row.measured:
            return row
        base = min(
            # With one worker both modes are the same problem, so one row serves both.
            (other for other in measured if other.same_work(row) and (other.mode == row.mode or other.workers == 1)),
            key=lambda other: other.workers,
        )
        more = row.workers / base.workers
        speedup = (more if row.mode == WEAK else 1) * base.timing.median / row.timing.median
        return replace(row, gain=Gain(speedup, speedup / more, base.workers, base.stale))

    return [complete(row) for row in rows]


def of_mode(rows: Iterable[Row], mode: str, size: int) -> list[Row]:
    """The rows of one mode and size. Weak scaling includes the strong row of one worker, which is the same problem."""
    rows = list(rows)
    mine = [row for row in rows if (row.mode, row.size) == (mode, size)]
    ones = [row for row in rows if mode == WEAK and (row.mode, row.workers) == (STRONG, 1)]
    return mine + [one for one in ones if any(one.same_work(row) for row in mine)]


# ---- As plain data, for JSON and for benchmarks/results/scale.jsonl.


def record(row: Row) -> dict[str, Any]:
    """One flat row with the units in the names; only what is known, except for what every row has."""
    data: dict[str, Any] = {
        "technique": row.technique,
        "framework": row.framework,
        "lane": row.lane,
        "engine": row.engine,
        "environment": row.environment,
        "kind": row.kind,
        "workers": row.workers or None,
        "mode": row.mode,
        "status": str(row.status),
        "reason": row.reason,
    }
    optional: dict[str, float | str | None] = {
        "size": row.size or None,
        "rows": row.rows or None,
        "columns": row.columns or None,
        "chunk": row.chunk or None,
    }
    if row.time:
        optional |= {"time_s": row.time.median, "q1_s": row.time.q1, "q3_s": row.time.q3, "samples": row.time.count}
    optional |= {"mean": row.mean, "lost": row.lost, "start_s": row.start_s}
    if row.gain:
        optional |= {"speedup_x": row.gain.speedup, "efficiency": row.gain.efficiency}
        optional |= {"base_workers": row.gain.base_workers, "error": row.error}
    if row.uncompared:
        optional |= {"compared_with_reference": False}
    if row.cost:
        data |= {"round_s": row.cost.round, "task_s": row.cost.task, "byte_s": row.cost.byte}
    if row.origin:
        optional |= {"machine": row.origin.machine, "commit": row.origin.commit, "date": row.origin.date}
        optional |= {"stale": row.stale, "base_stale": row.gain is not None and row.gain.base_stale}
    return data | {key: value for key, value in optional.items() if value is not None}


def from_record(data: Mapping[str, Any], origin: Origin | None = None) -> Row:
    """The Row that record() wrote, without what is derived from several; ValueError if something is missing."""
    wanted = ["technique", "framework", "lane", "engine", "kind", "workers", "mode", "status", "reason"]
    if data.get("mode") != EMPTY:
        wanted += ["size", "rows", "columns", "chunk"]
    if data.get("status") == Status.OK:
        wanted += ["round_s"] if data.get("mode") == EMPTY else ["time_s", "q1_s", "q3_s", "mean", "start_s"]
    missing = [key for key in wanted if key not in data]
    if missing:
        raise ValueError(f"a row has no {missing[0]}")
    recipe = catalogue.find(WORKLOAD, data["technique"])
    measured = data["status"] == Status.OK and data["mode"] != EMPTY
    return Row(
        technique=data["technique"],
        framework=data["framework"],
        lane=data["lane"],
        engine=data["engine"],
        environment=data.get("environment", machine.MAIN),  # older lines name none
        kind=data["kind"],
        workers=data["workers"] or 0,
        mode=data["mode"],
        size=data.get("size", 0),
        rows=data.get("rows", 0),
        columns=data.get("columns", 0),
        chunk=data.get("chunk", 0),
        mean=data.get("mean"),
        lost=data.get("lost"),
        start_s=data.get("start_s"),
        status=Status(data["status"]),
        reason=data["reason"],
        time=Timing(data["time_s"], data["q1_s"], data["q3_s"], data.get("samples")) if measured else None,
        cost=Cost(data.get("round_s"), data.get("task_s"), data.get("byte_s")) if "round_s" in data else None,
        shared_samples=recipe.shares_samples if recipe else data["lane"] == "tuned",
        origin=origin,
    )
