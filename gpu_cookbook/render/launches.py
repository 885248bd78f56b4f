"""What a launch takes in several frameworks, as benchmarks/launches.py measured it: a chart and a table of all."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gpu_cookbook.render import svg
from gpu_cookbook.render.charts import Chart, chart
from gpu_cookbook.render.steps import conditions, legend, table_of, time_of
from gpu_cookbook.render.svg import COLOURS, INK, Style
from gpu_cookbook.render.tables import Entry, Table
from gpu_cookbook.run.launches import COUNTS, ISSUED, PREPARED, RESIDENT
from gpu_cookbook.store.transfers import Kept, Step
from gpu_cookbook.units import seconds

if TYPE_CHECKING:  # listing recipes must not import matplotlib
    from matplotlib.figure import Figure

WAYS = {
    "cuda_compute": "cuda.compute",
    "cuda_core": "cuda.core",
    "cupy": "CuPy",
    "cutile": "cuTile",
    "jax": "JAX",
    "numba": "Numba",
    "numba_mlir": "numba-cuda-mlir",
    "numba_on_cupy": "Numba, CuPy's arrays",
    "numba_on_torch": "Numba, PyTorch's tensors",
    "pycuda": "PyCUDA",
    "pyopencl": "PyOpenCL",
    "triton": "Triton",
    "warp": "Warp",
}
STYLES = {RESIDENT: (COLOURS[0], "o"), ISSUED: (COLOURS[1], "s"), PREPARED: (COLOURS[2], "D")}
SIZES = dict(zip(COUNTS, (2.5, 4.5, 6.5), strict=True))  # points: of the marker of so many arguments
COUNTED = {count: f"{count} argument{'s' * (count > 1)}" for count in COUNTS}
LINE, APART = 8, 8  # points: the height of a line, and what is between two frameworks


def times(steps: Mapping[str, Step], name: str, what: str) -> list[tuple[int, float]]:
    """(number of arguments, seconds of a launch) of one framework."""
    found = ((count, steps.get(f"{name}_{count}_{what}")) for count in COUNTS)
    return [(count, step.time.median) for count, step in found if step and step.time]


def table(steps: Mapping[str, Step], title: str) -> Table:
    """The three times, one below the other. Of a framework that is not there at all, the first says why."""
    rows: list[tuple[Entry, ...]] = []
    records = []
    for what in STYLES:
        rows.append((Entry(what, "group"), *[Entry()] * (len(COUNTS) + 1)))
        for name, label in WAYS.items():
            mine = {count: step for count in COUNTS if (step := steps.get(f"{name}_{count}_{what}"))}
            reasons = [f"{count}: {step.reason}" for count, step in mine.items() if step.reason]
            if what == RESIDENT and name in steps:
                reasons.insert(0, steps[name].reason)
            if mine or reasons:
                words = [time_of(mine.get(count)) for count in COUNTS]
                rows.append(tuple(map(Entry, (label, *words, "; ".join(reasons)))))
            found = times(steps, name, what)
            records += [{"framework": name, "what": what, "arguments": n, "time_s": time} for n, time in found]
    head = ["framework", *COUNTED.values(), "not measured"]
    notes = legend(entry.text for row in rows for entry in row[1:-1])
    return table_of(title, head, "lrrrl", rows, notes, records)


def origins(ways: Mapping[str, Kept], labels: Mapping[str, str]) -> list[Entry]:
    """Where and with what each way was measured, one line for each run. ``labels``: what each is called."""
    found: dict[str, list[str]] = {}
    for name, label in labels.items():
        if name in ways:
            found.setdefault(conditions(ways[name]), []).append(label)
    return [Entry(f"{', '.join(labels)}: {words}", "note") for words, labels in found.items()]


def launches(ways: Mapping[str, Kept]) -> Chart | None:
    """The three times of each framework, each a line from one argument to the most; None if nothing was measured.
    ``ways``: what transfers.by_way found of one machine."""
    steps = {name: step for run in ways.values() for name, step in run.steps.items()}
    found = {name: {what: found for what in STYLES if (found := times(steps, name, what))} for name in WAYS}
    names = sorted((name for name in WAYS if found[name]), key=lambda name: min(found[name].get(RESIDENT, [(0, 0)]))[1])
    if not names:
        return None
    places = [number * (len(STYLES) * LINE + APART) for number in range(len(names))]

    def draw(figure: "Figure") -> None:
        from matplotlib.lines import Line2D
        from matplotlib.ticker import LogLocator, NullLocator

        axes = figure.subplots()
        for place, name in zip(places, names, strict=True):
            for row, (what, (colour, marker)) in enumerate(STYLES.items()):
                points = found[name].get(what, [])
                height = place + (row - (len(STYLES) - 1) / 2) * LINE
                axes.plot([each for _, each in points], [height] * len(points), color=colour, linewidth=1.2)
                for count, each in points:
                    axes.plot(each, height, color=colour, marker=marker, markersize=SIZES[count])
        axes.set_xscale("log")
        svg.time_axis(axes.xaxis)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_yticks(places, [WAYS[name] for name in names])
        axes.set_ylim(places[-1] + 2 * LINE, -2 * LINE)
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
        handles = []  # in three columns
        for (what, (colour, marker)), (count, words) in zip(STYLES.items(), COUNTED.items(), strict=True):
            size: Style = {"color": INK, "linestyle": "", "marker": "o", "markersize": SIZES[count]}
            handles.append(Line2D([], [], color=colour, marker=marker, label=what))
            handles.append(Line2D([], [], **size, label=f"with {words}"))
        svg.legend(figure, handles)

    (device,) = {run.device for run in ways.values()}
    shown = table(steps, f"What a launch takes: {device}")
    shown = replace(shown, notes=[*shown.notes, *origins(ways, WAYS)])
    middle = ((WAYS[name], dict(found[name].get(RESIDENT, [])).get(COUNTS[1])) for name in names)
    text = "; ".join(f"{label} {seconds(each)}" for label, each in middle if each)
    return chart(draw, places[-1] + 4 * LINE + 24, f"Resident, with {COUNTS[1]} arguments: {text}", shown)
