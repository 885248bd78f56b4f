"""How near each framework comes to what a GPU can do: its fastest recipe of each workload, in whichever lane."""

from collections.abc import Iterable, Sequence

from gpu_cookbook import catalogue
from gpu_cookbook.render import format
from gpu_cookbook.render.tables import Entry, Table, provenance
from gpu_cookbook.results import Metric, Result, keyed
from gpu_cookbook.units import digits

COLUMNS: tuple[tuple[str, int, Metric], ...] = (
    ("multiply", 2**28, Metric.DEVICE),
    ("increment", 2**28, Metric.DEVICE),
    ("subset_mean", 40_000, Metric.DEVICE),
    ("norm", 2**28, Metric.DEVICE),
    ("matmul", 200, Metric.DEVICE),
    ("matmul", 4_096, Metric.DEVICE),
    ("random_subset_mean", 100_000, Metric.RESIDENT),
)
TUNED = " t"
LEGEND = (
    "%: how fast multiply, increment, subset_mean and norm go through the memory, where a copy is 100 %; what reads"
    " more than it writes may be faster than a copy. ×: how many times as long matmul and random_subset_mean take as"
    " the fastest recipe of all. random_subset_mean is timed by the host's clock, everything else by the device's."
    f"{TUNED}: the recipe is a tuned one; most of these make only the quarter of random_subset_mean's samples that is"
    f" averaged. {format.UNKNOWN} was not measured, or has no device time because the call waits by itself."
    f" {format.STALE} The recipe has changed since. Recipes that start a parallel engine are left out, and those that"
    " round the factors of their products."
)


def by_framework(results: Iterable[Result]) -> Table | None:
    """One row per framework; None without results of a GPU. ``results``: the newest of one machine."""
    counted = [each for each in results if _counts(each)]
    columns = [_fastest(counted, *column) for column in COLUMNS]
    frameworks = sorted({framework for cells in columns for framework in cells}, key=str.casefold)
    if not frameworks:
        return None
    rows: list[list[Entry]] = [[Entry(name)] for name in frameworks]
    for (_, _, metric), fastest in zip(COLUMNS, columns, strict=True):
        least = min((each.order(metric) for each in fastest.values()), default=0)
        for row in rows:
            row.append(_entry(fastest.get(row[0].text), metric, least))
    head = ["framework", *(f"{workload}, {size:,}" for workload, size, _ in COLUMNS)]
    title = f"The fastest recipe of each framework: {', '.join(sorted({each.place for each in counted}))}"
    shown = [each for fastest in columns for each in fastest.values()]
    notes = [Entry(LEGEND, "note"), provenance("Measured", shown)]
    return Table(title, head, "l" + "r" * len(COLUMNS), [*map(tuple, rows)], notes, [])


def _counts(result: Result) -> bool:
    recipe = catalogue.find(result.workload, result.technique)
    one_gpu = result.on_gpu and result.place != "CPU" and recipe is not None and not recipe.engine
    return result.ok and one_gpu and not result.mode


def _fastest(results: Sequence[Result], workload: str, size: int, metric: Metric) -> dict[str, Result]:
    """{framework: its fastest result}."""
    mine = [
        each
        for each in results
        if (each.workload, each.size) == (workload, size) and metric in each.timings and not each.doubt(metric)
    ]
    frameworks = keyed(mine, lambda each: each.framework)
    return {name: min(those, key=lambda each: each.order(metric)) for name, those in frameworks.items()}


def _entry(result: Result | None, metric: Metric, least: float) -> Entry:
    if result is None:
        return Entry(format.UNKNOWN)
    if result.rates and result.rates.share is not None and result.memory_bound:
        share = f"{result.rates.share:.0f} %"
    else:
        share = f"{digits(result.order(metric) / least)} ×"
    text = format.stale(result) + share + TUNED * (result.lane == "tuned")
    return Entry(text, recipe=(result.workload, result.technique))
