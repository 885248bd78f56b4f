"""The ways from host to host, as benchmarks/transfers.py measured them: a table of all, and a drawing of each, which
shows when the host, the bus in both directions, and the GPU are busy in one call."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gpu_cookbook import units
from gpu_cookbook.render.charts import Chart, chart
from gpu_cookbook.render.format import UNKNOWN
from gpu_cookbook.render.steps import legend, marks, time_of
from gpu_cookbook.render.svg import COLOURS, INK
from gpu_cookbook.render.tables import Entry, Table
from gpu_cookbook.store.transfers import RECIPES, Bar, Kept, Step
from gpu_cookbook.units import digits, seconds

if TYPE_CHECKING:  # listing recipes must not import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ORDINARY, PAGE_LOCKED, UNIFIED = "ordinary", "page-locked", "unified"
WAYS = {  # the steps of the table: what they are, and which host arrays they take
    "numpy": ("NumPy, one core", ORDINARY),
    "torch_cpu": ("PyTorch, all cores", ORDINARY),
    "pageable": ("whole arrays", ORDINARY),
    "page_locked": ("whole arrays", PAGE_LOCKED),
    "asynchronous": ("one wait at the end", PAGE_LOCKED),
    "in_pieces": ("in pieces, one stream", PAGE_LOCKED),
    "both_ways": ("both ways at once", PAGE_LOCKED),
    "zero_copy": ("zero-copy", PAGE_LOCKED),
    "staged": ("staged by threads", ORDINARY),
    "registered": ("registered for the call", ORDINARY),
    "unified": ("pages that move when touched", UNIFIED),
    "unified_prefetched": ("pages that are sent ahead", UNIFIED),
    "recipe_page_locked": ("CuPy's tuned recipe", PAGE_LOCKED),
    "recipe": ("CuPy's tuned recipe", ORDINARY),
    "recipe_torch_page_locked": ("PyTorch's tuned recipe", PAGE_LOCKED),
    "recipe_torch": ("PyTorch's tuned recipe", ORDINARY),
    "recipe_pycuda_page_locked": ("PyCUDA's tuned recipe", PAGE_LOCKED),
    "recipe_pycuda": ("PyCUDA's tuned recipe", ORDINARY),
    "recipe_numba_page_locked": ("Numba's tuned recipe", PAGE_LOCKED),
    "recipe_numba": ("Numba's tuned recipe", ORDINARY),
    "recipe_pyopencl_page_locked": ("PyOpenCL's tuned recipe", PAGE_LOCKED),
    "recipe_pyopencl": ("PyOpenCL's tuned recipe", ORDINARY),
}
ON_CPU = ("numpy", "torch_cpu")
COPIES = {  # what it is, and how many arrays move
    "limit_up": ("page-locked memory to the GPU", 1),
    "limit_down": ("the GPU to page-locked memory", 1),
    "limit_both": ("both at once", 2),
    "host_copies": ("ordinary memory to page-locked (two arrays) and back (one), by 12 threads of the host", 3),
    "gpu_to_gpu": ("one GPU to another, directly", 1),
    "gpu_to_gpu_through_host": ("one GPU to another, through page-locked memory", 1),
}
ALLOCATION = "allocate_page_locked"  # of one array
PARTS = {  # of a recipe's call with ordinary small matrices
    "copy_in": "its copies of both to page-locked memory",
    "kernels": "its two kernels: their launches, and the wait for them",
    "copy_out": "its copy of the product from there",
    "rest": "its checks, and whatever else it does",
}
SMALL = {  # steps of two matrices of 200 × 200
    "small_numpy": "NumPy",
    "small_torch_cpu": "PyTorch on the CPU",
    "small_launch": "an empty kernel, and the wait for it",
    "small_unchanged": "CuPy's tuned recipe, from page-locked matrices that the host has not written since",
    "small_page_locked": "CuPy's tuned recipe, from page-locked matrices that the host has just written",
    "small": "CuPy's tuned recipe, from ordinary matrices that the host has just written",
    **{f"small_{part}": what for part, what in PARTS.items()},
    "small_torch": "PyTorch's tuned recipe, from ordinary matrices that the host has just written",
    **{f"small_torch_{part}": what for part, what in PARTS.items()},
}
SCALES = (  # steps that are drawn on the same scale
    ("pageable", "page_locked", "registered"),
    ("asynchronous", "in_pieces", "both_ways", "zero_copy", "staged", "recipe_page_locked", "recipe"),
    ("unified", "unified_prefetched"),
    ("gpu_to_gpu", "gpu_to_gpu_through_host"),
)
DRAWN = [name for group in SCALES for name in group]
ROWS = {  # of a drawing, from top to bottom: what is busy, and its colour
    "host": ("host", INK),
    "up": ("bus to the GPU", COLOURS[0]),
    "kernel": ("kernel", COLOURS[2]),
    "down": ("bus from the GPU", COLOURS[1]),
    "peer": ("GPU to GPU", COLOURS[4]),
}
ALWAYS = ("host", "up", "kernel", "down")
THICK = 11  # points: the height of a bar
APART = 17  # points from row to row
MOST_IN_A_ROW = 3  # threads of the host
HAIR = 1 / 1000  # of the scale: no bar is drawn shorter


# ---- Numbers.


def limit(kept: Kept) -> float | None:
    """Seconds in which the two inputs go over the bus, while nothing comes back."""
    up = kept.seconds("limit_up")
    return up and 2 * up


def share(kept: Kept, name: str) -> float | None:
    """The limit as a part of what a step takes."""
    least, took = limit(kept), kept.seconds(name)
    return least / took if least and took else None


def rate(kept: Kept, name: str) -> float | None:
    """Bytes per second of a bare copy."""
    took = kept.seconds(name)
    return 4 * kept.elements * COPIES[name][1] / took if took else None


def busy(step: Step, row: str) -> float:
    """Seconds in which something of this row was busy, in the recorded call. A host that waits is not busy."""
    return step.busy.get(row, 0) / 1e6


def row_of(bar: Bar) -> str:
    return bar[0].partition(" ")[0]


# ---- Tables.


def source(kept: Kept) -> str:
    return f"{kept.device}, driver {kept.driver}, {kept.processor}; {kept.origin}; {kept.versions}"


def ladder(kept: Kept) -> Table:
    """Every way from host to host, beside the first, the bus and the CPU."""
    rows, records = [], []
    for name, (what, arrays) in WAYS.items():
        step = kept.steps.get(name)
        if step is None:
            continue
        entry = Entry(what, recipe=RECIPES.get(name))
        if not step.time:
            cells = [Entry(f"not measured: {step.reason}"), *[Entry(UNKNOWN)] * 4]
        else:
            part = None if name in ON_CPU else share(kept, name)
            cells = [
                Entry(time_of(step)),
                *(Entry(_times(kept.seconds(other), step.time.median)) for other in ("pageable", *ON_CPU)),
            ]
            cells.insert(2, Entry(f"{100 * part:.0f} %" if part else UNKNOWN))
        rows.append((entry, Entry(arrays), *cells))
        records.append({"step": name, "arrays": arrays, "time_s": kept.seconds(name)})
    head = ("way", "host arrays", "time", "× first", "of the limit", "× NumPy", "× PyTorch")
    title = f"{kept.elements:,} products of float32, from host to host: {source(kept)}"
    return Table(title, head, "llrrrrr", rows, _marks(kept, WAYS), records)


def _marks(kept: Kept, names: Iterable[str]) -> list[Entry]:
    """What the marks mean that are beside these steps."""
    steps = [kept.steps[name] for name in names if name in kept.steps]
    return legend(map(marks, steps), "script or the recipe")


def _times(other: float | None, took: float) -> str:
    return digits(other / took) if other else UNKNOWN


def copies(kept: Kept) -> Table:
    """Bare copies of one array."""
    rows = []
    for name, (what, _) in COPIES.items():
        step = kept.steps.get(name)
        moved = rate(kept, name)
        if step and step.time and moved:
            cells = (seconds(step.time.median), units.rate(moved))
            rows.append(tuple(map(Entry, (what, *cells))))
    records = [{"copy": name, "time_s": kept.seconds(name)} for name in COPIES]
    size = f"{4 * kept.elements / 2**30:.3g} GiB"
    return Table(
        f"Bare copies of {size}: {source(kept)}", ("from where to where", "time", "rate"), "lrr", rows, [], records
    )


def small(kept: Kept) -> Table:
    """What the time of two small matrices is made of."""
    rows = []
    for name, what in SMALL.items():
        step = kept.steps.get(name)
        if step and step.time:
            times = _times(kept.seconds("small_numpy"), step.time.median)
            rows.append((Entry(what, recipe=RECIPES.get(name)), Entry(time_of(step)), Entry(times)))
    records = [{"step": name, "time_s": kept.seconds(name)} for name in SMALL]
    title = f"Two matrices of 200 × 200, from host to host: {source(kept)}"
    return Table(title, ("what", "time", "× NumPy"), "lrr", rows, _marks(kept, SMALL), records)


# ---- Drawings.


def timeline(kept: Kept, name: str) -> Chart | None:
    """Who is busy when, in one call; None if nothing was recorded of it."""
    step = kept.steps.get(name)
    if not step or not step.bars:
        return None
    present = {row_of(bar) for bar in step.bars}
    rows = [row for row in ROWS if row in present or (row in ALWAYS and "peer" not in present)]
    group = next((group for group in SCALES if name in group), (name,))
    scale = max(kept.steps[each].traced for each in group if each in kept.steps)
    threads = _threads(step)
    # Of the host's row, which has a bar for each thread, as many rows of room as many threads need.
    tall = max(1, len(threads) // MOST_IN_A_ROW)
    places = [0.0, *(tall / 2 + 0.5 + number for number in range(len(rows) - 1))]

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for place, row in zip(places, rows, strict=True):
            if row == "host":
                for number, thread in enumerate(threads):
                    high = tall - 1 + THICK / APART
                    thick = APART * high / len(threads)
                    middle = place + ((number + 0.5) / len(threads) - 0.5) * high
                    for kind, alpha in (("wait", 0.25), ("host", 0.9)):
                        mine = [bar for bar in step.bars if bar[0] == f"{kind} {thread}"]
                        _draw_bars(axes, mine, middle, 0.85 * thick, INK, scale, alpha)
            else:
                _draw_bars(axes, [bar for bar in step.bars if bar[0] == row], place, THICK, ROWS[row][1], scale)
            axes.annotate(
                _busy_words(step, row), (1, place), (5, 0), ("axes fraction", "data"),
                textcoords="offset points", va="center",
            )  # fmt: skip
        axes.set_yticks(places, [ROWS[row][0] for row in rows])
        axes.set_ylim(places[-1] + 0.5, -tall / 2)
        axes.set_xlim(0, 1e3 * scale)
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.axvline(1e3 * step.traced, color=INK, linestyle=":", linewidth=1)
        axes.set_xlabel("ms")

    words = [f"{ROWS[row][0]} {_busy_words(step, row)}" for row in rows]
    text = f"One call of {seconds(step.traced)} under the profiler. Busy: {'; '.join(words)}"
    numbers = [
        (Entry(ROWS[row][0]), Entry(_busy_words(step, row)), Entry(f"{100 * part:.0f} %" if part else UNKNOWN))
        for row in rows
        for part in [busy(step, row) / step.traced]
    ]
    what = WAYS[name] if name in WAYS else (COPIES[name][0], "device")
    title = f"{', '.join(dict.fromkeys((what[0], f'{what[1]} arrays')))}: {kept.device}"
    title = title[0].upper() + title[1:]
    records = [{"row": row, "start_us": start, "duration_us": duration} for row, start, duration in step.bars]
    table = Table(f"{title}; {kept.origin}", ("row", "busy", "of the call"), "lrr", numbers, _closed(step), records)
    drawn = chart(draw, APART * (len(rows) - 1 + tall) + 34, text, table)
    return Chart(title, drawn.text, drawn.svg, table)


def _threads(step: Step) -> list[int]:
    """The host's threads that did anything."""
    return sorted({int(bar[0].split()[1]) for bar in step.bars if row_of(bar) in ("host", "wait")})


def _busy_words(step: Step, row: str) -> str:
    took = busy(step, row)
    return seconds(took) if took else UNKNOWN


def _closed(step: Step) -> list[Entry]:
    if not step.closed:
        return []
    return [Entry(f"Gaps of up to {seconds(step.closed / 1e6)} were closed, except between kernels.", "note")]


def _draw_bars(
    axes: "Axes", bars: Sequence[Bar], place: float, thick: float, colour: str, scale: float, alpha: float = 1
) -> None:
    """All bars as one path of thick lines, which is a tenth of the text that rectangles would be."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not bars:
        return
    ends = [(start / 1e3, max(start + duration, start + HAIR * 1e6 * scale) / 1e3) for _, start, duration in bars]
    points = [(x, place) for pair in ends for x in pair]
    path = Path(points, [Path.MOVETO, Path.LINETO] * len(ends))
    path.should_simplify = False  # it would join bars
    axes.add_patch(
        PathPatch(path, fill=False, edgecolor=colour, linewidth=thick, capstyle="butt", alpha=alpha, zorder=2)
    )
