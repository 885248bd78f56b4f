"""Three choices on the first page (what you have, where the data is, how large it is), and for each of them a table of
what to take: the answers of ``gpu-cookbook choose``, made when the site is built."""

import html
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from gpu_cookbook import catalogue, choosing
from gpu_cookbook.choosing import Advice, Data, Estimate, Knowledge, Question
from gpu_cookbook.render import format
from gpu_cookbook.render.advice import time_of
from gpu_cookbook.render.tables import Entry, Row, Table, fewer_samples
from gpu_cookbook.results import Metric, Result, Size, of_one_environment
from gpu_cookbook.units import digits, joined

DATA = {Data.HOST: "on the host", Data.DEVICE: "on the GPU"}
LARGE = "large"
MOST = 2  # of those that tie, so that a row stays on its line
# Of a workload's sizes, from the smallest to the largest.
SIZES: dict[str, Callable[[Sequence[Size]], Size]] = {
    "small": lambda sizes: sizes[0],
    "medium": lambda sizes: sizes[len(sizes) // 2],
    LARGE: lambda sizes: sizes[-1],
}
HEAD = ("workload", "take", "time", "size", "× as fast as NumPy", "tuned, if faster", "its time")


def choices(machines: Sequence[Sequence[Result]], as_html: Callable[[Table], str]) -> str:
    """The form, and a section for each of its states, of which site.js shows one. ``machines``: the results that the
    tables show of each."""
    names = {_machine(mine): mine for mine in machines}
    parts = ['<form class="choices" aria-label="What you have">\n', _select("have", "I have", names)]
    parts += [_select("data", "my data is", DATA.values()), _select("size", "and it is", SIZES, LARGE), "</form>\n"]
    for number, (name, mine) in enumerate(names.items()):
        known = Knowledge(mine)
        ways = DATA if any(each.on_gpu for each in mine) else {Data.HOST: " or ".join(DATA.values())}
        for (data, place), (size, of) in itertools.product(ways.items(), SIZES.items()):
            rows, title = [*_rows(known, data, of)], f"{name}, data {DATA[data]}, {size}"
            table = Table(title, HEAD, "llrrrlr", rows, _notes(mine, rows), [])
            first = number == 0 and data == Data.HOST and size == LARGE
            state = {"have": name, "data": place, "size": size}
            marks = "".join(f' data-{key}="{html.escape(value)}"' for key, value in state.items())
            parts.append(f'<section class="choice"{marks}{"" if first else " hidden"}>\n{as_html(table)}</section>\n')
    return "".join(parts)


def _machine(mine: Sequence[Result]) -> str:
    gpus = [each.place for each in mine if each.on_gpu]
    processor = next((each.device for each in mine if each.device and not each.on_gpu), "")
    return f"{gpus[0] if gpus else f'no GPU: {processor}'} ({mine[0].stored.machine})"


def _notes(mine: Sequence[Result], rows: Sequence[Row]) -> list[Entry]:
    page = mine[0].stored.machine
    modules = {name: catalogue.workload_module(name) for name in catalogue.workloads()}
    given = joined([f"{name} is measured {each.GIVEN}" for name, each in modules.items() if hasattr(each, "GIVEN")])
    recipes = [entry.recipe for row in rows for entry in row if entry.recipe]
    return [
        Entry(
            "In brackets: what ties with it. A time is that of one call, with the data and its result where you said;"
            f" but {given}. ≈ is an estimate from other sizes, ~ is noisy, and † means that the code has changed since."
            " – means not known, or that no tuned recipe is faster. A recipe's page says in which precision it"
            " computes. When and at which commit it was measured is on the machine's page",
            "note",
            ((page, f"machines/{page}.html"),),
        ),
        *[Entry(text, "note") for text in fewer_samples(recipes)],
    ]


def _select(name: str, label: str, options: Iterable[str], chosen: str = "") -> str:
    choices = "".join(
        f"<option{' selected' if each == chosen else ''}>{html.escape(each)}</option>" for each in options
    )
    return f'<label>{label} <select name="{name}" autocomplete="off">{choices}</select></label>\n'


def _rows(known: Knowledge, data: Data, of: Callable[[Sequence[Size]], Size]) -> Iterator[Row]:
    for workload in catalogue.workloads():
        question = Question(workload, of(catalogue.workload_module(workload).SIZES), data)
        try:
            yield _row(choosing.advise(question, known, here=False), known)
        except choosing.NoAdvice:
            none = Entry(format.UNKNOWN)
            yield Entry(workload), Entry("not measured there", "note"), none, Entry(question.label), none, none, none


def _row(found: Advice, known: Knowledge) -> Row:
    question = found.question
    pick = found.plain or found.shown[0]
    first, fast = pick.first, found.tuned.first if found.tuned and found.tuned is not pick else None
    ties = [(each.technique, _recipe(question, each)) for each in pick.ties[:MOST]]
    numpy = next(iter(of_one_environment(each for each in known.results if _is_numpy(each, question))), None)
    return (
        Entry(question.workload),
        Entry(first.technique, "best", tuple(ties), _recipe(question, first)),
        Entry(time_of(first)),
        Entry(question.label),
        Entry(digits(numpy.order(Metric.RESIDENT) / first.seconds) if numpy else format.UNKNOWN),
        Entry(fast.technique, recipe=_recipe(question, fast)) if fast else Entry(format.UNKNOWN),
        Entry(time_of(fast) if fast else format.UNKNOWN),
    )


def _recipe(question: Question, estimate: Estimate) -> tuple[str, str]:
    return question.workload, estimate.technique


def _is_numpy(result: Result, question: Question) -> bool:
    there = (result.workload, result.technique, result.size) == (question.workload, "numpy", question.size)
    return there and bool(result.value(Metric.RESIDENT)) and not result.doubt(Metric.RESIDENT)
