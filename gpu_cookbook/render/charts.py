"""Charts of cells, measured just now or stored: each as inline SVG with its numbers beside it as a Table.

Pure functions: the cells of one machine in, a Chart out, None where there is nothing to draw. A page gives the SVG its
letters and its text colour; the title stands on the page, not in the drawing.
"""

import hashlib
import io
import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import median
from xml.etree import ElementTree

from gpu_cookbook import catalogue
from gpu_cookbook.render import report, tables
from gpu_cookbook.render.report import digits, seconds
from gpu_cookbook.render.tables import Entry, Table

WIDTH = 400  # points. A phone shows about as many pixels: the letters stay as large as they are drawn
MOST_WIDTH = "38rem"  # beyond it a screen would only make the letters larger than the page's own
INK = "#010203"  # stands for the page's text colour in what matplotlib writes
# Each has a contrast of 3:1 or more on white and on #131416.
COLOURS = (
    *("#2f7de1", "#dd6b10", "#1f9d55", "#c2459b", "#8b62dd"),
    *("#0b98a5", "#d64545", "#8a8a12", "#a36b45", "#7586a0"),
)
MARKERS = "os^Dv*PXph<>d"
HATCHES = ("", "////", "\\\\\\\\", "xxxx")  # of lines: a dot is drawn as eight curves
NUMPY = {"facecolor": INK, "alpha": 0.6}
LANES = {"tuned": COLOURS[0], "idiomatic": COLOURS[1]}
MANY = 12  # lines or bars of one lane
NAME = 11  # points that the name of a line takes
CUT = 5  # times the median: a longer bar would leave no room for the others
STARTING = {
    "import": "import",
    "setup": "context, engine, compiler, upload",
    "call": "first call",
    "download": "download",
}
STALE = Entry("† stale: the recipe or its kernel has changed since.", "note")


@dataclass(frozen=True)
class Chart:
    """``text`` says in a sentence what is seen, for those who do not see it."""

    title: str
    text: str
    svg: str
    table: Table


# ---- The charts.


def by_size(cells, figure="resident"):
    """A line a technique of one workload, time over size; a ring where it begins to beat NumPy, unless it always does.

    NumPy has nothing to transfer and no device: its line is the resident one, which speedups are against."""
    cells = [c for c in _complete(cells) if f"{_figure_of(c, figure)}_s" in c]
    sizes = sorted({cell["size"] for cell in cells})
    if len(sizes) < 2 or not any(_figure_of(cell, figure) == figure for cell in cells):
        return None
    workload = catalogue.workload_module(cells[0]["workload"])
    lines = {}
    for cell in sorted(cells, key=lambda c: c["size"]):
        lines.setdefault(cell["technique"], []).append(cell)

    def value(cell):
        return cell[f"{_figure_of(cell, figure)}_s"]

    def place(mine):  # the fastest at the largest size first, then what was not measured there
        return -mine[-1]["size"], value(mine[-1])

    order = sorted(lines.values(), key=place)
    drawn = _fewer(order, key=lambda mine: mine[0])
    marks = {mine[0]["technique"]: _begins(mine, figure, value) for mine in order}
    marks = {technique: mark for technique, mark in marks.items() if mark}
    rings = [marks[mine[0]["technique"]] for mine in drawn if mine[0]["technique"] in marks]

    def draw(figure_):
        axes = figure_.subplots()
        handles = []
        for number, mine in enumerate(drawn):
            points = [(cell["size"], value(cell)) for cell in mine]
            style = _line_style(mine[0], number)
            handles += axes.plot(*zip(*points, strict=True), **style, label=mine[0]["technique"])
        if rings:
            ring = {"linestyle": "", "marker": "o", "markersize": 10, "markerfacecolor": "none", "color": INK}
            handles += axes.plot(*zip(*rings, strict=True), **ring, zorder=5, label="begins to beat NumPy")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("size")
        axes.set_title("time", loc="left")
        _time_axis(axes.yaxis)
        _ticks(axes, sizes, workload.label)
        _legend(figure_, handles)

    title = f"{cells[0]['workload']}, {figure}: time over size{_of(drawn, order)}"
    largest = [mine[-1] for mine in order if mine[-1]["size"] == sizes[-1]]
    text = f"At {workload.label(sizes[-1])} the fastest of {len(largest)}: "
    same = [cell for cell in largest if _figure_of(cell, figure) == _figure_of(largest[0], figure)]
    text += _fastest(same, _figure_of(largest[0], figure))
    resident = ", resident" * (largest[0]["technique"] == "numpy" and figure != "resident")
    text += f"{resident}, {seconds(value(largest[0]))}"
    numpy = next((cell for cell in largest[1:] if cell["technique"] == "numpy"), None)
    what = "NumPy" if figure == "resident" else "NumPy, resident,"
    text += f"; {what} takes {seconds(value(numpy))}" if numpy else ""
    if marks:
        ends = dict.fromkeys((min(marks, key=marks.get), max(marks, key=marks.get)))
        wins = " to ".join(f"{report.short(float(f'{marks[name][0]:.2g}'))} ({name})" for name in ends)
        text += f"; beginning to beat it between the measured sizes: {len(marks)}, from {wins}"
    rows, records = [], []
    key = f"beats_numpy_from_size_{figure}"
    for mine in order:
        at = {cell["size"]: cell for cell in mine}
        entries = [tables.entry_of(at[size], _figure_of(at[size], figure)) if size in at else Entry() for size in sizes]
        rows.append((*_named(mine[0]), *entries, Entry(report.wins_in(mine[0], figure))))
        begins = {"figure": figure, "beats_numpy_from_size": mine[0].get(key)}
        records += [_record("by_size", cell, value_s=value(cell), **begins) for cell in mine]
    head = ("technique", "lane", "on", *map(workload.label, sizes), "beats NumPy from")
    return _chart(draw, 270, (title, cells), text, head, "lll" + "r" * len(sizes) + "r", rows, records)


def roofline(cells):
    """Operations a second over operations a byte, each workload at its largest size, under what a copy on the same
    device moves. No device's peak of arithmetic is measured, so none is drawn."""
    found = []
    for cell in _largest(_complete(cells)):
        workload = catalogue.workload_module(cell["workload"])
        moved, operations = workload.bytes_moved(cell["size"]), workload.operations(cell["size"])
        if moved and operations and cell.get(tables.COPYING):
            rate = operations / cell.get("device_s", cell["resident_s"])
            found.append(cell | {"intensity": operations / moved, "rate": rate})
    if not found:
        return None
    found.sort(key=lambda c: (c["intensity"], c["workload"], -c["rate"]))
    places = {cell["workload"]: cell["intensity"] for cell in found}
    devices = {}
    for cell in found:
        devices.setdefault(report.place(cell), []).append(cell[tables.COPYING])

    def draw(figure):
        from matplotlib.lines import Line2D

        axes = figure.subplots()
        axes.set_xscale("log")
        axes.set_yscale("log")
        low, high = min(places.values()) / 3, max(places.values()) * 3
        handles = []
        for number, (device, rates) in enumerate(devices.items()):
            slope = [x * median(rates) * 1e9 for x in (low, high)]
            dash = ("-", "--", ":", "-.")[number % 4]
            label = f"{device}: {digits(median(rates))} GB/s"
            handles += axes.plot((low, high), slope, color=INK, linestyle=dash, linewidth=1.2, label=label)
        shapes = dict(zip(places, MARKERS, strict=False))
        for cell in found:
            colour = _colour(cell["framework"])
            face = colour if cell["lane"] == "tuned" else "none"
            look = {"color": colour, "markerfacecolor": face, "markersize": 6, "linestyle": ""}
            axes.plot(cell["intensity"], cell["rate"], marker=shapes[cell["workload"]], **look)
        ink = {"color": INK, "linestyle": "", "markersize": 6}
        handles += [Line2D([], [], marker=shape, label=workload, **ink) for workload, shape in shapes.items()]
        for framework in sorted({cell["framework"] for cell in found}, key=lambda name: (name != "NumPy", name)):
            handles.append(Line2D([], [], linewidth=4, color=_colour(framework), label=framework))
        handles.append(Line2D([], [], marker="o", markerfacecolor="none", label="hollow: idiomatic", **ink))
        axes.set_xlim(low, high)
        axes.set_ylim(min(c["rate"] for c in found) / 4, max(c["rate"] for c in found) * 8)
        axes.set_xlabel("operations a byte that must move")
        axes.set_title("operations a second", loc="left")
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        axes.yaxis.set_major_formatter(lambda y, _: _prefixed(y))
        axes.minorticks_off()
        _legend(figure, handles)

    rows, records = [], []
    for cell in found:
        label = catalogue.workload_module(cell["workload"]).label(cell["size"])
        name, *words = _named(cell)
        numbers = (Entry(digits(cell["intensity"])), Entry(_stale(cell) + digits(cell["rate"] / 1e9)))
        rows.append((Entry(f"{cell['workload']}, {label}"), name, *words, *numbers))
        about = {"operations_per_byte": cell["intensity"], "operations_g_per_s": cell["rate"] / 1e9}
        records.append(_record("roofline", cell, **about, **{tables.COPYING: cell[tables.COPYING]}))
    text = "Operations a second of the fastest: " + "; ".join(
        f"{mine[0]['workload']} {_prefixed(mine[0]['rate'])} by {_fastest(mine)},"
        f" at {digits(mine[0]['intensity'])} a byte"
        for mine in _by(found, "workload")
    )
    title = "Operations a second over operations a byte, at the largest size, under each device's copy bandwidth"
    head = ("workload, size", "technique", "lane", "on", "operations a byte", "Gop/s")
    above = any(c["rate"] > 1.1 * c["intensity"] * c[tables.COPYING] * 1e9 for c in found)
    notes = [Entry("Above its device's line: the arrays fit into a cache.", "note")] * above
    return _chart(draw, 290, (title, found), text, head, "llllrr", rows, records, notes)


def share_of_limit(cells):
    """Bars: the bandwidth of each technique as a share of what a copy on its device has; workloads that memory limits,
    each at its largest size."""
    judged = [(cell, tables.bandwidth_of(cell)) for cell in _largest(_complete(cells))]
    found = [cell | share for cell, share in judged if share.get("copy_bandwidth_percent") is not None]
    found.sort(key=lambda c: (c["workload"], -c["copy_bandwidth_percent"]))
    if not found:
        return None
    panels, fewer = [], False
    for mine in _by(found, "workload"):
        drawn = _fewer(mine)
        fewer |= len(drawn) < len(mine)
        label = catalogue.workload_module(mine[0]["workload"]).label(mine[0]["size"])
        bars = [_bar(c, c["copy_bandwidth_percent"], f"{c['copy_bandwidth_percent']:.0f} %", mine) for c in drawn]
        panels.append((f"{mine[0]['workload']}, {label}", bars))
    rows = [
        (Entry(c["workload"]), *_named(c), tables.entry_of(c, "bandwidth"), Entry(digits(c[tables.COPYING])))
        for c in found
    ]
    keys = ("bandwidth_gb_per_s", "copy_bandwidth_percent", tables.COPYING)
    records = [_record("share_of_limit", c, **{key: c[key] for key in keys}) for c in found]
    text = "Share of a copy's bandwidth, the best: " + "; ".join(
        f"{mine[0]['workload']} {mine[0]['copy_bandwidth_percent']:.0f} % by {_fastest(mine)}"
        for mine in _by(found, "workload")
    )
    title = "Share of what a copy on the same device moves, at the largest size"
    title += ", the fastest of each framework and lane" * fewer
    head = ("workload", "technique", "lane", "on", "GB/s (share)", "a copy's GB/s")
    return _bars(panels, _lanes(found), (title, found), text, head, "llllrr", rows, records, line=100)


def cold_start(cells):
    """Bars: the first result of a fresh process, of one workload; its parts, where they are measured."""
    cells = [cell for cell in cells if cell["status"] == "ok" and cell.get("first_result_s")]
    found = sorted({c["technique"]: c for c in cells}.values(), key=lambda c: c["first_result_s"])
    if not found:
        return None
    drawn = _fewer(found)
    parts = [part for part in STARTING if any(f"first_{part}_s" in cell for cell in found)]
    bars = []
    for cell in drawn:
        pieces = [(cell[f"first_{p}_s"], _piece(n)) for n, p in enumerate(parts) if f"first_{p}_s" in cell]
        name, whole, text = _bar(cell, cell["first_result_s"], seconds(cell["first_result_s"]), found)
        bars.append((name, pieces or whole, text))
    rows, records = [], []
    for cell in found:
        words = [seconds(cell[key]) if (key := f"first_{part}_s") in cell else "–" for part in parts]
        rows.append((*_named(cell), Entry(_stale(cell) + seconds(cell["first_result_s"])), *map(Entry, words)))
        figures = {key: cell.get(key) for key in ("first_result_s", *(f"first_{part}_s" for part in parts))}
        records.append(_record("cold_start", cell, **figures))
    text = f"The first result of a fresh process takes {seconds(found[0]['first_result_s'])} with "
    text += found[0]["technique"]
    if len(found) > 1:
        text += f", {seconds(found[-1]['first_result_s'])} with {found[-1]['technique']}, the slowest of {len(found)}"
    title = f"{found[0]['workload']}, first result: a fresh process with empty caches{_of(drawn, found)}"
    head = ("technique", "lane", "on", "first result", *(STARTING[part] for part in parts))
    legend = [(STARTING[part], _piece(n)) for n, part in enumerate(parts)] or _lanes(drawn)
    return _bars([("", bars)], legend, (title, found), text, head, "lll" + "r" * (1 + len(parts)), rows, records)


COSTS = ("device's own time", "launch and synchronise", "transfers")


def costs(cells, size=None):
    """Bars: what a call costs at one size of one workload, the smallest if none is named: the device's own time, then
    what resident has beyond it, then what transfer has beyond that. NumPy is one piece, to compare with."""
    cells = [c for c in _complete(cells) if "device_s" in c or c["technique"] == "numpy"]
    sizes = {cell["size"] for cell in cells if "device_s" in cell}
    size = size if size is not None else min(sizes, default=None)
    found = [cell for cell in cells if cell["size"] == size]
    if size not in sizes:
        return None
    for cell in found:
        # The device's time is of a full queue, and can be a little longer than a single call's.
        own = min(cell.get("device_s", cell["resident_s"]), cell["resident_s"])
        sent = (max(0, cell["transfer_s"] - cell["resident_s"]),) if "transfer_s" in cell else ()
        cell["pieces"] = (own, cell["resident_s"] - own, *sent) if "device_s" in cell else (own,)
    found.sort(key=lambda c: sum(c["pieces"]))
    drawn = _fewer(found)
    bars = []
    for cell in drawn:
        whole = "device_s" not in cell
        pieces = [(piece, NUMPY if whole else _piece(n)) for n, piece in enumerate(cell["pieces"])]
        bars.append((_bar(cell, 0, "", found)[0], pieces, seconds(sum(cell["pieces"]))))
    rows, records = [], []
    for cell in found:
        figures = [
            tables.entry_of(cell, f) if f"{f}_s" in cell else Entry("–") for f in ("device", "resident", "transfer")
        ]
        pieces = dict(zip(("own_s", "launch_s", "transfers_s"), cell["pieces"] * ("device_s" in cell), strict=False))
        words = [seconds(pieces[key]) if key in pieces else "–" for key in ("own_s", "launch_s", "transfers_s")]
        rows.append((*_named(cell), *map(Entry, (*words, seconds(sum(cell["pieces"])))), *figures))
        pieces |= {f"{f}_s": cell.get(f"{f}_s") for f in ("device", "resident", "transfer")}
        records.append(_record("costs", cell, total_s=sum(cell["pieces"]), **pieces))
    label = catalogue.workload_module(found[0]["workload"]).label(size)
    best = next(cell for cell in found if "device_s" in cell)
    text = f"At {label}, {best['technique']} costs least of what has a device's clock, {seconds(sum(best['pieces']))}: "
    text += ", ".join(f"{name} {seconds(piece)}" for name, piece in zip(COSTS, best["pieces"], strict=False))
    names = COSTS[: max(len(cell["pieces"]) for cell in drawn)]
    with_transfers = " with its transfers" * (len(names) == len(COSTS))
    title = f"{found[0]['workload']}, {label}: what a call costs{with_transfers}{_of(drawn, found)}"
    head = ("technique", "lane", "on", *COSTS, "together", "device", "resident", "transfer")
    legend = [(name, _piece(n)) for n, name in enumerate(names)]
    legend += [("NumPy, resident", NUMPY)] * any(c["technique"] == "numpy" for c in drawn)
    return _bars([("", bars)], legend, (title, found), text, head, "lll" + "r" * 7, rows, records, cut=True)


def bars(cells, picks, title=""):
    """Bars of picked figures, (label, workload, technique, size, figure) each; all figures of one kind. What is not
    measured is left out."""
    every = {(c["workload"], c["technique"], c["size"]): c | tables.bandwidth_of(c) for c in _complete(cells)}
    found = []
    for label, workload, technique, size, figure in picks:
        cell = every.get((workload, technique, size))
        if cell and cell.get(tables.FIGURES[figure][0]) is not None:
            found.append((label, cell, figure, cell[tables.FIGURES[figure][0]]))
    if not found:
        return None
    units = {tables.FIGURES[figure][1] for _, _, figure, _ in found}
    if len(units) > 1:
        raise ValueError(f"One chart has bars of one unit, not of {', '.join(sorted(units))}.")
    more = units == {"value_gb_per_s"}  # of which more is better
    found.sort(key=lambda each: each[-1] * (-1 if more else 1))
    drawn, rows, records = [], [], []
    for label, cell, figure, value in found:
        text = tables.FIGURES[figure][2](value) + " GB/s" * more
        drawn.append((label, *_bar(cell, value, text, ())[1:]))
        sized = catalogue.workload_module(cell["workload"]).label(cell["size"])
        where = f"{cell['workload']}, {sized}, {figure}"
        rows.append((Entry(label), Entry(where), *_named(cell), tables.entry_of(cell, figure)))
        records.append(_record("bars", cell, **{tables.FIGURES[figure][1]: value}) | {"figure": figure, "label": label})
    text = "; ".join(f"{name}: {text}" for name, _, text in drawn)
    figures = ", ".join(dict.fromkeys(figure for _, _, figure, _ in found))
    title = title or f"{', '.join(dict.fromkeys(c['workload'] for _, c, _, _ in found))}: {figures}"
    head = ("", "workload, size, figure", "technique", "lane", "on", "value")
    mine = [cell for _, cell, _, _ in found]
    return _bars([("", drawn)], _lanes(mine), (title, mine), text, head, "lllllr", rows, records)


def scaling(rows, kind, mode):
    """Lines: how many times the work of the fewest workers is done in a time, over the number of cores or GPUs (kind);
    strong or weak (mode); a panel a size. The rows are scale's, complete."""
    from gpu_cookbook.run import scale  # which runs engines: more imports than a chart of cells needs

    panels = _scaled(rows, kind, mode)
    if not panels:
        return None
    every = sorted({name for lines in panels.values() for name in lines})
    label = catalogue.workload_module(scale.WORKLOAD).label

    heights = [70 + max(90, NAME * (len(lines) + 1)) for lines in panels.values()]

    def draw(figure):
        every_axes = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
        for axes, height, (size, lines) in zip(every_axes, heights, panels.items(), strict=True):
            _name_ends(axes, _scaling_axes(axes, kind, lines, every), height - 70)
            axes.set_title(f"{label(size)}{_shared(kind, mode)}: × over one", loc="left")

    counts = sorted({row["workers"] for lines in panels.values() for line in lines.values() for row in line})
    entries, records = [], []
    for size, lines in panels.items():
        for name, line in sorted(lines.items(), key=lambda item: -item[1][-1]["speedup_x"]):
            at = {row["workers"]: row for row in line}
            words = [_scaled_words(at[n]) if n in at else "" for n in counts]
            entries.append(tuple(map(Entry, (f"{name}, {label(size)}", line[0]["lane"], *words))))
            records += [{"table": "scaling"} | row for row in line]
    most = max(line[-1]["workers"] for lines in panels.values() for line in lines.values())
    best = max(
        (line[-1] | {"name": name} for lines in panels.values() for name, line in lines.items()
         if line[-1]["workers"] == most), key=lambda row: row["speedup_x"],
    )  # fmt: skip
    text = f"Of {scale.amount(most, kind)} {best['name']} makes most, {digits(best['speedup_x'])} times the work of "
    text += scale.amount(best["base_workers"], kind)
    text += f" at {label(best['size'])}; of {len(every)} lines"
    title = f"{mode.capitalize()} scaling over {kind}s: × over the same recipe on the fewest"
    head = ("engine, size", "lane", *(scale.amount(n, kind) for n in counts))
    shown = [row for lines in panels.values() for line in lines.values() for row in line]
    return _chart(draw, sum(heights), (title, shown), text, head, "ll" + "r" * len(counts), entries, records)


def plot_scaling(rows, path, title):
    """Draws scale's rows, complete, into a file: a panel a size, strong beside weak, with each line's name at its end.

    scale.Impossible, where there is nothing to draw."""
    from matplotlib.figure import Figure

    from gpu_cookbook.run import scale

    kinds = [(kind, mode) for kind in sorted({row["kind"] for row in rows}) for mode in ("strong", "weak")]
    found = [(kind, size, mode, lines) for kind, mode in kinds for size, lines in _scaled(rows, kind, mode).items()]
    panels = sorted(found, key=lambda panel: panel[:3])
    if not panels:
        raise scale.Impossible("There is nothing to draw: a line needs the same recipe on two numbers of workers.")
    label = catalogue.workload_module(scale.WORKLOAD).label
    every = sorted({name for *_, lines in panels for name in lines})
    figure = Figure(figsize=(7.5 * min(2, len(panels)), 4.5 * math.ceil(len(panels) / 2)), layout="constrained")
    figure.suptitle(f"{title}\nsolid: tuned, dashed: idiomatic")
    for number, (kind, size, mode, lines) in enumerate(panels, 1):
        axes = figure.add_subplot(math.ceil(len(panels) / 2), min(2, len(panels)), number)
        _name_ends(axes, _scaling_axes(axes, kind, lines, every), 260)
        axes.set_title(f"{mode}: {label(size)}{_shared(kind, mode)}", fontsize="medium")
        axes.set_ylabel("work done in a time, over one")
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def story(rows):
    """Dots: Dask as it was first written and the fastest of the tuned lane, on one core, all cores, one GPU and all
    GPUs. The rows are scale's, complete."""
    from gpu_cookbook.run import scale

    table = scale.story(rows)
    found = table.records
    if not found:
        return None
    places = list(dict.fromkeys((row["kind"], row["workers"]) for row in found))
    lanes = dict(zip(LANES, (table.head[2], table.head[1]), strict=True))

    def draw(figure):
        axes = figure.subplots()
        handles = []
        for (lane, name), marker in zip(lanes.items(), "so", strict=True):
            mine = [
                (row["time_s"], places.index((row["kind"], row["workers"]))) for row in found if row["lane"] == lane
            ]
            look = {"linestyle": "", "marker": marker, "markersize": 7, "color": LANES[lane]}
            handles += axes.plot(*zip(*mine, strict=True), **look, label=name)
        for row in found:
            point = row["time_s"], places.index((row["kind"], row["workers"]))
            axes.annotate(_stale(row) + seconds(row["time_s"]), point, (7, 0), textcoords="offset points", va="center")
        axes.set_xscale("log")
        axes.grid(False, axis="y")
        axes.margins(x=0.18)
        _time_axis(axes.xaxis)
        axes.set_yticks(range(len(places)), [scale.amount(workers, kind) for kind, workers in places])
        axes.set_ylim(len(places) - 0.5, -0.5)
        _legend(figure, handles)

    ends = {lane: [row["time_s"] for row in found if row["lane"] == lane] for lane in lanes}
    text = f"From {scale.amount(*reversed(places[0]))} to {scale.amount(*reversed(places[-1]))}: " + "; ".join(
        f"{lanes[lane]}, {seconds(times[0])} to {seconds(times[-1])}" for lane, times in ends.items() if times
    )
    title = table.title.removesuffix(scale.source(found))
    return _chart(draw, 150, (title, found), text, table.head, table.align, table.rows, found, table.notes)


# ---- What cells have.


def _scaled(rows, kind, mode):
    """{size: {name: its rows, by workers}} of the recipes that ran on two numbers of workers or more."""
    from gpu_cookbook.run import scale

    ok = [row for row in rows if row["status"] == "ok" and row["mode"] != "empty" and row["kind"] == kind]
    panels = {}
    for size in sorted({row["size"] for row in ok}):
        lines = {}
        for row in sorted(scale.of_mode(ok, mode, size), key=lambda row: row["workers"]):
            lines.setdefault(scale.named(row), []).append(row)
        lines = {name: line for name, line in lines.items() if len({row["workers"] for row in line}) > 1}
        if lines:
            panels[size] = lines
    return panels


def _scaled_words(row):
    speedup = f"{'†' * row['base_stale']}{digits(row['speedup_x'])} ×"
    return f"{speedup} ({_stale(row)}{seconds(row['time_s'])})"


def _shared(kind, mode):
    return " in all" if mode == "strong" else f" a {kind}"


def _scaling_axes(axes, kind, lines, every):
    """{name: line}, drawn; ``every``: the names of all panels, so that a line looks the same in each."""
    counts = sorted({row["workers"] for line in lines.values() for row in line})
    (ideal,) = axes.plot(counts, counts, color=INK, linestyle=":", label="ideal")
    handles = {" ideal": ideal}  # the first of the names
    for name, line in lines.items():
        points = [(row["workers"], row["efficiency"] * row["workers"]) for row in line]  # the base may be two
        style = _line_style(line[0], every.index(name))
        (handles[name],) = axes.plot(*zip(*points, strict=True), **style, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.set_xticks(counts)
    axes.set_xlabel(f"{kind}s")
    return handles


def _name_ends(axes, handles, height):
    """The name of each line beside its last point, moved up or down until it has a row for itself. ``height``: of the
    axes, in points."""
    row = NAME / height
    ends = sorted(
        (axes.transAxes.inverted().transform(axes.transData.transform(line.get_xydata()[-1]))[1], name)
        for name, line in handles.items()
    )
    places = []
    for end, _ in ends:
        places.append(max(end, places[-1] + row) if places else end)
    above = 1 + row / 2  # the highest place
    for number in reversed(range(len(places))):
        places[number] = min(places[number], above)
        above = places[number] - row
    for (_, name), place in zip(ends, places, strict=True):
        line = handles[name]
        leader = {"arrowstyle": "-", "color": line.get_color(), "relpos": (0, 0.5), "shrinkA": 1}
        axes.annotate(
            line.get_label(), line.get_xydata()[-1], (1.12, place), textcoords="axes fraction", va="center",
            color=INK, fontsize=8, arrowprops=leader,
        )  # fmt: skip


def _complete(cells):
    """Copies of those with a time, and what follows from several."""
    ok = [
        {key: value for key, value in cell.items() if value is not None or not key.endswith("_s")}
        for cell in cells
        if cell["status"] == "ok" and cell.get("resident_s")
    ]
    return report.complete(ok)


def _figure_of(cell, figure):
    return "resident" if cell["technique"] == "numpy" else figure


def _by(cells, key):
    groups = {}
    for cell in cells:
        groups.setdefault(cell[key], []).append(cell)
    return list(groups.values())


def _fastest(found, figure=None):
    """The name of the first, and of those that tie with it."""
    figure = figure or ("device" if "device_s" in found[0] else "resident")
    names = [cell["technique"] for cell in found if cell is found[0] or tables.tied(cell, found[0], figure)]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _largest(cells):
    """Each workload at the largest size that was measured."""
    return [cell for mine in _by(cells, "workload") for cell in mine if cell["size"] == max(c["size"] for c in mine)]


def _fewer(each, key=lambda cell: cell):
    """Of what is sorted, fastest first, the first of each framework and lane, where a lane has too many to be read."""
    lanes = Counter(key(one)["lane"] for one in each)
    if max(lanes.values()) <= MANY:
        return each
    first = {}
    for one in each:
        first.setdefault((key(one)["framework"], key(one)["lane"]), one)
    return list(first.values())


def _of(drawn, found):
    if len(drawn) == len(found):
        return ""
    return f", the fastest of each framework and lane ({len(drawn)} of {len(found)})"


def _begins(mine, figure, value):
    """(size, time) from where on it beats NumPy, where that is between two measured sizes; else None."""
    size = mine[0].get(f"beats_numpy_from_size_{figure}")
    if size is None or mine[0][f"beats_numpy_at_every_size_{figure}"]:
        return None
    for one, next_one in pairwise(mine):
        if one["size"] <= size <= next_one["size"]:
            share = math.log(size / one["size"]) / math.log(next_one["size"] / one["size"])
            return size, value(one) * (value(next_one) / value(one)) ** share
    return None


def _named(cell):
    return Entry(cell["technique"]), Entry(cell["lane"]), Entry(report.place(cell))


def _stale(cell):
    return "†" if cell.get("stale") else ""


def _record(name, cell, **figures):
    keys = (*tables.RUN, "device", "workload", "technique", "framework", "lane", "size")
    return {"table": name} | {key: cell.get(key) for key in keys} | figures


# ---- How it looks.


@cache
def _frameworks():
    return sorted({recipe.framework for recipe in catalogue.recipes()} - {"NumPy"})


def _colour(framework):
    """The same in every chart."""
    if framework == "NumPy":
        return INK
    known = _frameworks()
    return COLOURS[(known.index(framework) if framework in known else len(known)) % len(COLOURS)]


def _line_style(cell, number):
    if cell["technique"] == "numpy":
        return {"color": INK, "linewidth": 2.6, "marker": "o", "markersize": 5, "zorder": 4}
    return {
        "color": _colour(cell["framework"]),
        "linestyle": "-" if cell["lane"] == "tuned" else (0, (4, 2)),
        "linewidth": 1.4,
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 4.5,
    }


def _piece(number):
    return {"facecolor": COLOURS[number], "hatch": HATCHES[number], "edgecolor": INK}


def _bar(cell, value, text, others):
    """(label, pieces, text); the label says where it ran if the others ran elsewhere."""
    places = {report.place(other) for other in others}
    where = ", CPU" if len(places) > 1 and report.place(cell) == "CPU" else ""
    style = NUMPY if cell["technique"] == "numpy" else {"facecolor": LANES[cell["lane"]]}
    return f"{cell['technique']}{where}", [(value, style)], text


def _lanes(cells):
    """The legend of bars in their lanes' colours."""
    there = {cell["lane"] for cell in cells if cell["technique"] != "numpy"}
    return [(lane, {"facecolor": colour}) for lane, colour in LANES.items() if lane in there]


def _prefixed(value):
    """12.3 G; 1 T"""
    unit, scale = next(
        ((u, s) for u, s in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)) if value >= s), ("", 1)
    )
    return f"{float(f'{value / scale:.3g}'):g} {unit}".strip()


def _time_axis(axis):
    from matplotlib import ticker

    def word(value, _):
        unit, scale = next(
            (u, s) for u, s in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)) if value >= 0.9995 * s or u == "µs"
        )
        return f"{value / scale:.3g} {unit}"

    axis.set_major_locator(ticker.LogLocator(numticks=12))
    axis.set_major_formatter(word)
    axis.set_minor_locator(ticker.NullLocator())


def _ticks(axes, sizes, label):
    """The measured sizes, but for those that have no room beside the one before."""
    from matplotlib import ticker

    room = 5.5 * max(len(label(size)) for size in sizes)
    span, kept = math.log(sizes[-1] / sizes[0]), [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if math.log(kept[0] / size) / span * 300 > room:
            kept.insert(0, size)
    axes.xaxis.set_major_locator(ticker.FixedLocator(kept))
    axes.xaxis.set_major_formatter(lambda size, _: label(round(size)))
    axes.xaxis.set_minor_locator(ticker.NullLocator())


def _columns(longest):
    return max(1, min(4, int(WIDTH // (5.2 * longest + 36))))


def _legend(figure, handles):
    labels = [handle.get_label() for handle in handles]
    if handles:
        columns = _columns(max(map(len, labels)))
        figure.legend(
            handles, labels, loc="outside lower left", ncols=columns, frameon=False, fontsize=9, handlelength=2.6,
            borderpad=0.2, labelspacing=0.3, columnspacing=1, borderaxespad=0,
        )  # fmt: skip


def _bars(panels, legend, titled, text, head, align, rows, records, line=None, cut=False):
    """panels: (heading, [(label, [(value, style), …], text at its end), …]); legend: (name, style); line: the value of
    a line across; cut: no bar takes all the room."""
    totals = [sum(value for value, _ in pieces) for _, bars in panels for _, pieces, _ in bars]
    limit = min(max(totals), CUT * median(totals)) if cut else max(totals)
    text += "; ▸ marks a bar that goes on" * (limit < max(totals))

    def draw(figure):
        from matplotlib.patches import Patch

        ratios = [len(bars) + 0.6 for _, bars in panels]
        every = figure.subplots(len(panels), squeeze=False, height_ratios=ratios)[:, 0]
        for axes, (heading, bars) in zip(every, panels, strict=True):
            for place, (_, pieces, words) in enumerate(bars):
                begin = 0
                for value, style in pieces:
                    shown = max(0, min(value, limit - begin))
                    axes.barh(place, shown, 0.72, left=begin, linewidth=0, **style)
                    begin += shown
                beyond = sum(value for value, _ in pieces) > limit
                end = line if line and 0.8 * line < begin < line else begin  # no number across the line
                axes.annotate(f"{'▸ ' * beyond}{words}", (end, place), (4, 0), textcoords="offset points", va="center")
            axes.set_yticks(range(len(bars)), [label for label, _, _ in bars])
            axes.set_ylim(len(bars) - 0.4, -0.6)
            axes.set_xlim(0, max(limit, line or 0))
            axes.set_xticks([])
            axes.grid(False)
            axes.tick_params(axis="y", length=0)
            axes.spines["bottom"].set_visible(False)
            if line:
                axes.axvline(line, color=INK, linestyle=":", linewidth=1)
            if heading:
                axes.set_title(heading, loc="left")
        _legend(figure, [Patch(label=name, linewidth=0, **style) for name, style in legend])

    height = sum(15.5 * len(bars) + 8 + 18 * bool(heading) for heading, bars in panels) + 6
    return _chart(draw, height, titled, text, head, align, rows, records)


def _chart(draw, height, titled, text, head, align, rows, records, notes=()):
    """``titled``: what is drawn and the cells that say of which machine and commits."""
    (words, cells), text = titled, f"{text}."
    run = tables.source_of(cells, cells)
    title = f"{words}. {run}" if run else words
    notes = [*notes, *[STALE] * any(cell.get("stale") for cell in cells)]
    svg = _svg(draw, height, title, text)
    return Chart(title, text, svg, Table(title, head, align, rows, notes, records))


def _svg(draw, height, title, text):
    from matplotlib import rc_context, style
    from matplotlib.figure import Figure

    look = {
        "svg.fonttype": "none",
        "svg.hashsalt": title,
        "text.parse_math": False,
        "font.size": 10,
        "axes.titlesize": 10,
        "axes.labelsize": 10,
        "axes.grid": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "grid.alpha": 0.15,
        "hatch.linewidth": 0.6,
        "legend.labelcolor": INK,
    }
    look |= dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "grid.color", "axes.titlecolor"), INK)
    look |= dict.fromkeys(("xtick.color", "ytick.color", "hatch.color"), INK)
    look |= dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none")
    text_file = io.StringIO()
    with style.context("default"), rc_context(look):
        figure = Figure(figsize=(WIDTH / 72, height / 72), layout="constrained")
        draw(figure)
        if figure.legends:  # it takes its height from nothing that is drawn
            box = figure.legends[0].get_window_extent()
            figure.set_figheight((height + 8) / 72 + box.height / figure.dpi)
        figure.savefig(text_file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return _inline(text_file.getvalue(), title, text)


def _inline(drawn, title, text):
    """matplotlib's file as an element for a page: its ids are nobody else's, its letters and its ink are the page's."""
    root = ElementTree.fromstring(drawn)
    prefix = f"c{hashlib.sha256(f'{title}{drawn}'.encode()).hexdigest()[:10]}-"
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', drawn))
    for parent in list(root.iter()):
        parent.tag = parent.tag.rpartition("}")[2]
        parent.tail = None
        parent.text = parent.text if parent.tag == "text" else None
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("style", "metadata"):
                parent.remove(child)
        for key, value in list(parent.attrib.items()):
            value = re.sub(r"-?\d+\.\d{3,}", _rounded, " ".join(value.split()))
            value = re.sub(r" ?font-family: [^;]*;", "", value).replace(INK, "currentColor")
            value = re.sub(r"(^|url\()#", rf"\1#{prefix}", value) if "#" in value and _refers(key, value) else value
            del parent.attrib[key]
            if key != "id":
                parent.set(key.rpartition("}")[2], value)
            elif value in used:
                parent.set(key, prefix + value)
    _flatten(root)
    view = root.get("viewBox")
    root.attrib.clear()
    # The two that matplotlib sets for everything are inherited: a style element would set them for the whole page.
    look = f"max-width: {MOST_WIDTH}; height: auto; stroke-linejoin: round; stroke-linecap: butt"
    root.attrib |= {"xmlns": "http://www.w3.org/2000/svg", "viewBox": view, "width": "100%", "style": look}
    root.attrib |= {"role": "img", "aria-label": text, "font-family": "inherit"}
    name = ElementTree.Element("title")
    name.text = title
    root.insert(0, name)
    return ElementTree.tostring(root, encoding="unicode")


def _refers(key, value):
    return key.rpartition("}")[2] == "href" or "url(#" in value


def _rounded(number):
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _flatten(element):
    """Groups that group nothing any more are half of the text."""
    children = []
    for child in element:
        _flatten(child)
        if child.tag in ("g", "defs") and not child.attrib and (child.tag == "g" or not len(child)):
            children += list(child)
        else:
            children.append(child)
    element[:] = children
