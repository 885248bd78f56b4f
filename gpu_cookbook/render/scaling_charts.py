"""Charts of the rows of ``gpu-cookbook scale``, measured just now or stored; the rows are completed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_cookbook import catalogue
from gpu_cookbook.render import format, scaling_tables, svg
from gpu_cookbook.render.charts import Chart, chart, stale_note
from gpu_cookbook.render.svg import INK, LANES, Style
from gpu_cookbook.render.tables import Entry, Table
from gpu_cookbook.results import keyed
from gpu_cookbook.scaling import NOTHING_TO_DRAW, STRONG, WEAK, WORKLOAD, Row, ScaleError, amount, of_mode, record
from gpu_cookbook.units import digits, seconds

if TYPE_CHECKING:  # listing recipes must not import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

IDEAL = " ideal"  # comes before every technique's name

Lines = dict[str, list[Row]]  # the rows of each line by its name, in order of workers


def scaling(rows: Iterable[Row], kind: str, mode: str) -> Chart | None:
    """Lines: the work done per time, relative to the fewest workers, over the number of cores or GPUs (kind), for
    strong or weak scaling (mode), with one panel per size."""
    panels = lines_by_size(rows, kind, mode)
    if not panels:
        return None
    shown = [row for lines in panels.values() for line in lines.values() for row in line]
    names = sorted({name for lines in panels.values() for name in lines})
    heights = [max(90, svg.NAME * (len(lines) + 1)) for lines in panels.values()]  # of the axes
    around = 70  # points that a panel's heading and labels take
    ratios = [height + around for height in heights]

    def draw(figure: "Figure") -> None:
        every_axes = figure.subplots(len(panels), squeeze=False, height_ratios=ratios)[:, 0]
        for axes, height, (size, lines) in zip(every_axes, heights, panels.items(), strict=True):
            svg.name_ends(axes, draw_lines(axes, kind, lines, names), height)
            axes.set_title(f"{_label(size)}{_shared(kind, mode)}: speedup over one", loc="left")

    counts = sorted({row.workers for row in shown})
    entries = []
    for size, lines in panels.items():
        for name, line in sorted(lines.items(), key=lambda item: -item[1][-1].gained.speedup):
            at = {row.workers: _words(row) for row in line}
            technique = Entry(f"{name}, {_label(size)}", recipe=(WORKLOAD, line[0].technique))
            words = (line[0].lane, *(at.get(count, "") for count in counts))
            entries.append((technique, *map(Entry, words)))
    best = max(shown, key=lambda row: (row.workers, row.gained.speedup))
    text = f"On {best.on} {best.name} does the most, {digits(best.gained.speedup)} times the work of "
    text += f"{amount(best.gained.base_workers, kind)} in the same time, at {_label(best.size)}; {len(entries)} lines"
    title = f"{mode.capitalize()} scaling over {kind}s: speedup relative to the same recipe on the fewest {kind}s"
    head = ("engine, size", "lane", *(amount(count, kind) for count in counts))
    records = [{"table": "scaling", **record(row)} for row in shown]
    table = Table(
        title=title + scaling_tables.source(shown),
        head=head,
        align="ll" + "r" * len(counts),
        rows=entries,
        notes=stale_note(shown),
        records=records,
        workload=WORKLOAD,
    )
    return chart(draw, sum(ratios), text, table)


def plot_scaling(rows: Iterable[Row], path: Path, title: str) -> None:
    """Draws the rows into a file: one panel per size, strong beside weak, with the name of each line at its end.
    Raises ScaleError if there is nothing to draw."""
    from matplotlib.figure import Figure

    rows = list(rows)
    panels = [
        (kind, size, mode, lines)
        for kind in sorted({row.kind for row in rows})
        for mode in (STRONG, WEAK)
        for size, lines in lines_by_size(rows, kind, mode).items()
    ]
    if not panels:
        raise ScaleError(NOTHING_TO_DRAW)
    panels.sort(key=lambda panel: panel[:3])
    names = sorted({name for *_, lines in panels for name in lines})
    across = min(2, len(panels))
    down = math.ceil(len(panels) / 2)
    figure = Figure(figsize=(7.5 * across, 4.5 * down), layout="constrained")
    figure.suptitle(f"{title}\nsolid: tuned, dashed: idiomatic")
    for number, (kind, size, mode, lines) in enumerate(panels, 1):
        axes = figure.add_subplot(down, across, number)
        svg.name_ends(axes, draw_lines(axes, kind, lines, names), 260)
        axes.set_title(f"{mode}: {_label(size)}{_shared(kind, mode)}", fontsize="medium")
        axes.set_ylabel("work per time, relative to one")
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def story(rows: Iterable[Row]) -> Chart | None:
    """Dots: Dask as it was first written and the fastest tuned recipe, on one core, all cores, one GPU and all GPUs."""
    rows = list(rows)
    found = [(lane, row) for _, lane, row in scaling_tables.told(rows)]
    if not found:
        return None
    table = scaling_tables.story(rows)
    places = list(dict.fromkeys(row.on for _, row in found))
    names = dict(zip(LANES, (table.head[2], table.head[1]), strict=True))
    lanes = {lane: [row for other, row in found if other == lane] for lane in names}

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        handles = []
        for (lane, mine), marker in zip(lanes.items(), "so", strict=True):
            look: Style = {"linestyle": "", "marker": marker, "markersize": 7, "color": LANES[lane]}
            times, heights = [row.timing.median for row in mine], [places.index(row.on) for row in mine]
            handles += axes.plot(times, heights, **look, label=names[lane])
        for _, row in found:
            words, point = _time(row), (row.timing.median, places.index(row.on))
            axes.annotate(words, point, (7, 0), textcoords="offset points", va="center")
        axes.set_xscale("log")
        axes.grid(False, axis="y")
        axes.margins(x=0.18)
        svg.time_axis(axes.xaxis)
        axes.set_yticks(range(len(places)), places)
        axes.set_ylim(len(places) - 0.5, -0.5)
        svg.legend(figure, handles)

    text = f"From {places[0]} to {places[-1]}: " + "; ".join(
        f"{names[lane]}, {seconds(mine[0].timing.median)} to {seconds(mine[-1].timing.median)}"
        for lane, mine in lanes.items()
        if mine
    )
    notes = [*table.notes, *stale_note(row for _, row in found)]
    return chart(draw, 150, text, replace(table, notes=notes))


# ---- Values of rows.


def lines_by_size(rows: Iterable[Row], kind: str, mode: str) -> dict[int, Lines]:
    """{size: its lines}, for the recipes that ran on at least two numbers of workers."""
    measured = [row for row in rows if row.measured and row.kind == kind]
    panels = {}
    for size in sorted({row.size for row in measured}):
        lines = keyed(sorted(of_mode(measured, mode, size), key=lambda row: row.workers), lambda row: row.name)
        lines = {name: line for name, line in lines.items() if len({row.workers for row in line}) > 1}
        if lines:
            panels[size] = lines
    return panels


def _label(size: int) -> str:
    return catalogue.workload_module(WORKLOAD).label(size)


def _shared(kind: str, mode: str) -> str:
    return " in total" if mode == STRONG else f" per {kind}"


def _time(row: Row) -> str:
    return format.stale(row) + seconds(row.timing.median)


def _words(row: Row) -> str:
    return f"{format.STALE * row.gained.base_stale}{digits(row.gained.speedup)} × ({_time(row)})"


# ---- How lines are drawn.


def draw_lines(
    axes: "Axes", kind: str, lines: Mapping[str, Sequence[Row]], names: Sequence[str]
) -> "dict[str, Line2D]":
    """Draws the lines and the ideal, and returns {name: line}. ``names``: those of all panels, so that a line looks the
    same in each of them."""
    counts = sorted({row.workers for line in lines.values() for row in line})
    (ideal,) = axes.plot(counts, counts, color=INK, linestyle=":", label=IDEAL.strip())
    handles: dict[str, Any] = {IDEAL: ideal}
    for name, line in lines.items():
        points = [(row.workers, row.gained.efficiency * row.workers) for row in line]  # a line may begin at two workers
        style = svg.line_style(line[0], names.index(name))
        (handles[name],) = axes.plot(*zip(*points, strict=True), **style, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.set_xticks(counts)
    axes.set_xlabel(f"{kind}s")
    return handles
