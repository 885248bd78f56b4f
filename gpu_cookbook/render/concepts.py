"""What benchmarks/concepts.py measured: a table of all, and how a number is written."""

from collections.abc import Mapping

from gpu_cookbook.render.format import NOISE, STALE, UNKNOWN, digits, seconds
from gpu_cookbook.render.tables import Entry, Table
from gpu_cookbook.results import NOISY
from gpu_cookbook.store.transfers import Step

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
            time = STALE * step.stale + NOISE * step.time.noisy + time_of(step)
        if each := rate(step):
            speed = f"{digits(each / 1e9)} GB/s"
        rows.append(tuple(map(Entry, (name, CASES.get(name, ""), time, speed, step.reason))))
    head, align = ["step", "what", "time", "rate", "not measured"], "llrrl"
    if not any(step.reason for step in steps.values()):
        head, align, rows = head[:-1], align[:-1], [row[:-1] for row in rows]
    marks = {
        STALE: "The kernel has changed since it was measured.",
        NOISE: f"The middle half of the samples spreads over more than {100 * NOISY:.0f} % of the median.",
    }
    there = {mark for mark in marks for row in rows if mark in row[2].text}
    notes = [Entry(f"{mark} {note}", "note") for mark, note in marks.items() if mark in there]
    return Table(title, head, align, rows, notes, [])
