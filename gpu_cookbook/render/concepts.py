"""What benchmarks/concepts.py measured: a table of all, a drawing of the memories, and how a number is written."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape

from gpu_cookbook import units
from gpu_cookbook.render.format import UNKNOWN
from gpu_cookbook.render.steps import conditions, legend, marks, table_of
from gpu_cookbook.render.tables import Entry, Table
from gpu_cookbook.store.transfers import Kept, Step
from gpu_cookbook.units import digits, seconds

CASES = {
    "coalescing_rows": "neighbouring threads read numbers that are a row apart",
    "coalescing_columns": "neighbouring threads read neighbours",
    "divergence_mixed": "each warp takes four branches",
    "divergence_sorted": "each warp takes one branch",
    **{f"occupancy_{n}": f"blocks on a multiprocessor: {n}" for n in (1, 2, 4, 8)},
    "memories_shared_latency": "a load from shared memory",
    "memories_l1_latency": "a load from L1",
    "memories_l2_latency": "a load from L2",
    "memories_device_latency": "a load from device memory",
    "memories_shared_read": "reading shared memory",
    "memories_l2_read": "reading L2",
    "memories_device_read": "reading device memory",
}
LATENCY = "_latency"  # how the name of a step ends that is a single load


def time_of(step: Step) -> str:
    """A load is written in nanoseconds, whatever it takes."""
    assert step.time
    median = step.time.median
    return f"{digits(1e9 * median)} ns" if step.name.endswith(LATENCY) else seconds(median)


def rate(step: Step) -> float | None:
    """Bytes per second; None where none are counted."""
    return step.moved / step.time.median if step.time and step.moved else None


def table(steps: Mapping[str, Step], title: str) -> Table:
    """All that was measured. What failed before its first case is named by itself."""
    rows = []
    for name, step in steps.items():
        time, speed = UNKNOWN, UNKNOWN
        if step.time:
            time = marks(step) + time_of(step)
        if each := rate(step):
            speed = units.rate(each)
        rows.append(tuple(map(Entry, (name, CASES.get(name, ""), time, speed, step.reason))))
    notes = legend((row[2].text for row in rows), "kernel")
    return table_of(title, ["step", "what", "time", "rate", "not measured"], "llrrl", rows, notes)


def stored(run: Kept) -> Table:
    """The table of a stored run, and how it came about."""
    shown = table(run.steps, f"Concepts: {run.device}")
    return replace(shown, notes=[*shown.notes, Entry(conditions(run), "note")])


def ladder(rungs: Mapping[str, Sequence[tuple[str, str] | None]]) -> str:
    """A drawing of memories, the nearest one first: the latency and the bandwidth of each, which are a text and where
    it was measured."""
    about = "The memories of a GPU, the nearest first: each is larger and slower than the one above it"
    lines = [
        f'<svg viewBox="0 0 600 {40 + 36 * len(rungs)}" role="img" aria-label="{about}" style="max-width: 38rem;'
        ' width: 100%; font-family: inherit" fill="currentColor" font-size="14" text-anchor="middle">',
        '<g font-weight="bold"><text x="410" y="20">latency</text><text x="530" y="20">bandwidth</text></g>',
    ]
    for number, (name, figures) in enumerate(rungs.items()):
        wide, top = 150 + 36 * number, 32 + 36 * number
        lines.append(
            f'<rect x="{160 - wide / 2:g}" y="{top}" width="{wide}" height="28" rx="4" fill="none"'
            f' stroke="currentColor" stroke-width="1.5"/><text x="160" y="{top + 19}">{escape(name)}</text>'
        )
        for place, figure in zip((410, 530), figures, strict=True):
            text, origin = figure or (UNKNOWN, "")
            title = f"<title>{escape(origin)}</title>" if origin else ""
            lines.append(f'<text x="{place}" y="{top + 19}">{title}{escape(text)}</text>')
    return "\n".join([*lines, "</svg>"])
