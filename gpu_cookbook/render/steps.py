"""What the tables of transfers, launches, all-reduces and memories have in common: how the time of a Step is written,
and what is said below."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpu_cookbook.render.format import NOISE, STALE, UNKNOWN
from gpu_cookbook.render.tables import Entry, Row, Table
from gpu_cookbook.results import NOISY
from gpu_cookbook.store.transfers import Kept, Step
from gpu_cookbook.units import seconds

SPREAD = f"{NOISE} The middle half of the samples spreads over more than {100 * NOISY:.0f} % of the median."


def marks(step: Step) -> str:
    return STALE * step.stale + NOISE * (step.time is not None and step.time.noisy)


def time_of(step: Step | None) -> str:
    return marks(step) + seconds(step.time.median) if step and step.time else UNKNOWN


def legend(texts: Iterable[str], measured: str = "script") -> list[Entry]:
    """What the marks in these texts mean. ``measured``: what has changed if a time is stale."""
    every = "".join(texts)
    notes = {STALE: f"{STALE} The {measured} has changed since it was measured.", NOISE: SPREAD}
    return [Entry(note, "note") for mark, note in notes.items() if mark in every]


def conditions(run: Kept) -> str:
    """Where, when and with what it was measured."""
    return "; ".join([str(run.origin), *[f"driver {run.driver}"] * bool(run.driver), run.processor, run.versions])


def table_of(
    title: str,
    head: Sequence[str],
    align: str,
    rows: Sequence[Row],
    notes: Sequence[Entry],
    records: Sequence[Mapping[str, Any]] = (),
) -> Table:
    """One whose last column says why something was not measured: without it, if all was."""
    end = None if any(row[-1].text for row in rows) else -1
    return Table(title, head[:end], align[:end], [row[:end] for row in rows], notes, records)
