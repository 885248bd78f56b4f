"""Charts of results, measured just now or stored, each as inline SVG with its numbers in a Table beside it.

These are pure functions: the judged results of one machine go in, and a Chart comes out, or None if there is nothing to
draw. The SVG takes its font and its text colour from the page; the title is on the page, not in the drawing. A chart
sets recipes beside one another, so that those which round their factors are not in it; bars() draws what it is told to.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from gpu_cookbook import catalogue
from gpu_cookbook.render import format, svg, tables
from gpu_cookbook.render.format import UNKNOWN
from gpu_cookbook.render.svg import COLOURS, INK, LANES, MARKERS, Draw, Style
from gpu_cookbook.render.tables import Entry, Table
from gpu_cookbook.results import (
    AGAINST_NUMPY,
    UNITS,
    Metric,
    Result,
    Size,
    completed,
    grouped,
    of_one_environment,
    origin_record,
    proportional,
    record,
    tied,
)
from gpu_cookbook.units import digits, joined, prefixed, seconds, short

if TYPE_CHECKING:  # listing recipes imports this module, but not matplotlib
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

MANY = 12  # the most lines or bars per lane
TOLD = 8  # lines that can be told apart; with more, the others are grey
GREY: Style = {"color": INK, "alpha": 0.3, "linewidth": 0.7, "zorder": 1}
STEPS = 5  # from one measured size to the next: enough for a line that bends
CUT = 5  # times the median: longer bars are cut, because they would leave no room for the others
NUMPY: Style = {"facecolor": INK, "alpha": 0.6}
HATCHES = ("", "////", "\\\\\\\\", "xxxx")  # lines only: a dot would be drawn as eight curves
PIECES: tuple[Style, ...] = tuple(
    {"facecolor": colour, "hatch": hatch, "edgecolor": INK} for colour, hatch in zip(COLOURS, HATCHES, strict=False)
)
STARTING = {  # the parts of a first result
    "import": "import",
    "setup": "context, engine, compiler, upload",
    "call": "first call",
    "download": "download",
}
CALLS = (Metric.DEVICE, Metric.RESIDENT, Metric.PREPARED, Metric.TRANSFER)
OWN, LAUNCH, SAVED, TRANSFERS = (
    "device's own time",
    "launch and synchronise",
    "of which prepared() saves",
    "transfers",
)
PARTS: dict[str, tuple[str, Style]] = {  # of a call: the key in a record, and the style
    OWN: ("own_s", PIECES[0]),
    LAUNCH: ("launch_s", PIECES[1]),
    SAVED: ("saved_s", PIECES[1] | {"hatch": ""}),
    TRANSFERS: ("transfers_s", PIECES[2]),
}
STALE = Entry(tables.legend((format.STALE,)), "note")

T = TypeVar("T")
Pick = tuple[str, str, str, Size, Metric]  # the label of a bar; workload, technique, size and metric of its value


@dataclass(frozen=True)
class Chart:
    """``text`` describes the chart in a sentence, for readers who cannot see it."""

    title: str
    text: str
    svg: str
    table: Table
    workload: str | None = None  # None if the chart has several


@dataclass(frozen=True)
class Bar:
    """One or more values side by side, each with its style, and the text at their end."""

    label: str
    pieces: Sequence[tuple[float, Style]]
    text: str

    @property
    def total(self) -> float:
        return sum(value for value, _ in self.pieces)


@dataclass(frozen=True)
class Cost:
    """The parts of a call's time, in seconds; empty if there is no device time, as for NumPy."""

    result: Result
    parts: Mapping[str, float]  # SAVED is a part of LAUNCH

    @classmethod
    def of(cls, result: Result) -> "Cost":
        resident = _known(result.value(Metric.RESIDENT))
        device, _, prepared, transfer = map(result.value, CALLS)
        if device is None:
            return cls(result, {})
        own = min(device, resident)  # a device time comes from a full queue, and can be slightly longer than one call
        parts = {OWN: own, LAUNCH: resident - own}
        if prepared is not None:
            parts[SAVED] = min(max(0, resident - prepared), parts[LAUNCH])
        if transfer is not None:
            parts[TRANSFERS] = max(0, transfer - resident)
        return cls(result, parts)

    @property
    def total(self) -> float:
        if not self.parts:
            return _known(self.result.value(Metric.RESIDENT))
        return sum(self.parts.values()) - self.parts.get(SAVED, 0)

    @property
    def pieces(self) -> list[tuple[float, Style]]:
        """The pieces of its bar: what prepared() saves is cut from LAUNCH and drawn after the rest of it."""
        drawn = dict(self.parts)
        if SAVED in drawn:
            drawn[LAUNCH] -= drawn[SAVED]
        return [(value, PARTS[part][1]) for part, value in drawn.items()] or [(self.total, NUMPY)]


# ---- The charts.


def by_size(results: Iterable[Result], metric: Metric = Metric.RESIDENT) -> Chart | None:
    """One line per technique of one workload: time over size, with a ring where it becomes faster than NumPy, unless it
    always is. If there are too many to be readable, each lane has a panel with the fastest of each framework, and only
    the first of them have a colour and a name.

    NumPy transfers and prepares nothing and has no device, so its line shows its resident time, to which speedups are
    relative. None if there is too little to draw, or if a size is more than one number: it has no place on an axis."""
    results = list(results)
    found = [each for each in completed(_measured(results)) if each.value(_drawn_metric(each, metric)) is not None]
    if not all(isinstance(each.size, int) for each in found):
        return None
    found.sort(key=lambda each: each.size)
    sizes = sorted({each.size for each in found})
    if len(sizes) < 2 or not any(_drawn_metric(each, metric) == metric for each in found):
        return None
    name, label = found[0].workload, catalogue.workload_module(found[0].workload).label
    # The fastest at the largest size first, then what was not measured there.
    lines = grouped(found, lambda each: each.name)
    lines.sort(key=lambda line: (-sizes.index(line[-1].size), _time(line[-1], metric)))
    drawn = _fewer(lines, key=lambda line: line[0])
    points = {line[0].name: point for line in lines if (point := overtakes_numpy(line, metric))}
    many = _are_many(line[0] for line in lines)
    panels = _by_lane(drawn) if many else {"": drawn}
    height = 300 if many else 270  # of a panel

    def draw(figure: "Figure") -> None:
        handles: dict[str, Any] = {}
        for axes, (lane, mine) in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels.items(), strict=True):
            grey = _not_numpy(mine)[TOLD:] if many else []
            named = [line for line in mine if line not in grey]
            colours = svg.colours_apart(line[0].framework for line in named) if many else {}
            its: dict[str, Any] = {}
            for number, line in enumerate(mine):
                name, style = line[0].name, svg.line_style(line[0], number)
                if line in grey:
                    name, style = "other frameworks", GREY
                elif many:
                    style["color"] = colours[line[0].framework]
                sizes_of, times, measured = _path(line, metric)
                (drawn_line,) = axes.plot(sizes_of, times, **style, label=name, markevery=measured)
                (handles if line in grey else its)[name] = drawn_line
            if rings := [points[line[0].name] for line in named if line[0].name in points]:
                ring: Style = {"linestyle": "", "marker": "o", "markersize": 10, "markerfacecolor": "none"}
                ring |= {"color": INK, "zorder": 5, "label": "becomes faster than NumPy"}
                (handles["rings"],) = axes.plot(*zip(*rings, strict=True), **ring)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("size")
            axes.set_title(f"{lane}: time" if lane else "time", loc="left")
            svg.time_axis(axes.yaxis)
            _size_axis(axes.xaxis, sizes, label)
            if many:
                svg.legend_beside(axes, list(its.values()))
            else:
                handles = its | handles
        svg.legend(figure, list(handles.values()))

    text = _fastest_at_the_end([line[-1] for line in lines if line[-1].size == sizes[-1]], metric)
    if points:
        ends = dict.fromkeys((min(points, key=points.__getitem__), max(points, key=points.__getitem__)))
        where = " to ".join(f"{short(float(f'{points[end][0]:.2g}'))} ({end})" for end in ends)
        several = "techniques become" if len(points) > 1 else "technique becomes"
        text += f"; {len(points)} {several} faster than NumPy between two measured sizes, "
        text += f"{'from' if len(ends) > 1 else 'at'} {where}"
    rows, records = [], []
    has_crossings = metric in AGAINST_NUMPY
    for line in lines:
        at = {each.size: tables.metric_entry(each, _drawn_metric(each, metric)) for each in line}
        beats = [Entry(format.beats_from(line[0].crossings.get(metric)))] * has_crossings
        rows.append((*_words(line[0]), *(at.get(size, Entry()) for size in sizes), *beats))
        crossing = line[0].crossings.get(metric)
        about = {"metric": metric, "beats_numpy_from_size": crossing and crossing.size}
        records += [_record("by_size", each, value_s=_time(each, metric), **about) for each in line]
    title = f"{name}, {metric}: time over size{_how_many(drawn, lines)}"
    head = ("technique", "lane", "on", *map(label, sizes), *["faster than NumPy from"] * has_crossings)
    notes = _left_out(results)
    table = _table(title, found, head, "lll" + "r" * (len(head) - 3), rows, records, notes, workload=name)
    return chart(draw, height * len(panels), text, table)


def _fastest_at_the_end(found: Sequence[Result], metric: Metric) -> str:
    """A sentence without its full stop. ``found``: what was measured at the largest size, the fastest first."""
    first, drawn = found[0], _drawn_metric(found[0], metric)
    names = _first_ones([each for each in found if _drawn_metric(each, metric) == drawn], drawn)
    resident = ", resident" * (metric != Metric.RESIDENT)
    text = f"At {first.label}, the fastest of {len(found)}: {names}{resident * first.is_numpy}, "
    text += seconds(_time(first, metric))
    if numpy := [seconds(_time(each, metric)) for each in found[1:] if each.is_numpy]:  # one for each environment
        times = " to ".join(dict.fromkeys((numpy[0], numpy[-1])))
        text += f"; NumPy{resident}{',' * bool(resident)} takes {times}"
    return text


def _drawn_metric(result: Result, metric: Metric) -> Metric:
    return Metric.RESIDENT if result.is_numpy else metric


def _time(result: Result, metric: Metric) -> float:
    return _known(result.value(_drawn_metric(result, metric)))


def roofline(results: Iterable[Result]) -> Chart | None:
    """Operations per second over operations per byte, each workload at its largest size, below the bandwidth of a copy
    on the same device."""
    results = list(results)
    found = [
        (each, intensity)
        for each in largest(_measured(results))
        if each.copy_bandwidth and each.rates and (intensity := _intensity(each))
    ]
    if not found:
        return None
    found.sort(key=lambda each: (each[1], each[0].workload, -_known(each[0].rates).operations))
    mine = [each for each, _ in found]
    intensities = {each.workload: intensity for each, intensity in found}
    copies: dict[str, list[float]] = {}
    for each in mine:
        copies.setdefault(each.place, []).append(_known(each.copy_bandwidth))

    def draw(figure: "Figure") -> None:
        from matplotlib.lines import Line2D

        axes = figure.subplots()
        axes.set_xscale("log")
        axes.set_yscale("log")
        low, high = min(intensities.values()) / 3, max(intensities.values()) * 3
        handles = []
        for number, (device, rates) in enumerate(copies.items()):
            slope = [x * median(rates) * 1e9 for x in (low, high)]
            dash = ("-", "--", ":", "-.")[number % 4]
            label = f"{device}: {digits(median(rates))} GB/s"
            handles += axes.plot((low, high), slope, color=INK, linestyle=dash, linewidth=1.2, label=label)
        shapes = dict(zip(intensities, MARKERS, strict=False))
        for each, intensity in found:
            colour = svg.colour(each.framework)
            face = colour if each.lane == "tuned" else "none"
            look: Style = {"color": colour, "markerfacecolor": face, "markersize": 6, "linestyle": ""}
            axes.plot(intensity, _known(each.rates).operations * 1e9, marker=shapes[each.workload], **look)
        ink: Style = {"color": INK, "linestyle": "", "markersize": 6}
        handles += [Line2D([], [], marker=shape, label=workload, **ink) for workload, shape in shapes.items()]
        for framework in sorted({each.framework for each in mine}, key=lambda name: (name != "NumPy", name)):
            handles.append(Line2D([], [], linewidth=4, color=svg.colour(framework), label=framework))
        handles.append(Line2D([], [], marker="o", markerfacecolor="none", label="hollow: idiomatic", **ink))
        every_rate = [_known(each.rates).operations * 1e9 for each in mine]
        axes.set_xlim(low, high)
        axes.set_ylim(min(every_rate) / 4, max(every_rate) * 8)
        axes.set_xlabel("operations per byte that must be moved")
        axes.set_title("operations per second", loc="left")
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        axes.yaxis.set_major_formatter(lambda y, _: prefixed(y))
        axes.minorticks_off()
        svg.legend(figure, handles)

    rows, records = [], []
    for each, intensity in found:
        numbers = (digits(intensity), format.stale(each) + digits(_known(each.rates).operations))
        rows.append((Entry(f"{each.workload}, {each.label}"), *_words(each), *map(Entry, numbers)))
        records.append(_record("roofline", each, operations_per_byte=intensity))
    text = "Operations per second of the fastest: " + "; ".join(
        f"{group[0].workload} {prefixed(_known(group[0].rates).operations * 1e9)} with {_first_ones(group)},"
        f" at {digits(intensities[group[0].workload])} per byte"
        for group in grouped(mine, lambda each: each.workload)
    )
    title = "Operations per second over operations per byte at the largest size, below each device's copy bandwidth"
    head = ("workload, size", "technique", "lane", "on", "operations per byte", "Gop/s")
    above = any(
        _known(each.rates).operations > 1.1 * intensity * _known(each.copy_bandwidth) for each, intensity in found
    )
    notes = [Entry("A point above its device's line: the arrays fit in a cache.", "note")] * above
    notes += _left_out(results)
    return chart(draw, 290, text, _table(title, mine, head, "llllrr", rows, records, notes))


def share_of_limit(results: Iterable[Result]) -> Chart | None:
    """Bars: the bandwidth of each technique as a percentage of a copy's on the same device, for workloads that are
    limited by memory, each at its largest size."""
    found = [each for each in largest(_measured(results)) if each.memory_bound and each.rates and each.rates.share]
    if not found:
        return None
    found.sort(key=lambda each: (each.workload, -_share(each)))
    workloads = grouped(found, lambda each: each.workload)
    panels, fewer = {}, False
    for mine in workloads:
        drawn = _fewer(mine)
        fewer |= len(drawn) < len(mine)
        heading = f"{mine[0].workload}, {mine[0].label}"
        panels[heading] = [
            Bar(_label(each, mine), [(_share(each), _lane_style(each))], f"{_share(each):.0f} %") for each in drawn
        ]
    rows = []
    for each in found:
        numbers = (tables.metric_entry(each, Metric.BANDWIDTH), Entry(digits(_known(each.copy_bandwidth))))
        rows.append((Entry(each.workload), *_words(each), *numbers))
    records = [_record("share_of_limit", each) for each in found]
    text = "Highest percentage of a copy's bandwidth: " + "; ".join(
        f"{mine[0].workload} {_share(mine[0]):.0f} % with {_first_ones(mine)}" for mine in workloads
    )
    title = "Percentage of the bandwidth of a copy on the same device, at the largest size"
    title += "; the fastest of each framework and lane" * fewer
    head = ("workload", "technique", "lane", "on", "GB/s (percentage)", "copy GB/s")
    return _bars(panels, _lanes(found), text, _table(title, found, head, "llllrr", rows, records), line=100)


def cold_start(results: Iterable[Result]) -> Chart | None:
    """Bars: the time to the first result in a fresh process, for one workload, split into its parts if they were
    measured."""
    results = list(results)
    started = {each.name: each for each in results if each.value(Metric.FIRST) and not each.mode}
    found = sorted(started.values(), key=_first_s)
    if not found:
        return None
    drawn = _fewer(found)
    parts = [part for part in STARTING if any(part in _known(each.first).parts for each in found)]
    panel = []
    for each in drawn:
        known = _known(each.first).parts
        pieces = [(known[part], piece) for part, piece in zip(parts, PIECES, strict=False) if part in known]
        pieces = pieces or [(_first_s(each), _lane_style(each))]
        panel.append(Bar(_label(each, found), pieces, seconds(_first_s(each))))
    rows, records = [], []
    for each in found:
        known = {part: seconds(value) for part, value in _known(each.first).parts.items()}
        entries = [Entry(known.get(part, UNKNOWN)) for part in parts]
        rows.append((*_words(each), tables.metric_entry(each, Metric.FIRST), *entries))
        records.append(_record("cold_start", each))
    first, last, name = found[0], found[-1], found[0].workload
    text = f"The first result in a fresh process takes {seconds(_first_s(first))} with {first.name}"
    if len(found) > 1:
        text += f", and {seconds(_first_s(last))} with {last.name}, the slowest of {len(found)}"
    title = f"{name}, first result in a fresh process with empty caches{_how_many(drawn, found)}"
    head = ("technique", "lane", "on", "first result", *(STARTING[part] for part in parts))
    legend = [(STARTING[part], piece) for part, piece in zip(parts, PIECES, strict=False)] or _lanes(drawn)
    table = _table(title, found, head, "lll" + "r" * (1 + len(parts)), rows, records, _left_out(results), workload=name)
    return _bars({"": panel}, legend, text, table)


def costs(results: Iterable[Result], size: Size | None = None) -> Chart | None:
    """Bars: the parts of a call's time at one size of one workload (the smallest, if none is given): the device's own
    time, then what the resident time adds and how much of that prepared() saves, then what the transfers add. NumPy is
    a single piece, for comparison."""
    results = list(results)
    every = [Cost.of(each) for each in _measured(results) if each.is_numpy or each.value(Metric.DEVICE) is not None]
    sizes = {cost.result.size for cost in every if cost.parts}
    size = size if size is not None else min(sizes, default=None)
    if size not in sizes:
        return None
    found = sorted((cost for cost in every if cost.result.size == size), key=lambda cost: cost.total)
    mine = [cost.result for cost in found]
    drawn = _fewer(found, key=lambda cost: cost.result)
    panel = [Bar(_label(cost.result, mine), cost.pieces, seconds(cost.total)) for cost in drawn]
    known = [part for part in PARTS if any(part in cost.parts for cost in found)]
    metrics = [metric for metric in CALLS if metric != Metric.PREPARED or SAVED in known]
    rows, records = [], []
    for cost in found:
        words = [seconds(cost.parts[part]) if part in cost.parts else UNKNOWN for part in known]
        entries = [tables.metric_entry(cost.result, metric) for metric in metrics]
        rows.append((*_words(cost.result), *map(Entry, (*words, seconds(cost.total))), *entries))
        parts = {PARTS[part][0]: value for part, value in cost.parts.items()}
        records.append(_record("costs", cost.result, total_s=cost.total, **parts))
    name, label = mine[0].workload, mine[0].label
    best = next(cost for cost in found if cost.parts)
    text = f"At {label}, {best.result.name} takes the least time of all techniques with a device time: "
    split = ", ".join(f"{part} {seconds(value)}" for part, value in best.parts.items())
    text += f"{seconds(best.total)} ({split})"
    with_transfers = ", including transfers" * (TRANSFERS in known)
    title = f"{name}, {label}: the parts of a call's time{with_transfers}{_how_many(drawn, found)}"
    head = ("technique", "lane", "on", *known, "total", *metrics)
    legend = [(part, PARTS[part][1]) for part in known if any(part in cost.parts for cost in drawn)]
    legend += [("NumPy, resident", NUMPY)] * any(cost.result.is_numpy for cost in drawn)
    notes = _left_out(results)
    table = _table(title, mine, head, "lll" + "r" * (len(head) - 3), rows, records, notes, workload=name)
    return _bars({"": panel}, legend, text, table, cut=True)


def bars(results: Iterable[Result], picks: Iterable[Pick], title: str = "") -> Chart | None:
    """Bars of selected metrics, which must have the same unit. What was not measured is left out."""
    every = {each.work: each for each in of_one_environment(each for each in results if each.value(Metric.RESIDENT))}
    found = []
    for label, workload, technique, size, metric in picks:
        each = every.get((workload, technique, size))
        if each and (value := each.value(metric)) is not None:
            found.append((label, each, metric, value))
    if not found:
        return None
    units = {UNITS[metric] for _, _, metric, _ in found}
    if len(units) > 1:
        raise ValueError(f"The bars of a chart must have the same unit, not {' and '.join(sorted(units))}.")
    rate = units == {UNITS[Metric.BANDWIDTH]}  # more is better
    found.sort(key=lambda one: one[-1], reverse=rate)
    drawn, rows, records = [], [], []
    for label, each, metric, value in found:
        drawn.append(Bar(label, [(value, _lane_style(each))], format.value(metric, value) + " GB/s" * rate))
        where = Entry(f"{each.workload}, {each.label}, {metric}")
        rows.append((Entry(label), where, *_words(each), tables.metric_entry(each, metric)))
        about = {f"value_{UNITS[metric]}": value, "metric": metric, "label": label}
        records.append(_record("bars", each, **about))
    text = "; ".join(f"{bar.label}: {bar.text}" for bar in drawn)
    mine = [each for _, each, _, _ in found]
    metrics = ", ".join(dict.fromkeys(metric for _, _, metric, _ in found))
    title = title or f"{', '.join(dict.fromkeys(each.workload for each in mine))}: {metrics}"
    head = ("bar", "workload, size, metric", "technique", "lane", "on", "value")
    return _bars({"": drawn}, _lanes(mine), text, _table(title, mine, head, "lllllr", rows, records))


# ---- Values of results.


def overtakes_numpy(line: Sequence[Result], metric: Metric) -> tuple[int, float] | None:
    """(size, time) at which the line overtakes NumPy, if that lies between two measured sizes; otherwise None."""
    crossing = line[0].crossings.get(metric)
    if crossing is None or crossing.size is None or crossing.everywhere:
        return None
    return crossing.size, _time_at(line, metric, crossing.size)


def _time_at(line: Sequence[Result], metric: Metric, size: int) -> float:
    """Of any size from the first of a line to its last: see proportional()."""
    work = partial(catalogue.work, line[0].workload)
    sizes: list[Any] = [each.size for each in line]
    last = min(max(1, bisect_left(sizes, size)), len(line) - 1)
    around = [(work(each.size), _time(each, metric)) for each in line[last - 1 : last + 1]]
    return proportional(around, work(size)) if len(around) > 1 else around[0][1]


def _path(line: Sequence[Result], metric: Metric) -> tuple[list[int], list[float], list[int]]:
    """Of a line: sizes, the time of each, and which of them were measured. The times between are those of
    proportional(), which bend on logarithmic axes."""
    known: list[Any] = [each.size for each in line]
    sizes = [round(size * (after / size) ** (step / STEPS)) for size, after in pairwise(known) for step in range(STEPS)]
    sizes.append(known[-1])
    times = [_time_at(line, metric, size) for size in sizes]
    return sizes, times, list(range(0, len(sizes), STEPS))


def _known(value: T | None) -> T:
    """The value, which is never None: only results that have it are drawn."""
    assert value is not None
    return value


def _first_s(result: Result) -> float:
    return _known(result.first).total


def _measured(results: Iterable[Result]) -> list[Result]:
    return [each for each in results if each.value(Metric.RESIDENT) and not each.mode]


def _left_out(results: Iterable[Result]) -> list[Entry]:
    """Which techniques a chart and its table do not show because they round their factors, if there are any."""
    names = dict.fromkeys(f"{each.name} ({each.mode})" for each in results if each.ok and each.mode)
    return [Entry(f"Not shown, since they round their factors: {', '.join(names)}.", "note")] * bool(names)


def largest(results: Iterable[Result]) -> list[Result]:
    """The results of each workload at the largest size that was measured."""
    workloads = grouped(results, lambda each: each.workload)
    return [each for mine in workloads for each in mine if each.size == max(other.size for other in mine)]


def _intensity(result: Result) -> float | None:
    """Operations per byte that must be moved; None if there are no bytes or no operations."""
    workload = catalogue.workload_module(result.workload)
    moved, operations = workload.bytes_moved(result.size), workload.operations(result.size)
    return operations / moved if moved and operations else None


def _share(result: Result) -> float:
    return _known(_known(result.rates).share)


def _first_ones(found: Sequence[Result], metric: Metric | None = None) -> str:
    """The names of the first result and of those that tie with it, as text."""
    metric = metric or found[0].timed_by(Metric.BANDWIDTH)
    return joined(
        [format.stale(each) + each.name for each in found if each is found[0] or tied(each, found[0], metric)]
    )


def _fewer(found: list[Any], key: Callable[[Any], Result] = lambda each: each) -> list[Any]:
    """Only the fastest of each framework and lane, if a lane has too many to be readable. ``found``: sorted by time."""
    if not _are_many(map(key, found)):
        return found
    return [same[0] for same in grouped(found, lambda each: (key(each).framework, key(each).lane))]


def _are_many(results: Iterable[Result]) -> bool:
    return max(Counter(each.lane for each in results).values()) > MANY


def _by_lane(lines: Sequence[list[Result]]) -> dict[str, list[list[Result]]]:
    """The lines of each lane, with NumPy's in all of them."""
    numpy = [line for line in lines if line[0].is_numpy]
    lanes = {lane: [line for line in _not_numpy(lines) if line[0].lane == lane] for lane in LANES}
    return {lane: [*mine, *numpy] for lane, mine in lanes.items() if mine}


def _not_numpy(lines: Iterable[list[Result]]) -> list[list[Result]]:
    return [line for line in lines if not line[0].is_numpy]


def _how_many(drawn: Sequence[Any], found: Sequence[Any]) -> str:
    if len(drawn) == len(found):
        return ""
    return f", the fastest of each framework and lane ({len(drawn)} of {len(found)})"


# ---- The table.


def _words(result: Result) -> tuple[Entry, Entry, Entry]:
    technique = Entry(result.name, recipe=(result.workload, result.technique))
    return technique, Entry(result.lane), Entry(format.on(result))


def _record(table: str, result: Result, **more: Any) -> dict[str, Any]:
    """What is known of the result and of its origin, and what the chart derives from it."""
    return {"table": table, **record(result), **origin_record(result), **more}


def _table(
    title: str,
    results: Sequence[Result],
    head: tuple[str, ...],
    align: str,
    rows: Sequence[tuple[Entry, ...]],
    records: Sequence[Mapping[str, Any]],
    notes: Sequence[Entry] = (),
    workload: str | None = None,
) -> Table:
    """``results``: the title names their machine and their commits."""
    source = tables.source_of(results, results)
    title = f"{title}. {source}" if source else title
    return Table(title, head, align, rows, [*notes, *stale_note(results)], records, workload)


def stale_note(each: Iterable[Any]) -> list[Entry]:
    """What the mark of stale values means, if any Result or Row is stale."""
    return [STALE] * any(one.stale for one in each)


# ---- The drawing.


def chart(draw: Draw, height: float, text: str, table: Table) -> Chart:
    """The drawing with its table, whose title and workload it takes. ``text`` comes without its full stop."""
    text = f"{text}."
    return Chart(table.title, text, svg.render(draw, height, table.title, text), table, table.workload)


def _lane_style(result: Result) -> Style:
    return NUMPY if result.is_numpy else {"facecolor": LANES[result.lane]}


def _label(result: Result, others: Iterable[Result]) -> str:
    """The technique, marked as CPU if it ran there and others did not."""
    elsewhere = result.place == "CPU" and any(other.place != "CPU" for other in others)
    return f"{result.name}{', CPU' * elsewhere}"


def _lanes(results: Iterable[Result]) -> list[tuple[str, Style]]:
    """The legend of bars in their lanes' colours."""
    there = {each.lane for each in results if not each.is_numpy}
    return [(lane, {"facecolor": colour}) for lane, colour in LANES.items() if lane in there]


def _size_axis(axis: "Axis", sizes: Sequence[Any], label: Callable[[Any], str]) -> None:
    """Labels the measured sizes, except those whose label does not fit beside the next one."""
    from matplotlib import ticker

    room = 5.5 * max(len(label(size)) for size in sizes)
    span, kept = math.log(sizes[-1] / sizes[0]), [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if math.log(kept[0] / size) / span * 300 > room:
            kept.insert(0, size)
    axis.set_major_locator(ticker.FixedLocator(kept))
    axis.set_major_formatter(lambda size, _: label(round(size)))
    axis.set_minor_locator(ticker.NullLocator())


def _bars(
    panels: Mapping[str, Sequence[Bar]],
    legend: Iterable[tuple[str, Style]],
    text: str,
    table: Table,
    *,
    line: float | None = None,
    cut: bool = False,
) -> Chart:
    """``panels``: {heading: its bars}. ``line``: the value at which to draw a line across. ``cut``: whether to cut
    very long bars."""
    totals = [bar.total for mine in panels.values() for bar in mine]
    limit = min(max(totals), CUT * median(totals)) if cut else max(totals)
    text += "; ▸ marks a bar that was cut" * (limit < max(totals))

    def draw(figure: "Figure") -> None:
        from matplotlib.patches import Patch

        ratios = [len(mine) + 0.6 for mine in panels.values()]
        every_axes = figure.subplots(len(panels), squeeze=False, height_ratios=ratios)[:, 0]
        for axes, (heading, mine) in zip(every_axes, panels.items(), strict=True):
            for place, bar in enumerate(mine):
                end = 0.0
                for value, style in bar.pieces:
                    shown = max(0, min(value, limit - end))
                    axes.barh(place, shown, 0.72, left=end, linewidth=0, **style)
                    end += shown
                words = f"{'▸ ' * (bar.total > limit)}{bar.text}"
                end = line if line and 0.8 * line < end < line else end  # so that no number crosses the line
                axes.annotate(words, (end, place), (4, 0), textcoords="offset points", va="center")
            axes.set_yticks(range(len(mine)), [bar.label for bar in mine])
            axes.set_ylim(len(mine) - 0.4, -0.6)
            axes.set_xlim(0, max(limit, line or 0))
            axes.set_xticks([])
            axes.grid(False)
            axes.tick_params(axis="y", length=0)
            axes.spines["bottom"].set_visible(False)
            if line:
                axes.axvline(line, color=INK, linestyle=":", linewidth=1)
            if heading:
                axes.set_title(heading, loc="left")
        svg.legend(figure, [Patch(label=name, linewidth=0, **style) for name, style in legend])

    height = sum(15.5 * len(mine) + 8 + 18 * bool(heading) for heading, mine in panels.items()) + 6
    return chart(draw, height, text, table)
