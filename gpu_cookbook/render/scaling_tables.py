"""Rows of ``gpu-cookbook scale`` as tables: the story, strong and weak scaling, and what each engine costs."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpu_cookbook import catalogue, units
from gpu_cookbook.render import format as fmt
from gpu_cookbook.render.tables import Entry, Table, fewer_samples
from gpu_cookbook.results import NOISY, Status, grouped, named
from gpu_cookbook.run import engines
from gpu_cookbook.run.measure import COLD_LIMIT
from gpu_cookbook.scaling import EMPTY, STRONG, WEAK, WORKLOAD, Cost, Row, of_mode, record, tied

TITLES = {
    STRONG: "Strong scaling: all workers share",
    WEAK: "Weak scaling: each worker has",
}
HEAD = ("technique", "lane", "on", "time", "speedup", "efficiency", "error of the mean", "start")
COSTS_HEAD = ("engine", "technique", "on", "empty round", "one more task", "argument bandwidth")
LEGEND = (
    f"time: the median time of a call until the mean is on the host; {fmt.NOISE} if the middle half of the calls "
    f"spreads over more than {100 * NOISY:.0f} %; if the first call takes more than {COLD_LIMIT} s, it is the only "
    "one. speedup and efficiency: relative to the same recipe on the fewest workers (weak scaling: of the work done "
    "per time). start: imports (except NumPy) and starting the engine and its processes, measured once. error of the "
    "mean: its distance from 11, the mean of infinitely many samples. "
    f"{fmt.STALE} the recipe, or the one that it is compared with, has changed since it was measured."
)
EMPTY_LEGEND = (
    "empty round: one task that does nothing on each worker. one more task: the time that each further task adds, with "
    f"{engines.MANY} tasks per worker. argument bandwidth: sending {engines.PAYLOAD / 1e6:.0f} MB to a task as an "
    f"argument. {fmt.UNKNOWN}: too small to measure, or not applicable."
)


def build_tables(rows: Iterable[Row]) -> list[Table]:
    """The tables of the story, strong scaling, weak scaling and engine overhead, as far as there are rows for them. The
    rows are judged and completed."""
    rows = list(rows)
    scaled = [
        _scaling(of_mode(rows, mode, size), mode, size)
        for mode in (STRONG, WEAK)
        for size in dict.fromkeys(row.size for row in rows if row.mode == mode)
    ]
    found = [*([story(rows)] if len(told(rows)) > 1 else []), *scaled]
    costs = [row for row in rows if row.mode == EMPTY]
    if any(row.ok for row in costs):
        found.append(_costs([row for row in costs if row.ok]))
    if found:
        unseen = [row for row in costs if not row.ok] + [row for row in rows if row.status == Status.SKIPPED]
        shared = grouped(unseen, lambda row: row.reason)
        reasons = [f"{', '.join(dict.fromkeys(row.technique for row in each))}: {each[0].reason}" for each in shared]
        last = found.index(scaled[-1]) if scaled else 0
        notes = [Entry(text, "note") for text in (LEGEND, *_fewer(row for row in rows if row.measured), *reasons)]
        found[last] = replace(found[last], notes=[*notes, *found[last].notes])
    return found


def _scaling(rows: Iterable[Row], mode: str, size: int) -> Table:
    rows = sorted(rows, key=lambda row: (row.kind, row.lane, row.name, row.workers))
    remarks = any(remark(row) for row in rows)
    return Table(
        title=f"{TITLES[mode]} {catalogue.workload_module(WORKLOAD).label(size)}{source(rows)}",
        head=(*HEAD, *["remark"] * remarks),
        align="lllrrrrr" + "l" * remarks,
        rows=[tuple(map(Entry, (*words(row), *[remark(row)] * remarks))) for row in rows],
        notes=[],
        records=[{"table": mode} | record(row) for row in rows],
    )


def words(row: Row) -> tuple[str, ...]:
    """The texts of a row, in the order of HEAD."""
    about = (row.name, row.lane, row.on)
    if not row.ok:
        return *about, str(row.status), "", "", "", ""
    base = fmt.STALE * row.gained.base_stale
    return (
        *about,
        fmt.stale(row) + fmt.NOISE * row.timing.noisy + fmt.seconds(row.timing.median),
        f"{base}{fmt.digits(row.gained.speedup)} ×",
        f"{base}{fmt.digits(row.gained.efficiency)}",
        f"{row.error:.1e}",
        fmt.UNKNOWN if row.start_s is None else fmt.seconds(row.start_s),
    )


def remark(row: Row) -> str:
    """Why the row failed, or how many workers it lost, and whether its mean was compared with no reference."""
    if not row.ok:
        return row.reason or ""
    lost = f"{row.lost} worker{'s' * (row.lost > 1)} lost" if row.lost else ""
    return "; ".join(filter(None, (lost, "mean not compared with a reference" if row.uncompared else "")))


def _costs(rows: Iterable[Row]) -> Table:
    rows = sorted(rows, key=lambda row: (row.kind, row.engine or "", row.technique, row.workers))
    return Table(
        title=f"Overhead of each engine{source(rows)}",
        head=COSTS_HEAD,
        align="lllrrr",
        rows=[tuple(map(Entry, cost_words(row))) for row in rows],
        notes=[Entry(EMPTY_LEGEND, "note")],
        records=[{"table": EMPTY} | record(row) for row in rows],
    )


def cost_words(row: Row) -> tuple[str, ...]:
    """The texts of a row, in the order of COSTS_HEAD."""
    cost = row.cost or Cost(None)
    return (
        row.engine or fmt.UNKNOWN,
        named(row.technique, row.environment),
        row.on,
        fmt.stale(row) + fmt.seconds(cost.round) if cost.round else fmt.UNKNOWN,
        fmt.seconds(cost.task) if cost.task else fmt.UNKNOWN,
        units.rate(1 / cost.byte) if cost.byte else fmt.UNKNOWN,
    )


def source(rows: Sequence[Row]) -> str:
    """Machine, commits and dates of stored rows, as the end of a title."""
    origins = [row.origin for row in rows if row.origin]
    runs = dict.fromkeys(f"{origin.commit[:8]}, {origin.date}" for origin in origins)
    sender = f", sent by {origins[0].contributor}" if origins and origins[0].contributor else ""
    return f". {origins[0].machine}, {' and '.join(runs)}{sender}" if origins else ""


# ---- The story.

# N. Morizet, "Speed Cubing for Machine Learning, Episode 3: Using Multi-GPU, Dask and CuPy", Towards Data Science,
# 2020: on 16 virtual Xeon cores at 2.3 GHz and eight Tesla K80, "a 6.26x speedup compared to a single GPU".
STORY_SIZE, STORY_CHUNK = 100_000, 10_000
STORY_SOURCE = ("source", "https://towardsdatascience.com/speed-cubing-for-machine-learning-4bf90170e2ee")
STORY = (  # (kind of worker, how many there were, what was reported in 2020); instead of several, all that there are
    ("core", 1, "701 s on one core"),
    ("core", 16, "55 s on 16 cores"),
    ("GPU", 1, "almost 12 s on a K80"),
    ("GPU", 8, "less than 2 s on 8 K80"),
)
STORY_HEAD = ("as reported in 2020", "Dask as it was written then", "fastest tuned recipe")
AS_WRITTEN = {"core": ("dask_random_state", "dask"), "GPU": ("dask_cuda_random_state",)}  # the first that was measured
NEWER = (
    "On cores, Dask took NumPy's newer generator, default_rng: with RandomState, as it was written then, it has not"
    " been measured on this machine."
)


def told(rows: Iterable[Row]) -> list[tuple[str, str, Row]]:
    """(what was reported in 2020, lane, the fastest row here), in the story's order. The idiomatic lane has only the
    same program, the tuned lane all of its recipes."""
    rows = list(rows)
    found = []
    for kind, count, then in STORY:
        for lane in ("idiomatic", "tuned"):
            here = [row for row in _of_story(rows, lane) if row.kind == kind]
            there = {row.workers for row in here}
            workers = count if count in there or count == 1 else max(there, default=1)
            here = [row for row in here if row.workers == workers]
            if here and (count == 1 or workers > 1):
                found.append((then, lane, min(here, key=_median)))
    return found


def story(rows: Iterable[Row]) -> Table:
    """The experiment as first reported, and as measured here: with the same program, and with the fastest tuned
    recipe."""
    rows = list(rows)
    best = {(then, lane): row for then, lane, row in told(rows)}

    def words_of(then: str, lane: str) -> str:
        row = best.get((then, lane))
        return _told_words(row, rows) if row else fmt.UNKNOWN

    return Table(
        title=f"The experiment, then and now{source(list(best.values()))}",
        head=STORY_HEAD,
        align="lll",
        rows=[(Entry(then), *(Entry(words_of(then, lane)) for lane in ("idiomatic", "tuned"))) for *_, then in STORY],
        notes=[
            Entry("×: speedup over one core in the same column.", "note", (STORY_SOURCE,)),
            *[Entry(NEWER, "note")] * any(row.technique == "dask" for row in best.values()),
            *[Entry(text, "note") for text in _fewer(each for row in best.values() for each in _ties(row, rows))],
        ],
        records=[{"table": "story", "then": then} | record(row) for (then, _), row in best.items()],
    )


def _of_story(rows: Iterable[Row], lane: str) -> list[Row]:
    mine = [row for row in rows if row.ok and (row.mode, row.size, row.lane) == (STRONG, STORY_SIZE, lane)]
    if lane == "tuned":
        return mine
    mine = [row for row in mine if row.chunk == STORY_CHUNK]
    there = {(row.kind, row.technique) for row in mine}
    chosen = {kind: next((name for name in names if (kind, name) in there), "") for kind, names in AS_WRITTEN.items()}
    return [row for row in mine if row.technique == chosen.get(row.kind)]


def _told_words(best: Row, rows: Iterable[Row]) -> str:
    """The time of the best row, its speedup over one core, and every recipe that ties with it."""
    rows = list(rows)
    names = ", ".join(named(row.technique, row.environment) for row in _ties(best, rows))
    alone = [row for row in _of_story(rows, best.lane) if (row.kind, row.workers) == ("core", 1)]
    one = min(alone, key=_median, default=None)
    over = f", {fmt.stale(one)}{fmt.digits(_median(one) / _median(best))} ×" if one else ""
    return f"{fmt.stale(best)}{fmt.seconds(_median(best))} on {best.on}{over}: {names}"


def _ties(best: Row, rows: Iterable[Row]) -> list[Row]:
    """The rows that tie with ``best`` in the story, itself included, the fastest first."""
    beside = [row for row in _of_story(rows, best.lane) if (row.kind, row.workers) == (best.kind, best.workers)]
    return sorted((row for row in beside if tied(row, best)), key=_median)


def _fewer(rows: Iterable[Row]) -> list[str]:
    return fewer_samples((WORKLOAD, row.technique) for row in rows)


def _median(row: Row) -> float:
    return row.timing.median
