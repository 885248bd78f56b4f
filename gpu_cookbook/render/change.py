"""The tables of what has changed between two commits, machines or environments."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from gpu_cookbook import machine
from gpu_cookbook.render.tables import (
    COPYING,
    RUN,
    Entry,
    Row,
    Table,
    below,
    facts,
    metric_entry,
    provenance,
    shown,
    source_of,
)
from gpu_cookbook.results import TIMED, Metric, Result, grouped, metric_record, origin_record
from gpu_cookbook.units import digits, joined

FACTOR = 1.1  # asv's
VERDICTS = (
    f"faster or slower: the 99 % intervals do not overlap, and the medians differ by more than a factor of {FACTOR}. "
    f"same: the intervals rule out a factor of {FACTOR}. cannot tell: everything else. why: the range of ratios that "
    "the intervals allow. The intervals come from the samples of a single process, and reach over all runs of a result "
    "that was measured several times; of one that was not, the variation between processes is unknown."
)


def change(before: Sequence[Result], after: Sequence[Result]) -> list[Table]:
    """Two commits, machines or environments side by side, one table per workload and timed metric.

    The verdicts follow `asv compare`, with its test of the medians' 99 % intervals and its factor, except that what asv
    calls unchanged is split into two:

    faster, slower: the intervals do not overlap, and the medians differ by more than a factor of 1.1.
    same: the true medians differ by less than a factor of 1.1, wherever in the intervals they are.
    cannot tell: the intervals are too wide for either; or one side has no time or no interval, and the row says which.

    If a side has results of several environments, each that both sides have has tables of its own, the main one first;
    of the others, there is a line. If they share none, each has tables of its own."""
    environments = [{each.environment for each in side} for side in (before, after)]
    listed = set.intersection(*environments) or set.union(*environments)
    if max(map(len, environments)) > 1:
        every = sorted(listed, key=lambda name: (name != machine.MAIN, name))
        sides = [[[each for each in side if each.environment == name] for side in (before, after)] for name in every]
        found = [table for one, other in sides for table in change(one, other)]
        for when, side_has in zip(("before", "after"), environments, strict=True):
            if alone := sorted(side_has - listed):
                below(found, [Entry(f"Measured {when} only: environment {joined(alone)}.", "note")])
        return found
    # Not the environment: the two sides may be two of them.
    old, new = ({each.work: each for each in side} for side in (before, after))
    names = f"{source_of(before, after) or 'nothing'} → {source_of(after, before) or 'nothing'}"
    tables: list[Table] = []
    for mine in grouped([*before, *after], lambda each: each.workload):
        keys = dict.fromkeys(each.work for each in mine)
        for metric in TIMED:
            pairs = [(old.get(each), new.get(each)) for each in keys]
            pairs = [pair for pair in pairs if any(shown(each, metric) for each in pair)]
            pairs.sort(key=lambda pair: None in pair)  # what both sides have comes first
            if pairs:
                rows, records = zip(*(_changed(*pair, metric) for pair in pairs), strict=True)
                title = f"{mine[0].workload}, {metric}: {names}"
                head = ("technique, size", "before", "after", "ratio", "verdict", "why")
                tables.append(Table(title, head, "lrrrll", rows, [], records, mine[0].workload, metric))
    notes = [Entry(VERDICTS, "note"), *_differences(before, after)]
    below(tables, [*notes, provenance("Before", before), provenance("After", after)])
    return tables


def _differences(before: Sequence[Result], after: Sequence[Result]) -> Iterator[Entry]:
    """What else differs between the two sides, among the recipes that both measured."""
    sides = [{(each.workload, each.technique): each for each in side if each.ok} for side in (before, after)]
    known = []
    for side in sides:
        both = [side[key] for key in side if key in sides[0] and key in sides[1]]
        modes = {f"math of {each.technique} in {each.workload}": each.math or "unknown" for each in both}
        known.append(facts(both) | modes)
    for name in dict.fromkeys([*known[0], *known[1]]):
        values = [side.get(name, "none") for side in known]
        if values[0] != values[1] and name not in (*RUN, COPYING):
            yield Entry(f"Also different: {name}: {values[0]} → {values[1]}", "note")


def _changed(before: Result | None, after: Result | None, metric: Metric) -> tuple[Row, dict[str, Any]]:
    """The row and the record of one technique at one size; ``before`` or ``after`` may be None, but not both."""
    pair = (before, after)
    known = next(each for each in pair if each)
    verdict, why = verdict_of(before, after, metric)
    old, new = (each.value(metric) if each else None for each in pair)
    ratio = None if old is None or new is None else new / old
    mark = "bad" if any(each and each.wrong for each in pair) else verdict
    texts = (Entry("" if ratio is None else f"×{digits(ratio)}"), Entry(verdict, mark), Entry(why))
    record: dict[str, Any] = {"table": "change", "metric": metric, "workload": known.workload}
    record |= {"technique": known.technique, "size": known.size}
    for when, each in zip(("before", "after"), pair, strict=True):
        numbers = origin_record(each) | metric_record(each, metric)
        record |= {f"{when}_{key}": value for key, value in numbers.items()}
    record |= {"ratio_x": ratio, "verdict": verdict, "why": why}
    name = Entry(f"{known.technique}, {known.label}", recipe=(known.workload, known.technique))
    return (name, *(metric_entry(each, metric) for each in pair), *texts), record


def verdict_of(before: Result | None, after: Result | None, metric: Metric) -> tuple[str, str]:
    """(verdict, why): the range of ratios that the intervals allow, or what is missing on which side."""
    from asv._stats import is_different  # imported here so that the other tables do not need asv

    old, new = _median(before, metric), _median(after, metric)
    if isinstance(old, str) or isinstance(new, str):
        faults: dict[str, list[str]] = {}
        for when, fault in (("before", old), ("after", new)):
            if isinstance(fault, str):
                faults.setdefault(fault, []).append(when)
        return "cannot tell", "; ".join(f"{' and '.join(whens)}: {fault}" for fault, whens in faults.items())
    (median, low, high), (new_median, new_low, new_high) = old, new
    ratio = new_median / median
    # With fewer than ten samples, asv's interval may begin below 0.
    least, most = max(0, new_low) / high, new_high / low if low > 0 else math.inf
    why = f"×{digits(least)} to {f'×{digits(most)}' if most < math.inf else 'any'}"
    stats = [{"ci_99_a": low, "ci_99_b": high}, {"ci_99_a": new_low, "ci_99_b": new_high}]
    if is_different(None, None, *stats) and not 1 / FACTOR <= ratio <= FACTOR:
        return "faster" if ratio < 1 else "slower", why
    return "same" if least > 1 / FACTOR and most < FACTOR else "cannot tell", why


def _median(result: Result | None, metric: Metric) -> tuple[float, float, float] | str:
    """The median and its interval, or why they are not known."""
    if result is None:
        return "not measured"
    if not result.ok:
        return f"{result.status}: {result.reason or 'no reason was stored'}"
    timing = result.timings.get(metric)
    if timing is None:
        return f"no {metric} time"
    if doubt := result.doubt(metric):
        return f"doubtful: {doubt}"
    if not timing.interval:
        return "no 99 % interval"
    every = [*timing.interval, *result.runs.get(metric, {}).values()]
    return timing.median, min(every), max(every)
