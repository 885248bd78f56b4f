"""Machines side by side: two GPUs, of which one has other memory or arithmetic, and several machines of one kind."""

import statistics
from collections.abc import Callable, Sequence

from gpu_cookbook import catalogue, repeats
from gpu_cookbook.render import format
from gpu_cookbook.render.tables import Entry, Row, Table, provenance
from gpu_cookbook.results import Metric, Result, grouped
from gpu_cookbook.units import digits

METRICS = (Metric.DEVICE, Metric.RESIDENT, Metric.TRANSFER)
# What a device can do, as the time that it takes: more GB/s are less time.
PROBES: dict[str, Callable[[Result], float | None]] = {
    "a copy within the memory": lambda each: each.copy_bandwidth and 1 / each.copy_bandwidth,
    "the same within the cache": lambda each: each.cache_bandwidth and 1 / each.cache_bandwidth,
    "multiplications and additions": lambda each: each.arithmetic and 1 / each.arithmetic,
    "an empty kernel": lambda each: each.empty_kernel,
}


def beside(one: Sequence[Result], other: Sequence[Result]) -> Table | None:
    """The times of two machines' GPUs in proportion: of what their device can do, and of the recipes that both have
    measured with the code of today. None if there are none."""
    known = {each.key: each for each in one if _counts(each)}
    pairs = [(known[each.key], each) for each in other if _counts(each) and each.key in known]
    if not pairs:
        return None
    rows: list[Row] = []
    for what, of in PROBES.items():
        if factors := [after / before for pair in pairs for before, after in [map(of, pair)] if before and after]:
            rows.append((Entry(what), Entry(""), Entry(_times(statistics.median(factors))), Entry(""), Entry("")))
    for mine in grouped(pairs, lambda pair: (pair[0].workload, pair[0].size)):
        workload, size = mine[0][0].workload, mine[0][0].size
        label = f"{workload}, {catalogue.workload_module(workload).label(size)}"
        rows.append((Entry(label), Entry(str(len(mine))), *(Entry(_spread(mine, metric)) for metric in METRICS)))
    names = [pair.stored.machine for pair in pairs[0]]
    title = f"Times on {names[1]} relative to {names[0]}"
    head = ("what", "recipes", "device", "resident", "transfer")
    notes = [
        Entry(
            "Of the recipes: the median, and in brackets the least and the most. Doubtful times do not count."
            " A transfer also depends on the host's processor and memory.",
            "note",
        ),
        provenance(names[0], [before for before, _ in pairs]),
        provenance(names[1], [after for _, after in pairs]),
    ]
    return Table(title, head, "lrrrr", rows, notes, [])


def of_one_kind(machines: Sequence[Sequence[Result]]) -> list[Table]:
    """How far machines are from those of the same kind that were measured before them, and the values that lie outside
    of the intervals known before. ``machines``: of each kind, results with the runs of every commit. Empty if no kind
    has several machines."""
    rows: list[Row] = []
    strays: list[Row] = []
    held_in_all = 0
    for results in machines:
        for (metric, gpu), apart in repeats.newcomers(results).items():
            machine, of = results[0].stored.machine, f"{metric}, {'GPU' if gpu else 'CPU'}"
            known, inside = len(apart.widths), len(apart.widths) - len(apart.outside)
            far = (_times(statistics.median(apart.factors)), _times(max(apart.factors)))
            width = _times(statistics.median(apart.widths)) if known else format.UNKNOWN
            held = f"{inside} of {known}" if known else format.UNKNOWN
            rows.append(tuple(map(Entry, (machine, of, str(len(apart.factors)), *far, width, held))))
            held_in_all += inside
            for each, factor, reach in apart.outside:
                recipe = Entry(f"{each.technique}, {each.label}", recipe=(each.workload, each.technique))
                texts = (f"×{digits(factor)}", f"×{digits(1 / reach)} to ×{digits(reach)}")
                strays.append((Entry(machine), Entry(of), Entry(each.workload), recipe, *map(Entry, texts)))
    if not rows:
        return []
    title = "Each further machine of a kind, against those that were measured before it"
    head = ("machine", "metric", "values", "median", "largest", "interval", "within it")
    known = held_in_all + len(strays)
    share = f" Of {known:,} values, {held_in_all:,} lie within it: {100 * held_in_all / known:.0f} %." if known else ""
    note = Entry(
        "Median and largest: by what a value is more, or less. The interval is the one that was known before, and"
        " reaches so far either way (in the median). As long as there was one machine, it comes from its runs." + share,
        "note",
    )
    found = [Table(title, head, "llrrrrr", rows, [note], [])]
    if strays:
        columns = ("machine", "metric", "workload", "technique, size", "factor", "interval")
        found.append(Table("The values outside of the interval", columns, "llllrr", strays, [], []))
    return found


def _counts(result: Result) -> bool:
    return result.ok and not result.stale and result.on_gpu


def _spread(pairs: Sequence[tuple[Result, Result]], metric: Metric) -> str:
    known = [[None if each.doubt(metric) else each.value(metric) for each in pair] for pair in pairs]
    factors = [after / before for before, after in known if before and after]
    if not factors:
        return format.UNKNOWN
    return f"{_times(statistics.median(factors))} ({min(factors):.2f} to {max(factors):.2f})"


def _times(factor: float) -> str:
    return f"×{factor:.2f}"
