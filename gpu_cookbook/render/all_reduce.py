"""What an all-reduce takes with several engines, as benchmarks/all_reduce.py measured it: a chart and a table."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gpu_cookbook import units
from gpu_cookbook.render.charts import Chart, chart
from gpu_cookbook.render.format import UNKNOWN
from gpu_cookbook.render.launches import origins
from gpu_cookbook.render.steps import legend, table_of, time_of
from gpu_cookbook.render.svg import COLOURS
from gpu_cookbook.render.tables import Entry, Table
from gpu_cookbook.store.transfers import ALL_REDUCE, Kept, Step
from gpu_cookbook.units import digits, memory, seconds

if TYPE_CHECKING:  # listing recipes must not import matplotlib
    from matplotlib.figure import Figure

REDUCED = (2**10, 2**20, 2**28)  # elements of float32 on each GPU: 4 KiB, 4 MiB and 1 GiB
COPIES = "copies"
WAYS = {  # the scripts of docs/all-reduce, in the order of the table
    COPIES: "copies from GPU to GPU",
    "torch": "torch.distributed, NCCL",
    "cupy": "CuPy, NCCL",
    "jax": "JAX",
    "ray": "Ray's actors, NCCL",
    "cupy_kernel": "CuPy, a kernel of our own",
    "ray_objects": "Ray's objects",
    "multiprocessing": "multiprocessing, shared memory",
    "dask": "Dask's futures",
}


def key(name: str, gpus: int, count: int | None = None) -> str:
    """The name of a step; without elements, of what says why there is none."""
    return f"all_reduce_{name}_{gpus}" + (f"_{count}" if count else "")


def judged(steps: Mapping[str, Step], gpus: int) -> dict[str, Step]:
    """The same, but that a time in which the connection cannot have moved so much has become a reason: it would be of a
    call that returned too early. Even if the NVSwitch does the adding, each GPU sends S (N - 1) / N of S bytes."""
    found = dict(steps)
    if limit := bandwidth(steps, COPIES, gpus):
        for name in {*WAYS} - {COPIES}:
            for count in REDUCED:
                step = steps.get(key(name, gpus, count))
                if step and step.time and step.time.median < 4 * count * (gpus - 1) / gpus / limit:
                    words = f"{seconds(step.time.median)} is less than the copies' bandwidth allows"
                    found[step.name] = Step(step.name, reason=words)
    return found


def bandwidth(steps: Mapping[str, Step], name: str, gpus: int) -> float | None:
    """Bytes per second that each GPU sends in the largest all-reduce, counted as NCCL's tests count its bus bandwidth:
    the sum of arrays of S bytes on N GPUs needs 2 S (N - 1) / N, however it is done. A copy needs S."""
    step = steps.get(key(name, gpus, REDUCED[-1]))
    if step is None or not step.time:
        return None
    share = 1 if name == COPIES else 2 * (gpus - 1) / gpus
    return 4 * REDUCED[-1] * share / step.time.median


def table(steps: Mapping[str, Step], gpus: int, title: str) -> Table:
    """The times of each way, its bandwidth with the largest arrays, and that as a share of the copies'."""
    rows, records = [], []
    steps = judged(steps, gpus)
    limit = bandwidth(steps, COPIES, gpus)
    for name, label in WAYS.items():
        mine = {count: step for count in REDUCED if (step := steps.get(key(name, gpus, count)))}
        reasons = [f"{memory(4 * count)}: {step.reason}" for count, step in mine.items() if step.reason]
        if whole := steps.get(key(name, gpus)):
            reasons.insert(0, whole.reason)
        if not mine and not reasons:
            continue
        rate = bandwidth(steps, name, gpus)
        share = rate / limit if rate and limit else None
        words = [time_of(mine.get(count)) for count in REDUCED]
        words += [units.rate(rate) if rate else UNKNOWN, digits(share) if share else UNKNOWN]
        rows.append(tuple(map(Entry, (label, *words, "; ".join(reasons)))))
        records += [
            {"way": name, "gpus": gpus, "elements": count, "time_s": step.time.median}
            for count, step in mine.items()
            if step.time
        ]
    head = ["way", *(memory(4 * count) for count in REDUCED), "bandwidth", "of the copies", "not measured"]
    notes = legend(entry.text for row in rows for entry in row[1 : 1 + len(REDUCED)])
    return table_of(title, head, "lrrrrrl", rows, notes, records)


def all_reduces(ways: Mapping[str, Kept]) -> list[Chart]:
    """A chart of the bandwidths, with the table, for each number of GPUs whose copies were measured, the largest first.
    ``ways``: what transfers.by_way found of one machine."""
    steps = {name: step for run in ways.values() for name, step in run.steps.items()}
    numbers = {int(found["gpus"]) for name in ways if (found := ALL_REDUCE.fullmatch(name))}
    return [_chart(ways, steps, gpus) for gpus in sorted(numbers, reverse=True) if bandwidth(steps, COPIES, gpus)]


def _chart(ways: Mapping[str, Kept], steps: Mapping[str, Step], gpus: int) -> Chart:
    steps = judged(steps, gpus)
    rates = {name: rate for name in WAYS if (rate := bandwidth(steps, name, gpus))}
    names = sorted(rates, key=lambda name: -rates[name])
    limit = rates[COPIES]

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for place, name in enumerate(names):
            axes.barh(place, rates[name], 0.72, linewidth=0, color=COLOURS[int(name == COPIES)])
            axes.annotate(_words_of(name), (rates[name], place), (4, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(names)), [WAYS[name] for name in names])
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xticks([])
        axes.grid(False)
        axes.tick_params(axis="y", length=0)
        axes.spines["bottom"].set_visible(False)

    def _words_of(name: str) -> str:
        return units.rate(rates[name]) + f", {digits(rates[name] / limit)} of the copies" * (name != COPIES)

    device = next(iter(ways.values())).device
    title = f"An all-reduce of {memory(4 * REDUCED[-1])} on each of {gpus} GPUs: {device}"
    shown = table(steps, gpus, title)
    shown = replace(
        shown, notes=[*shown.notes, *origins(ways, {key(name, gpus): label for name, label in WAYS.items()})]
    )
    text = "Bandwidth of each way: " + "; ".join(f"{WAYS[name]} {_words_of(name)}" for name in names)
    return chart(draw, 15.5 * len(names) + 14, text, shown)
