"""The tables of results, measured just now or stored; render/change.py and render/abilities.py have the others.

These are pure functions: results go in and Tables come out; render/text.py and render/html_page.py write them. A Table
contains the words that people read and also records for programs, with every digit and with the units in the names.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpu_cookbook import catalogue, machine, repeats
from gpu_cookbook.render import format
from gpu_cookbook.results import (
    NOISY,
    WRONG,
    Metric,
    Rank,
    Result,
    Status,
    grouped,
    metric_record,
    of_lane,
    of_one_environment,
    ranks,
    stored_record,
)
from gpu_cookbook.units import counted, digits, joined

METRICS = {
    Metric.RESIDENT: "one synchronised call, with the data already on the device",
    Metric.PREPARED: "one synchronised call that replays what was prepared for these arrays",
    Metric.DEVICE: "the device's own time for one call, with its queue kept full",
    Metric.TRANSFER: "host arrays in, host result out",
    Metric.PINNED: "the same, from page-locked arrays into a page-locked one",
    Metric.FIRST: "a fresh process with empty caches, from its first import to its first result",
    Metric.MEMORY: "the peak of the memory in use on the GPUs",
    Metric.BANDWIDTH: "GB that must be moved per second (percentage of a copy's bandwidth)",
    Metric.ERROR: "the largest difference of an element from the reference, as a fraction of what the page 'How we "
    "measure' names for each workload; not ranked",
}
MODE = "math mode"
LEGEND = {  # sign: what it means
    format.RANKS[Rank.BEST]: "* is the best in its lane.",
    format.RANKS[
        Rank.TIE
    ]: "= is tied with the best: the middle halves of their samples overlap or, over three runs or "
    "more, their ratio may be 1.",
    format.NOISE: f"~ is noisy: the middle half of the samples spreads over more than {100 * NOISY:.0f} % of the "
    "median. First results and memory peaks are single measurements without a spread.",
    format.DOUBT: "? is doubtful: something disturbed the measurement, or two ways of taking the device's time "
    "disagree. A lane with such a value is not ranked; the reasons are below the workload's last table.",
    format.STALE: (
        "† is stale: the code of the recipe, its workload or its kernel, or the definition of the metric, has changed"
        " since, or the recipe was removed. A lane in which only some values are stale is not ranked."
    ),
    "%": "% compares with a copy on the same device, if the data are larger than its cache. Half of a copy is writing:"
    " what reads more than it writes may be above 100 %.",
    format.UNKNOWN: "– was not measured or does not apply; a known reason is below the workload's last table.",
    MODE: "TF32, float16 or bfloat16 after a lane: the recipe rounds the factors of its products. It is ranked among "
    "recipes that do the same, and not compared with NumPy.",
}
RATIOS = "× NumPy: NumPy's resident time divided by resident, and by transfer, unless one of the two is doubtful."
ARITHMETIC = "Gop/s: billions of operations per second, if arithmetic, not memory, takes the time."
CROSSING = (
    "wins from: the size from which it is faster than NumPy, resident / with transfer; ≈ is estimated between two "
    "measured sizes, ≤ means already at the smallest size, > means not even at the largest."
)
FEWER = "only the quarter that is averaged"  # of the samples of random_subset_mean
REST = (  # after tables in brief
    "gpu-cookbook tables WORKLOAD shows every size and metric of a workload. --format markdown, csv, json or html gives"
    " those of all workloads, and what frameworks can do."
)

Recipe = tuple[str, str]  # workload and technique


@dataclass(frozen=True)
class Entry:
    """The content of one cell of a table, or of a note below it.

    ``mark`` is its meaning, which decides its colour. ``links`` are labels, each with an address or a recipe.
    ``recipe`` is the recipe that the entry names: a site links to it.
    """

    text: str = ""
    mark: str = ""
    links: tuple[tuple[str, str | Recipe], ...] = ()
    recipe: Recipe | None = None


Row = tuple[Entry, ...]


@dataclass(frozen=True)
class Table:
    """``align`` has one letter per column: l for words, which may wrap, and r for numbers. If the first entry of a row
    is marked "group", the row is a heading for the rows below, and its other entries are empty.

    ``workload`` and ``metric`` are None if the table has several. Only an overview has ``workloads``: those of its
    last columns, one each.
    """

    title: str
    head: Sequence[str]
    align: str
    rows: Sequence[Row]
    notes: Sequence[Entry]
    records: Sequence[Mapping[str, Any]]
    workload: str | None = None
    metric: Metric | None = None
    workloads: Sequence[str] = ()

    def whole(self, column: int) -> bool:
        """Whether the column must not wrap: numbers, and the names left of them (a device, a lane)."""
        return "r" in self.align[column:]


def recipe_of(row: Row) -> Recipe | None:
    """The recipe that a row belongs to: the first that one of its entries names."""
    return next((entry.recipe for entry in row if entry.recipe), None)


def legend(signs: Iterable[str] = tuple(LEGEND)) -> str:
    """What the signs mean."""
    return " ".join(LEGEND[sign] for sign in signs)


def below(tables: list[Table], notes: Iterable[Entry]) -> None:
    """Adds notes below the last table, if there is one."""
    if tables:
        tables[-1] = replace(tables[-1], notes=[*tables[-1].notes, *notes])


def metric_entry(result: Result | None, metric: Metric, rank: str = "") -> Entry:
    """Empty if there is no result; the status if it went wrong; otherwise the value after its marks."""
    if result is None:
        return Entry()
    value = result.value(metric)
    if value is None:
        return Entry(result.status, "bad") if result.wrong else Entry(format.UNKNOWN)
    text = format.doubts(result, metric) + format.value(metric, value)
    if metric == Metric.BANDWIDTH and result.rates and result.rates.share is not None:
        text += f" ({result.rates.share:.0f} %)"
    return Entry(format.RANKS.get(rank, "") + format.stale(result) + text, rank)


def technique_entry(result: Result) -> Entry:
    """The name of the technique, which is the recipe's."""
    return Entry(result.technique, recipe=(result.workload, result.technique))


# ---- A comparison: all metrics of a workload side by side.


def _operations(result: Result) -> str:
    """Gop/s as text, if arithmetic, not memory, takes the time; otherwise a dash."""
    return format.UNKNOWN if result.memory_bound or not result.rates else digits(result.rates.operations)


def _wins(result: Result) -> str:
    found = (format.beats_from(result.crossings.get(metric)) for metric in (Metric.RESIDENT, Metric.TRANSFER))
    return " / ".join(filter(None, found)) or format.UNKNOWN


COMPARED: tuple[tuple[str, Metric | Callable[[Result], str]], ...] = (  # heading; columns that do not fit move below
    ("resident", Metric.RESIDENT),
    ("prepared", Metric.PREPARED),
    ("transfer", Metric.TRANSFER),
    ("pinned", Metric.PINNED),
    ("×\N{NO-BREAK SPACE}NumPy", lambda result: format.ratio(result, Metric.RESIDENT)),
    ("×\N{NO-BREAK SPACE}NumPy,\ntransfer", lambda result: format.ratio(result, Metric.TRANSFER)),
    ("device", Metric.DEVICE),
    ("GB/s", Metric.BANDWIDTH),
    ("Gop/s", _operations),
    ("memory", Metric.MEMORY),
    ("error", Metric.ERROR),
    ("first\nresult", Metric.FIRST),
    ("wins from", _wins),
)


def compared(results: Iterable[Result]) -> list[Table]:
    """One table per workload, then a note on how to read them."""
    results = list(results)
    tables = [side_by_side(mine) for mine in grouped(results, lambda each: each.workload)]
    below(tables, explained(results))
    return tables


def side_by_side(results: Iterable[Result]) -> Table:
    """All metrics of one workload in one table, the fastest of each size and lane first, and recipes that round their
    factors last. Each environment has rows and ranks of its own."""
    results = list(results)
    workload = results[0].workload
    ok = [each for each in results if each.ok]
    ok.sort(
        key=lambda each: (
            each.size,
            each.environment != machine.MAIN,
            each.environment,
            each.mode,
            each.lane,
            each.order(Metric.RESIDENT),
        )
    )
    several = len({each.peers for each in ok}) > 1
    # Leave out a column that is empty, or that only says that NumPy is as fast as itself.
    silent = (format.UNKNOWN, "1")
    used = [(head, what) for head, what in COMPARED if any(_told(each, what).text not in silent for each in ok)]
    rows: list[Row] = []
    for mine in grouped(ok, lambda each: (each.size, each.environment)):
        rivals = [each for each in results if (each.size, each.environment) == (mine[0].size, mine[0].environment)]
        ranked: dict[Any, dict[str, Rank]] = {metric: ranks(rivals, metric) for metric in Metric}
        for peers in grouped(mine, lambda each: each.peers):
            words = (peers[0].label, *[peers[0].peers] * several, _environments(peers))
            rows.append((Entry(", ".join(filter(None, words)), "group"), *[Entry()] * (1 + len(used))))
            for each in peers:
                entries = [_told(each, what, ranked.get(what, {}).get(each.technique, "")) for _, what in used]
                rows.append((technique_entry(each), Entry(format.on(each)), *entries))
    statement = catalogue.workloads().get(workload, "").partition(": ")[2]
    title = f"{workload}: {statement}" if statement else workload
    head = ("technique", "on", *(head for head, _ in used))
    notes = [*[Entry("Nothing was measured.")] * (not rows), *reasons_of(results)]
    return Table(title, head, "ll" + "r" * len(used), rows, notes, [], workload)


def _told(result: Result, what: Metric | Callable[[Result], str], rank: str = "") -> Entry:
    return metric_entry(result, what, rank) if isinstance(what, Metric) else Entry(what(result))


def explained(results: Sequence[Result]) -> list[Entry]:
    """Notes on how to read a comparison, if there is a number in it."""
    ok = [each for each in results if each.ok]
    if not ok:
        return []
    metrics = " ".join(
        f"{' '.join(head.split())}: {METRICS[what]}."
        for head, what in COMPARED
        if what in METRICS and any(each.value(what) is not None for each in ok)
    )
    there = {format.STALE: any(each.stale for each in ok), MODE: any(each.mode for each in ok)}
    signs = [sign for sign in LEGEND if there.get(sign, True)]
    caption = f"All times are medians. {metrics} {RATIOS} {ARITHMETIC} {CROSSING}"
    stored = [each for each in results if each.origin]
    where = [f"{already_stored(stored)}."] if stored else []
    return [Entry(text, "note") for text in (caption, legend(signs), _measured_with(ok), *where)]


def _measured_with(ok: Sequence[Result]) -> str:
    """The devices with their copy bandwidth, the driver, the environment and the versions, in one line."""
    rates = _copy_rates(ok)
    devices = (
        f"{device} (copies at {rates[device]} GB/s)" if device in rates else f"{device}"
        for device in dict.fromkeys(each.device for each in ok)
    )
    drivers = sorted({f"; driver {each.driver}, CUDA {each.cuda}" for each in ok if each.driver})
    where = f"; {_environments(ok)}" if _environments(ok) else ""
    versions = ", ".join(sorted({version for each in ok for version in (each.versions or "").split(", ") if version}))
    return f"Measured on {', '.join(devices)}{''.join(drivers)}{where}, with {versions}."


# ---- Stored results: one metric of a workload over the sizes.


def measured(results: Sequence[Result], lane: str | None = None, known: Sequence[Result] | None = None) -> list[Table]:
    """Technique × size, one table per workload and metric. Results of two machines or environments never share one of
    these; before them is the overview of a machine with several workloads. The reasons why something is missing are
    below a workload's last table; how it was measured is below the machine's last table.

    ``lane``: only the results of this lane, plus NumPy's. ``known``: all results of these machines, from which it is
    found how far the next machine may be from the values; ``results``, if omitted.
    """
    known = results if known is None else known
    tables: list[Table] = []
    for there in grouped(_by_workload(of_lane(results, lane)), _place):
        tables += [table for table, _ in _overviews(there, results)]
        for runs in grouped(there, _installation):
            spreads = repeats.spreads(each for each in known if _installation(each) == _installation(runs[0]))
            for mine in grouped(runs, lambda each: each.workload):
                source = source_of(mine, results)
                found = [_of_metric(mine, metric, source, spreads) for metric in Metric]
                tables += [table for table in found if table.rows or table is found[0]]
                below(tables, reasons_of(mine))
            signs = [sign for sign in LEGEND if sign != MODE or any(each.mode for each in runs)]
            below(tables, [Entry(legend(signs), "note"), provenance("Measured", runs), *elsewhere(spreads)])
    return tables


def overviews(results: Iterable[Result]) -> list[Table]:
    """Every technique in every workload, at the largest size that was measured: a table for each machine that has
    several workloads."""
    results = _by_workload(results)
    return [replace(table, notes=[provenance("Measured", runs)]) for table, runs in _overviews(results, results)]


def in_brief(results: Sequence[Result], lane: str | None = None) -> list[Table]:
    """For a terminal: the overview of each machine, or all tables of one with a single workload. ``lane``: see
    measured()."""
    tables: list[Table] = []
    shown = _by_workload(of_lane(results, lane))
    for there in grouped(shown, _place):
        if found := overviews(there):
            below(found, elsewhere(repeats.spreads(each for each in results if _place(each) == _place(there[0]))))
        tables += found or measured(there, known=results)
    if any(table.workloads for table in tables):
        signs = [sign for sign in LEGEND if sign != "%" and (sign != MODE or any(each.mode for each in shown))]
        below(tables, [Entry(legend(signs), "note")])
    below(tables, [Entry(REST)])
    return tables


def _overviews(results: Sequence[Result], others: Sequence[Result]) -> Iterator[tuple[Table, list[Result]]]:
    """Each with its results: what runs in one environment only is compared with all others of the same machine.
    ``others``: see source_of()."""
    for there in grouped(results, _place):
        runs = of_one_environment(there)
        if len({each.workload for each in runs}) > 1:
            kernels = {recipe.workload for recipe in catalogue.recipes() if recipe.kernels}
            for there_are, word in ((True, "with"), (False, "without")):  # in one table they are wider than a page
                mine = [each for each in runs if (each.workload in kernels) == there_are]
                of = f" of workloads {word} kernels" if len(mine) < len(runs) else ""
                if mine:
                    yield _overview(mine, of, source_of(mine, others)), mine


def _by_workload(results: Iterable[Result]) -> list[Result]:
    order = list(catalogue.workloads())  # not that of the file names
    return sorted(results, key=lambda each: order.index(each.workload))


def elsewhere(spreads: Mapping[repeats.Kind, repeats.Spread]) -> Iterator[Entry]:
    """How far the next machine, or run, may be from the values, for each kind of metric that was measured often."""
    for machines, where in ((True, "Another machine of this kind"), (False, "Another run on this machine")):
        there = {kind: spread for kind, spread in spreads.items() if spread.tells and spread.machines == machines}
        for gpu, place in ((True, "GPU"), (False, "CPU")):
            mine = {metric: spread for (metric, on), spread in there.items() if on == gpu}
            if mine:
                # A table shows one run's values, not the means of several.
                factors = ", ".join(f"{metric} ×{digits(spread.factor(1))}" for metric, spread in mine.items())
                units = min(spread.units for spread in mine.values())
                text = f"{where}: {100 * repeats.SHARE:.0f} % of the {place}'s values within {factors} of these"
                yield Entry(f"{text}, either way (from at least {units} {'machines' if machines else 'runs'}).", "note")


def _place(result: Result) -> tuple[str, ...]:
    """The machine, and what asv was run with there."""
    return (result.origin.machine, _asv_environment(result)) if result.origin else ()


def _installation(result: Result) -> tuple[str, ...]:
    """What results that are ranked together have in common."""
    return *((result.origin.machine, result.origin.environment) if result.origin else ()), result.environment


def shown(result: Result | None, metric: Metric) -> bool:
    """Whether the result has a row in this metric's table. One that went wrong has a row among the resident times."""
    if result is None:
        return False
    return result.value(metric) is not None or (result.wrong and metric == Metric.RESIDENT)


def _of_metric(
    results: Sequence[Result], metric: Metric, source: str, spreads: Mapping[repeats.Kind, repeats.Spread]
) -> Table:
    """The table of one metric of one workload, the fastest at the largest size first, and recipes that round their
    factors last."""
    workload = results[0].workload
    every = {(each.technique, each.size): each for each in results}
    there = [each for each in every.values() if shown(each, metric)]
    sizes = sorted({each.size for each in there})
    ranked = {size: ranks([each for each in every.values() if each.size == size], metric) for size in sizes}
    several = len({each.peers for each in there}) > 1
    rows, records = {}, []
    for mine in grouped(there, lambda each: each.technique):
        technique = mine[0].technique
        place = next((format.on(each) for each in mine if each.place), "")
        row = [technique_entry(mine[0]), *[Entry(mine[0].peers)] * several, Entry(place)]
        order: list[Any] = [mine[0].mode, mine[0].lane]
        for size in sizes:
            result, rank = every.get((technique, size)), ranked[size].get(technique, "")
            row.append(metric_entry(result, metric, rank))
            order.insert(2, result.order(metric) if result else math.inf)
            if result and result.value(metric) is not None:
                low, high = repeats.interval(result, metric, spreads) or (None, None)
                more = {
                    "rank": rank or None,
                    "runs": len(result.runs.get(metric, ())),
                    "next_low": low,
                    "next_high": high,
                }
                records.append(_record(result, metric) | metric_record(result, metric) | more)
        rows[*order, technique] = tuple(row)
    if metric == Metric.RESIDENT:
        records += [_record(each) for each in every.values() if not each.ok]
    words = ("technique", *["lane"] * several, "on")
    head = (*words, *map(catalogue.workload_module(workload).label, sizes))
    title = _sourced(f"{workload}, {metric}: {METRICS[metric]}", source)
    align = "l" * len(words) + "r" * len(sizes)
    return Table(title, head, align, [rows[order] for order in sorted(rows)], [], records, workload, metric)


def _record(result: Result, metric: Metric | None = None) -> dict[str, Any]:
    return {"table": "measured", "metric": metric} | stored_record(result)


def _overview(results: Sequence[Result], of: str, source: str) -> Table:
    """Every technique in every workload, at the largest size that was measured. ``of``: what the title says of them."""
    timed = [each for each in results if each.value(Metric.RESIDENT) is not None]
    sizes = {mine[0].workload: max(each.size for each in mine) for mine in grouped(timed, lambda each: each.workload)}
    every = {(each.workload, each.technique): each for each in results if each.size == sizes.get(each.workload)}
    ranked = {
        name: ranks([each for each in every.values() if each.workload == name], Metric.RESIDENT) for name in sizes
    }
    timed = [each for each in every.values() if each.value(Metric.RESIDENT) is not None]
    several = len({each.peers for each in timed}) > 1
    rows = []
    for mine in sorted(grouped(timed, lambda each: each.technique), key=lambda mine: _numpy_first(mine[0])):
        technique = mine[0].technique
        row = [Entry(mine[0].name), *[Entry(mine[0].peers)] * several, Entry(format.on(mine[0]))]
        for workload in sizes:
            entry = metric_entry(every.get((workload, technique)), Metric.RESIDENT, ranked[workload].get(technique, ""))
            row.append(replace(entry, recipe=(workload, technique)) if entry.text else entry)
        rows.append(tuple(row))
    labels = [f"{workload}\n{catalogue.workload_module(workload).label(size)}" for workload, size in sizes.items()]
    words = ("technique", *["lane"] * several, "on")
    title = _sourced(f"Resident time of one call at the largest size{of}", source)
    align = "l" * len(words) + "r" * len(sizes)
    return Table(title, (*words, *labels), align, rows, [], [], metric=Metric.RESIDENT, workloads=tuple(sizes))


def _numpy_first(result: Result) -> tuple[bool, str]:
    return not result.is_numpy, result.technique


def _sourced(title: str, source: str) -> str:
    return f"{title}. {source}" if source else title


# ---- Where results come from, and why some are missing.


def fewer_samples(recipes: Iterable[Recipe]) -> list[str]:
    """A sentence on those that make fewer samples of random_subset_mean than others, if any of these do."""
    found = [catalogue.find(*each) for each in dict.fromkeys(recipes)]
    if names := [each.technique for each in found if each and each.makes_fewer_samples]:
        return [f"Of random_subset_mean's samples, these make {FEWER}: {', '.join(names)}. Others make all of them."]
    return []


def reasons_of(results: Iterable[Result]) -> Iterator[Entry]:
    """Why results have no metrics, errors first; and which techniques use arithmetic other than IEEE 754, or make fewer
    samples than others. Techniques with the same reason share a line."""
    results = list(results)
    lines = list(without_metrics(results))
    for each in results:
        if each.ok and each.no_device_time and Metric.DEVICE not in each.timings:
            lines.append((each.technique, "no device time", each.no_device_time))
        recipe = catalogue.find(each.workload, each.technique)
        if each.ok and recipe and recipe.makes_fewer_samples:
            lines.append((each.technique, "samples", f"{FEWER}; others make all of them"))
        lines += [
            (f"{each.technique} at {each.label}", f"doubtful {metric}", doubt)
            for metric, doubt in each.doubts.items()
            if each.ok and each.value(metric) is not None
        ]
    groups: dict[tuple[bool, str, str], list[str]] = {}
    for technique, status, reason in dict.fromkeys(lines):
        groups.setdefault((status not in WRONG, status, reason), []).append(technique)
    for (fine, status, reason), techniques in sorted(groups.items()):
        yield Entry(f"{status}: {', '.join(techniques)}: {reason}", "note" if fine else "bad")


def without_metrics(results: Sequence[Result]) -> Iterator[tuple[str, str, str]]:
    """(technique, status, reason) of results without metrics, one line per technique, or per reason with its sizes if
    they differ; and (technique, "math", mode) of recipes whose arithmetic is not IEEE 754 in the arrays' dtype."""
    wrong = [each for each in results if not each.ok]
    for those in grouped(wrong, lambda each: (each.technique, each.status, each.reason)):
        technique, reason = those[0].technique, those[0].reason or "no reason was stored"
        all_sizes = len(those) == sum(each.technique == technique for each in results)
        sizes = "" if all_sizes else f"at {', '.join(each.label for each in those)}: "
        yield technique, those[0].status, sizes + reason
    for technique, mode in dict.fromkeys((each.technique, each.math) for each in results if each.ok):
        if mode and mode != "IEEE":
            yield technique, "math", mode


def _environments(results: Iterable[Result]) -> str:
    """'environment cudf', 'environments cudf and main'; nothing if it is the main one."""
    names = sorted({each.environment for each in results})
    return "" if names in ([], [machine.MAIN]) else f"environment{'s' * (len(names) > 1)} {joined(names)}"


def source_of(results: Sequence[Result], others: Sequence[Result]) -> str:
    """Machine, commits and dates of the results, their environment if it is not the main one, and asv's environment if
    not all share one. Of many commits, how many: which they are is below the tables."""
    several = len({_asv_environment(each) for each in (*results, *others) if each.origin}) > 1
    environments = sorted({_asv_environment(each) for each in results if each.origin}) if several else []
    known = facts(results)
    where = [known.get("machine"), _environments(results), joined(environments) if environments else ""]
    commits, dates = (
        sorted({value for each in results if (value := FACTS[name](each))}) for name in ("commit", "date")
    )
    if len(commits) <= MOST_COMMITS:
        when = [known.get("commit"), known.get("date")]
    else:
        when = [f"{len(commits)} commits", f"{dates[0]} to {dates[-1]}" if len(dates) > 1 else dates[0]]
    return ", ".join(filter(None, (*where, *when)))


def _asv_environment(result: Result) -> str:
    """asv's name for the environment, without ours at its end."""
    assert result.origin
    return result.origin.environment.removesuffix(f"-{result.environment}")


def already_stored(results: Sequence[Result]) -> str:
    """What is not measured again, and where it comes from: '3 results are already stored: 2 of commit 88c7b72c,
    2026-11-22; 1 of commit f9ee95ef, 2026-11-25'; and how many of them another machine of this name has measured."""
    ordered = sorted(results, key=lambda each: each.stored.order)
    of_commits = [
        f"{len(those)} of commit {known['commit']}, {known['date']}"
        for those in grouped(ordered, lambda each: each.stored.commit)
        if (known := facts(those))
    ]
    last = [max(each.runs.get(Metric.RESIDENT, ()), key=lambda run: run.started, default=None) for each in results]
    elsewhere = sum(run is not None and run.instance not in (None, machine.instance()) for run in last)
    if elsewhere:
        of_commits.append(f"{elsewhere} of them measured on another machine of this name")
    verb = "is" if len(results) == 1 else "are"
    return f"{counted(len(results), 'result')} {verb} already stored: {'; '.join(of_commits)}"


MOST_COMMITS = 2  # that a title names
RUN = ("machine", "environment", "asv environment", "commit", "sent by")  # the facts that identify the results
COPYING = "copying"
FACTS: dict[str, Callable[[Result], str | None]] = {
    "machine": lambda each: each.origin.machine if each.origin else None,
    "environment": lambda each: each.environment if each.environment != machine.MAIN else None,
    "asv environment": lambda each: each.origin.environment if each.origin else None,
    "commit": lambda each: each.origin.commit[:8] if each.origin else None,
    "date": lambda each: each.origin.date if each.origin else None,
    "sent by": lambda each: each.origin.contributor if each.origin else None,
    "device": lambda each: each.device,
    "driver": lambda each: each.driver,
    "cuda": lambda each: each.cuda,
    "clock": lambda each: each.clock,
}


def facts(results: Iterable[Result]) -> dict[str, str]:
    """{fact: its values}, then {package: its versions}."""
    results = list(results)
    found = {name: {value for each in results if (value := of(each))} for name, of in FACTS.items()}
    found[COPYING] = {f"{rate} GB/s on {device}" for device, rate in _copy_rates(results).items()}
    packages: dict[str, set[str]] = {}
    for each in results:
        for version in filter(None, (each.versions or "").split(", ")):
            package, _, number = version.rpartition(" ")
            packages.setdefault(package, set()).add(number)
    found |= dict(sorted(packages.items()))
    return {name: joined(sorted(values)) for name, values in found.items() if values}


def provenance(word: str, results: Iterable[Result]) -> Entry:
    """All facts in one line."""
    known = "; ".join(f"{name} {value}" for name, value in facts(results).items())
    return Entry(f"{word}: {known or 'nothing was measured'}.", "note")


def _copy_rates(results: Iterable[Result]) -> dict[str | None, str]:
    """{device: "4,210", or "4,190 to 4,250" where that was not the same beside each result}, in GB/s."""
    rates: dict[str | None, list[float]] = {}
    for each in results:
        if each.copy_bandwidth:
            rates.setdefault(each.device, []).append(each.copy_bandwidth)
    ends = {device: (digits(min(those)), digits(max(those))) for device, those in rates.items()}
    return {device: low if low == high else f"{low} to {high}" for device, (low, high) in ends.items()}


# ---- Checks.


def checked(results: Iterable[Result]) -> Table:
    """One line per recipe that was checked; a wrong one shows its first error."""
    results = list(results)
    rows: list[Row] = []
    for mine in grouped(results, lambda each: each.workload):
        rows.append((Entry(mine[0].workload, "group"), *[Entry()] * 3))
        rows += [_check(those) for those in grouped(mine, lambda each: each.technique)]
    where = _environments(each for each in results if each.ok)
    title = f"Checked against NumPy, {where}" if where else "Checked against NumPy"
    return Table(title, ("technique", "on", "sizes", "result"), "llrl", rows, [], [])


def _check(results: Sequence[Result]) -> Row:
    """The row of one recipe, from its results at all sizes."""
    bad = next((each for each in results if not each.ok), None)
    sizes = f"{sum(each.ok for each in results)}/{len(results)}"
    if bad is None:
        end = Entry("correct", "right")
    elif bad.status == Status.SKIPPED:
        end, sizes = Entry(f"skipped: {bad.reason}", "note"), ""
    else:
        end = Entry(f"{bad.status} at {bad.label}: {bad.reason}", "bad")
    return technique_entry(results[0]), Entry(format.on(results[0])), Entry(sizes), end
