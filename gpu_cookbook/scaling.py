"""A row of ``gpu-cookbook scale``: one recipe of random_subset_mean on a number of workers, cores or GPUs, at one size.
Strong scaling: all workers share one array. Weak scaling: each worker has a whole one. And what follows from rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpu_cookbook import catalogue
from gpu_cookbook.results import Origin, Status, Timing, grouped

WORKLOAD = "random_subset_mean"
STRONG, WEAK, EMPTY = "strong", "weak", "empty"  # empty: tasks that do nothing, which cost what the engine costs
MaybeNone = Any  # of a type: None where nothing ran or was measured. Whoever reads a measured row need not ask
SAME = 1e-12  # of the mean: so near are two answers for the same samples, whatever the order in which they were added


class ScaleError(Exception):
    """What was asked for cannot be run here; the message says why and what to do."""


class BadInput(ScaleError):
    """What was asked for makes no sense on any machine."""


@dataclass(frozen=True)
class Cost:
    """Seconds that an engine takes by itself; None where it is lost in the noise, or where there is no such thing."""

    round: float | None  # of one empty task on each worker
    task: float | None = None  # of one task more
    byte: float | None = None  # of one byte more that goes to a task


@dataclass(frozen=True, kw_only=True)
class Row:
    """See the module. ``mode`` and what belongs to the array are None where nothing ran."""

    technique: str
    framework: str
    lane: str
    engine: str | None
    kind: str  # core, GPU, or worker of an engine that ran already
    workers: int | MaybeNone
    status: Status
    reason: str | None = None
    mode: str | None = None
    size: int | MaybeNone = None
    rows: int | MaybeNone = None
    columns: int | MaybeNone = None
    chunk: int | MaybeNone = None
    time: Timing | MaybeNone = None  # until the mean is on the host
    mean: float | MaybeNone = None
    lost: int | MaybeNone = None  # workers that were lost meanwhile
    start_s: float | MaybeNone = None  # seconds until the engine had started
    cost: Cost | MaybeNone = None  # of mode empty
    shared_samples: bool = False  # averages the samples that the tuned lane shares
    speedup: float | MaybeNone = None  # over the same recipe on the fewest workers, see completed()
    efficiency: float | MaybeNone = None
    base_workers: int | MaybeNone = None
    base_stale: bool = False
    error: float | MaybeNone = None  # of the mean: its distance from 11, the mean of infinitely many
    origin: Origin | MaybeNone = None

    @property
    def ok(self) -> bool:
        return self.status == Status.OK

    @property
    def measured(self) -> bool:
        """Whether it has a time."""
        return self.ok and self.mode != EMPTY

    @property
    def stale(self) -> bool:
        return self.origin is not None and self.origin.stale

    @property
    def run(self) -> tuple[str, str, int | None]:
        return self.technique, self.kind, self.workers

    @property
    def on(self) -> str:
        return amount(self.workers, self.kind)

    @property
    def name(self) -> str:
        """The technique, and its chunks where they are not the workload's own."""
        own = catalogue.workload_module(WORKLOAD).chunk(self.size)
        return self.technique if self.chunk == own else f"{self.technique}, chunks of {self.chunk:,}"

    def same_work(self, other: "Row") -> bool:
        """Whether they may be compared: the same recipe, array and kind of worker."""
        return (self.technique, self.kind, self.size, self.chunk) == (
            other.technique,
            other.kind,
            other.size,
            other.chunk,
        )


def amount(workers: int | None, kind: str) -> str:
    """'1 core', '4 GPUs'; '' where nothing ran."""
    return f"{workers} {kind}{'s' * (workers != 1)}" if workers else ""


# ---- What follows from several.


def judged(rows: Iterable[Row]) -> list[Row]:
    """The rows; failed are those of the tuned lane whose mean is not that of the others, since they average the same
    samples. The mean that more than half have is taken for right; where there is none, none of them is."""
    rows = list(rows)
    faults: dict[int, str] = {}
    comparable = [row for row in rows if row.measured and row.shared_samples]
    for mine in grouped(comparable, lambda row: (row.rows, row.columns)):
        means = sorted(row.mean for row in mine)
        middle = means[len(means) // 2]  # is one of them, if more than half are the same
        if sum(alike(mean, middle) for mean in means) <= len(means) / 2:
            fault = f"the tuned lane has means from {means[0]!r} to {means[-1]!r}, and none that more than half have"
            wrong = mine
        else:
            fault = f"the others of the tuned lane have the mean {middle!r}"
            wrong = [row for row in mine if not alike(row.mean, middle)]
        faults |= {id(row): f"{row.mean!r}, where {fault}" for row in wrong}
    return [replace(row, status=Status.FAILED, reason=faults[id(row)]) if id(row) in faults else row for row in rows]


def alike(mean: float, other: float) -> bool:
    return abs(mean - other) <= SAME * abs(other)


def tied(one: Row, other: Row) -> bool:
    """Whether the middle halves of their samples overlap."""
    mine, others = one.time.quartiles, other.time.quartiles
    return bool(mine and others and mine[0] <= others[1] and others[0] <= mine[1])


def completed(rows: Iterable[Row]) -> list[Row]:
    """The rows with speedup and efficiency over the same recipe on the fewest workers, and the mean's error."""
    rows = list(rows)
    measured = [row for row in rows if row.measured]

    def complete(row: Row) -> Row:
        if not row.measured:
            return row
        base = min(
            # A single worker's own share is the whole: one row for both modes.
            (other for other in measured if other.same_work(row) and (other.mode == row.mode or other.workers == 1)),
            key=lambda other: other.workers,
        )
        more = row.workers / base.workers
        speedup = (more if row.mode == WEAK else 1) * base.time.median / row.time.median
        return replace(
            row,
            speedup=speedup,
            efficiency=speedup / more,
            base_workers=base.workers,
            base_stale=base.stale,
            error=abs(row.mean - 11),
        )

    return [complete(row) for row in rows]


def of_mode(rows: Iterable[Row], mode: str, size: int) -> list[Row]:
    """The rows of a mode and size. Of weak scaling, what one worker did of the same work is one of them."""
    rows = list(rows)
    mine = [row for row in rows if (row.mode, row.size) == (mode, size)]
    ones = [row for row in rows if mode == WEAK and (row.mode, row.workers) == (STRONG, 1)]
    return mine + [one for one in ones if any(one.same_work(row) for row in mine)]


# ---- As plain data: what JSON has, and benchmarks/results/scale.jsonl.


def record(row: Row) -> dict[str, Any]:
    """One flat row with the units in the names; only what is known, but for what every row has."""
    data: dict[str, Any] = {
        "technique": row.technique,
        "framework": row.framework,
        "lane": row.lane,
        "engine": row.engine,
        "kind": row.kind,
        "workers": row.workers,
        "mode": row.mode,
        "status": str(row.status),
        "reason": row.reason,
    }
    optional: dict[str, Any] = {
        "size": row.size,
        "rows": row.rows,
        "columns": row.columns,
        "chunk": row.chunk,
        "time_s": row.time and row.time.median,
        "q1_s": row.time and row.time.q1,
        "q3_s": row.time and row.time.q3,
        "samples": row.time and row.time.count,
        "mean": row.mean,
        "lost": row.lost,
        "start_s": row.start_s,
        "speedup_x": row.speedup,
        "efficiency": row.efficiency,
        "base_workers": row.base_workers,
        "error": row.error,
    }
    if row.cost:
        data |= {"round_s": row.cost.round, "task_s": row.cost.task, "byte_s": row.cost.byte}
    if row.origin:
        optional |= {"machine": row.origin.machine, "commit": row.origin.commit, "date": row.origin.date}
        optional |= {"stale": row.stale, "base_stale": row.base_stale}
    return data | {key: value for key, value in optional.items() if value is not None}


def from_record(data: Mapping[str, Any], origin: Origin | None = None) -> Row:
    """The Row that record() wrote, before anything followed from it; ValueError where something is missing."""
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
    parts: dict[str, Any] = {key: data[key] for key in wanted[:7]}
    parts |= {key: data.get(key) for key in ("size", "rows", "columns", "chunk", "mean", "lost", "start_s")}
    return Row(
        **parts,
        status=Status(data["status"]),
        reason=data["reason"],
        time=Timing(data["time_s"], data["q1_s"], data["q3_s"], data.get("samples")) if measured else None,
        cost=Cost(data.get("round_s"), data.get("task_s"), data.get("byte_s")) if "round_s" in data else None,
        shared_samples=recipe.shares_samples if recipe else data["lane"] == "tuned",
        origin=origin,
    )
