"""How results are written everywhere: their marks, and the few words around them. units.py has the numbers."""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from gpu_cookbook.results import Crossing, Metric, Rank, Result
from gpu_cookbook.units import digits, seconds, short
from gpu_cookbook.words import csv_cell

STALE = "†"  # before a value whose recipe has changed since it was measured
NOISE = "~"  # before a time whose samples spread widely: see Timing.noisy
DOUBT = "?"  # before a value that may be wrong: see Result.doubts
UNKNOWN = "–"
RANKS: dict[str, str] = {Rank.BEST: "*", Rank.TIE: "="}  # before a value, and before its other marks


def value(metric: Metric, number: float) -> str:
    """The value of a metric as text: a time, GiB, GB/s without the unit, or a fraction such as 1.2e-07."""
    if metric == Metric.ERROR:
        return f"{number:.1e}" if number else "0"
    if metric == Metric.MEMORY:
        return f"{digits(number / 2**30)} GiB"
    return digits(number) if metric == Metric.BANDWIDTH else seconds(number)


def timing(result: Result, metric: Metric) -> str:
    """A time, marked if it is noisy; a dash if there is none."""
    value = result.value(metric)
    return UNKNOWN if value is None else doubts(result, metric) + seconds(value)


def doubts(result: Result, metric: Metric) -> str:
    """The marks before a value: that it is doubtful, and that it is noisy."""
    return DOUBT * bool(result.doubt(metric)) + NOISE * result.noisy(metric)


def on(result: Result) -> str:
    """Where it ran, for a narrow column: H100 for NVIDIA H100 80GB HBM3, whose whole name is in a note."""
    return re.sub(r"NVIDIA | \d+GB HBM\w+$", "", result.place)


def ratio(result: Result, metric: Metric) -> str:
    """How many times as fast as NumPy."""
    if result.is_numpy:
        return "1"
    speedup = result.speedups.get(metric)
    return UNKNOWN if speedup is None else digits(speedup)


def beats_from(crossing: Crossing | None) -> str:
    """≈210,000, ≤4,000 or >268 M: the size from which one beats the other; '' if that is not known."""
    if crossing is None:
        return ""
    if crossing.size is None:
        return f">{short(crossing.measured_to)}"
    if crossing.everywhere:
        return f"≤{short(crossing.size)}"
    return f"≈{short(float(f'{crossing.size:.2g}'))}"  # two digits: it is estimated between distant sizes


def stale(each: Any) -> str:
    """The mark of a Result or a Row that is stale."""
    return STALE * each.stale


def as_csv(records: Iterable[Mapping[str, Any]]) -> str:
    """One line per record, and one column per key that any of them has."""
    records = list(records)
    fields = list(dict.fromkeys(key for record in records for key in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: csv_cell(value) for key, value in record.items()} for record in records)
    return text.getvalue()


def as_json(data: Any) -> str:
    """In ASCII, so that it is the same in every encoding."""
    return json.dumps(data, indent=2) + "\n"
