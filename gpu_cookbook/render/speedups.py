"""One picture to choose by: for each workload, how many times as fast as NumPy each framework's plainest recipe is, on
one machine."""

import math
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_cookbook import catalogue
from gpu_cookbook.render import format, tables
from gpu_cookbook.render.charts import Chart, chart, largest, stale_note
from gpu_cookbook.render.svg import COLOURS, INK, Style
from gpu_cookbook.render.tables import Entry, Table
from gpu_cookbook.results import Metric, Result, grouped, origin_record, over_one_numpy, record
from gpu_cookbook.units import digits, joined

if TYPE_CHECKING:  # listing recipes imports this module, but not matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CPU = "all CPU cores"
FASTER, SLOWER = COLOURS[:2]
DEEPEST = 300  # times as fast or as slow as NumPy: from here on, the colour of a cell is as deep as it gets
CELL = 27  # points, the height of one

Cells = Mapping[tuple[str, str], Result]  # {(framework, workload): the result}


def speedups(results: Sequence[Result]) -> Chart | None:
    """A grid: frameworks and workloads, each cell with two speedups over NumPy, at the largest size that NumPy was
    measured at; None if nothing on a GPU was compared with NumPy. ``results``: the completed ones of one machine."""
    cells = _cells(results)
    if not cells:
        return None
    frameworks, workloads = _frameworks(cells), _workloads(cells)
    shown = list(cells.values())
    rows = [(Entry(name), *(_entry(cells.get((name, workload))) for workload in workloads)) for name in frameworks]
    source = tables.source_of(shown, shown)
    table = Table(
        title=f"Times as fast as NumPy{f'. {source}' if source else ''}",
        head=("framework", *workloads),
        align="l" + "r" * len(workloads),
        rows=rows,
        notes=[Entry(_sizes(cells, workloads), "note"), *stale_note(shown)],
        records=[{"table": "speedups", **record(each), **origin_record(each)} for each in shown],
    )

    def draw(figure: "Figure") -> None:
        _draw(figure.subplots(), cells, frameworks, workloads, size=7.5)

    text = (
        "Upper number of a cell: the call alone, with the data on the GPU. Lower number: the call with both transfers,"
        f" from host arrays to a host result, still against NumPy's call alone. {CPU}: the fastest recipe without a"
        " GPU. Other rows: the plainest recipe of each framework; those with recipes for few workloads are left out."
        " NumPy uses one core, or all where its work is products of matrices. An empty cell has no recipe, or no time"
        " that counts"
    )
    if modes := _other_samples(cells):
        text += f". random_subset_mean: {modes}"
    if absent := _absent(results, workloads):
        text += f". {absent}"
    return chart(draw, CELL * len(frameworks) + 55, text, table)


def plot(results: Sequence[Result], path: Path, title: str) -> None:
    """Draws the grid into a PNG file, whose description is described()."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    cells = _cells(results)
    frameworks, workloads = _frameworks(cells), _workloads(cells)
    with rc_context({"text.parse_math": False}):
        figure = Figure(figsize=(8.2, 0.36 * len(frameworks) + 1.6), layout="constrained")
        _draw(figure.subplots(), cells, frameworks, workloads, size=9)
        figure.suptitle(title, fontsize=10)
        figure.supxlabel(textwrap.fill(_absent(results, workloads), 110), fontsize=9)
        figure.savefig(path, dpi=150, metadata={"Description": described(results)})


def described(results: Sequence[Result]) -> str:
    """Each cell in words, and what has none."""
    cells = _cells(results)
    lines = [
        f"{name}, {workload}: {' and '.join(_words(cells[name, workload]))}"
        for name in _frameworks(cells)
        for workload in _workloads(cells)
        if (name, workload) in cells
    ]
    return "\n".join(filter(None, [*lines, _absent(results, _workloads(cells))]))


def _other_samples(cells: Cells) -> str:
    """What the docstrings of these recipes say of their samples, where they are not made in float64 as NumPy's are."""
    modes = {
        recipe.technique: recipe.math
        for workload, technique in {(each.workload, each.technique) for each in cells.values()}
        if workload == "random_subset_mean" and (recipe := catalogue.find(workload, technique)) and recipe.math
    }
    return "; ".join(f"{technique}: {modes[technique]}" for technique in sorted(modes))


def _absent(results: Sequence[Result], workloads: Sequence[str]) -> str:
    """Which workloads the grid lacks, and why, without a full stop; nothing if it has all of them."""
    reasons: dict[str, list[str]] = {}
    for name in catalogue.workloads():
        if name not in workloads:
            mine = [each for each in results if each.workload == name]
            if not mine:
                reason = "not measured on this machine"
            elif all(each.is_numpy for each in mine):
                reason = "measured in NumPy only"
            elif any(each.speedups for each in mine if not each.is_numpy):
                reason = "in few frameworks"
            else:
                reason = "no time of NumPy to compare with"
            reasons.setdefault(reason, []).append(name)
    parts = [f"{joined(names)} ({reason})" for reason, names in reasons.items()]
    return f"Not shown: {'; '.join(parts)}" if parts else ""


def _cells(results: Sequence[Result]) -> Cells:
    """Of each framework the plainest idiomatic recipe that ran on a GPU, and the fastest of those that ran on the CPU.
    A framework is left out if it is in fewer than a third as many workloads as the one that is in most, and so is an
    engine, which is for several GPUs."""
    engines = catalogue.engines()
    known = [each for each in over_one_numpy(results) if not each.is_numpy and each.speedups.get(Metric.RESIDENT)]
    known = [each for each in known if each.place == "CPU" or each.framework not in engines]
    known = [each for each in largest(known) if each.lane == "idiomatic"]
    cells = {}
    for mine in grouped(known, lambda each: (each.workload, each.framework if each.place != "CPU" else CPU)):
        name = mine[0].framework if mine[0].place != "CPU" else CPU
        plainest = min(mine, key=lambda each: len(each.technique))
        fastest = min(mine, key=lambda each: each.order(Metric.RESIDENT))
        cells[name, mine[0].workload] = fastest if name == CPU else plainest
    counts = Counter(name for name, _ in cells if name != CPU)
    often = {name for name, count in counts.items() if 3 * count >= max(counts.values())}
    there = {workload for name, workload in cells if name in often}
    return {key: each for key, each in cells.items() if key[0] in often | {CPU} and key[1] in there}


def _frameworks(cells: Cells) -> list[str]:
    """In the order of the alphabet, and the CPU at the end."""
    return sorted({name for name, _ in cells}, key=lambda name: (name == CPU, name.lower()))


def _workloads(cells: Cells) -> list[str]:
    there = {workload for _, workload in cells}
    return [workload for workload in catalogue.workloads() if workload in there]


def _words(result: Result) -> list[str]:
    """The speedups, resident and with transfers; without arrays to transfer, there is one."""
    mark = format.stale(result)
    found = [result.speedups.get(metric) for metric in (Metric.RESIDENT, Metric.TRANSFER)]
    return [mark + digits(each) for each in found if each]


def _entry(result: Result | None) -> Entry:
    return Entry("\n".join(_words(result)), recipe=(result.workload, result.technique)) if result else Entry("")


def _sizes(cells: Cells, workloads: Sequence[str]) -> str:
    sizes = {workload: each.size for (_, workload), each in cells.items()}
    labels = [f"{each} {catalogue.workload_module(each).label(sizes[each])}" for each in workloads]
    return f"The call alone, and below it with transfers, at the largest size: {', '.join(labels)}."


def _draw(axes: "Axes", cells: Cells, frameworks: Sequence[str], workloads: Sequence[str], size: float) -> None:
    from matplotlib.patches import Rectangle

    for (name, workload), each in cells.items():
        x, y = workloads.index(workload), frameworks.index(name)
        words = _words(each)
        for half, metric in enumerate((Metric.RESIDENT, Metric.TRANSFER)[: len(words)]):
            speedup = each.speedups[metric]
            depth = min(1, abs(math.log(speedup)) / math.log(DEEPEST))
            high = 1 / len(words)
            look: Style = {"facecolor": FASTER if speedup > 1 else SLOWER, "alpha": 0.08 + 0.5 * depth, "linewidth": 0}
            axes.add_patch(Rectangle((x - 0.48, y - 0.48 + 0.96 * half * high), 0.96, 0.96 * high, **look))
            place = (x, y - 0.48 + 0.96 * (half + 0.5) * high)
            axes.annotate(words[half], place, ha="center", va="center", fontsize=size, color=INK)
    # Slanted, as a long name is wider than its column.
    axes.set_xticks(range(len(workloads)), workloads, fontsize=size, rotation=25, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(frameworks)), frameworks, fontsize=size + 0.5)
    axes.xaxis.tick_top()
    axes.set_xlim(-0.5, len(workloads) - 0.5)
    axes.set_ylim(len(frameworks) - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.grid(False)
    for side in ("top", "right", "bottom", "left"):
        axes.spines[side].set_visible(False)
