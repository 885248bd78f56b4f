"""What ``gpu-cookbook choose`` found, for a terminal."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from gpu_cookbook import catalogue, machine
from gpu_cookbook.choosing import LANES, Advice, Data, Estimate, Knowledge, Pick, of_this_processor, to_measure
from gpu_cookbook.render import format, text
from gpu_cookbook.render.tables import LEGEND, Entry, Row, Table, fewer_samples
from gpu_cookbook.results import Metric, Rank
from gpu_cookbook.units import digits, joined, memory, unit_of
from gpu_cookbook.words import plain

MOST = 3  # of those that tie: rows, and names in a sentence
ESTIMATED = "≈"
EXTRAPOLATED = "an extrapolation: it tells which are fast, not how fast they are."


def advice(found: Advice, known: Knowledge, here: bool, width: int) -> RenderableType:
    """``known``: from which the advice comes. ``here``: it is for this machine, not for a stored one. ``width``: in
    characters. A command to copy is one line even where that is wider: print it with ``crop=False``."""
    parts: list[RenderableType] = [text.terminal([_table(found)], width)]
    parts += [Text(_headline(found, known), "bold")]
    if reasons := " ".join(_reasons(found)):
        parts.append(Text(reasons))
    parts.append(Text(""))
    for each in found.shown:
        parts += _copied(each.first, here)
        if found.question.data == Data.PINNED and found.question.has_arrays:
            parts.append(Text(_page_locked(found, each.first)))
    notes = [*_cautions(found, known, here), *_sources(found, known, here)]
    return Group(*parts, Text(""), *(Text(plain(note), "dim") for note in notes))


def _headline(found: Advice, known: Knowledge) -> str:
    first = found.shown[0].first
    if not found.alone:
        return f"Take {_named(first)}: {time_of(first)}."
    origin = first.basis[0].origin
    where = f"on {origin.machine}" if origin else "here"
    if {each.technique for each in known.of_size(found.question)} == {first.technique}:
        told = f"only {_named(first)}, was measured {where} at this size, so that nothing is known of others"
    else:
        told = f"no time but that of {_named(first)}, is known {where}"
    if found.question.on_device:
        told = f"of what keeps its data on the device, {told}"
    return f"{told[0].upper()}{told[1:]}. It takes {time_of(first)}."


def time_of(estimate: Estimate) -> str:
    """As people write it; an estimate roughly, and marked."""
    if estimate.measured:
        return format.stale(estimate) + format.timing(estimate.result, estimate.metric)
    rough = float(f"{estimate.seconds:.1e}")
    unit, scale = unit_of(rough)
    return f"{ESTIMATED}{format.stale(estimate)}{_rough(rough / scale)} {unit}"


def _times(estimate: Estimate, first: Estimate) -> str:
    """How many times as long as the first."""
    factor = estimate.seconds / first.seconds
    return digits(factor) if estimate.measured and first.measured else _rough(factor)


def _rough(value: float) -> str:
    """Two significant digits: 560, 5.6, 0.056."""
    rounded = float(f"{value:.1e}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:g}"


# ---- The table.


def _table(found: Advice) -> Table:
    rows: list[Row] = []
    for pick in found.shown:
        rows.append((Entry(pick.first.basis[0].lane, "group"), *[Entry()] * 3))
        for each in _shown(found, pick):
            leads = not found.alone and (each is pick.first or each in pick.ties)
            rank = (Rank.TIE if pick.ties else Rank.BEST) if leads else ""
            rows.append(
                (
                    Entry(each.technique, recipe=(found.question.workload, each.technique)),
                    Entry(_place(each)),
                    Entry(format.RANKS.get(rank, "") + time_of(each), rank),
                    Entry(_times(each, found.shown[0].first)),
                )
            )
    head = ("recipe", "on", "time", "× as long")
    return Table(str(found.question), head, "llrr", rows, [], [], found.question.workload)


def _shown(found: Advice, pick: Pick) -> list[Estimate]:
    """The first of a lane, some that tie with it and the runner-up; in the idiomatic lane NumPy's and the first on the
    other kind of device, too."""
    others = (found.numpy, found.elsewhere.get("idiomatic")) if pick is found.plain else ()
    every = [each for each in (pick.first, *pick.ties[:MOST], pick.runner_up, *others) if each]
    return sorted({each.technique: each for each in every}.values(), key=lambda each: each.seconds)


# ---- The sentences.


def _reasons(found: Advice) -> Iterator[str]:
    pick = found.shown[0]
    first = pick.first
    if pick.ties:
        names = _names([each.technique for each in pick.ties])
        yield f"{names} tie{'s' * (len(pick.ties) == 1)} with it: another run may have another order."
        if any(each.technique == "numpy" for each in pick.ties):
            yield "With NumPy, there is nothing to change."
        own = machine.environment()
        here = [each.technique for each in pick.ties if each.recipe.environment == own]
        if first.recipe.environment != own and here:
            yield f"{first.technique} belongs to the environment {first.recipe.environment}, and {here[0]} to this one."
    told: dict[str, str] = {}
    plain, tuned = found.elsewhere.get("idiomatic"), _tuned_elsewhere(found)
    for name, other in (
        (f"the {'next' if pick.ties else 'runner-up'}, {{}},", pick.runner_up),
        ("NumPy", found.numpy),
        (f"the first on the {'CPU' if first.on_gpu else 'GPU'}, {{}},", plain),
        (f"{{}}, which is tuned for the {'CPU' if first.on_gpu else 'GPU'},", tuned),
    ):
        if other and other is not first and other not in pick.ties:
            verb, end = ("", "") if told else (" takes", " as long")
            words = f"{name.format(other.technique)}{verb} {_times(other, first)} times{end}"
            told.setdefault(other.technique, words)
    if told:
        sentence = "; ".join(told.values())
        yield f"{sentence[0].upper()}{sentence[1:]}."
    rates = first.result.rates
    if first.measured and first.metric == Metric.RESIDENT and rates and rates.share and first.result.memory_bound:
        yield (
            f"{first.technique} moves {rates.share:.0f} % of the bytes that a copy on the same device moves in that"
            " time."
        )
    yield from _ways(first, plain)
    if found.tuned and found.plain:
        fast = found.tuned.first
        times = _times(first, fast)
        gain = "about as long" if times in ("1", "1.00") else f"it is {times} times as fast"
        yield f"Tuned for speed, {fast.technique} takes {time_of(fast)}: {gain}."
    elif found.plain and "tuned" in found.picks:
        yield "No recipe that is tuned for speed takes less."


def _tuned_elsewhere(found: Advice) -> Estimate | None:
    """The first tuned one on the other kind of device, unless a plain one is as fast there or the table has it."""
    plain, tuned = map(found.elsewhere.get, LANES)
    shown = {each.technique for pick in found.shown for each in _shown(found, pick)}
    if not tuned or tuned.technique in shown or plain and plain.seconds <= tuned.seconds:
        return None
    return tuned


def _ways(first: Estimate, other: Estimate | None) -> Iterator[str]:
    """Which part of a time from host to host is the way to the GPU and back."""
    for each in (first, other):
        if each and each.way is not None:
            bounds = {100: "more than 99 %", 0: "less than 1 %"}
            share = bounds.get(round(100 * each.way), f"{100 * each.way:.0f} %")
            yield f"Of {each.technique}'s time, {share} is the way to the GPU and back."


def _cautions(found: Advice, known: Knowledge, here: bool) -> Iterator[str]:
    workload = catalogue.workload_module(found.question.workload)
    size: Any = found.question.size
    every = [each for pick in found.shown for each in _shown(found, pick)]
    first = {not pick.ties for pick in found.shown if not found.alone}
    best, tie = LEGEND[format.RANKS[Rank.BEST]], f"{format.RANKS[Rank.TIE]} is tied with the best of its lane."
    if first:
        yield " ".join([best] * (True in first) + [tie] * (False in first))
    named = [*every, *filter(None, [_tuned_elsewhere(found)])]
    yield from fewer_samples((found.question.workload, each.technique) for each in named)
    bounds: dict[str, list[str]] = {}  # {what is taken for granted: techniques}
    for each in every:
        if each.at_most:
            less, more = each.basis
            part, known_at = ("all", less) if size < less.size else ("nothing", more)
            bounds.setdefault(f"{part} of what {workload.label(known_at.size)} take", []).append(each.technique)
    for part, names in bounds.items():
        yield f"The time of {_names(names)} is the most that it takes: as if {part} were a fixed cost."
    estimated = [each for each in every if not each.measured and not each.at_most]
    bases = {tuple(one.size for one in each.basis if isinstance(one.size, int)) for each in estimated}
    if bases:
        two = (
            " and ".join(map(workload.label, min(bases))) if len(bases) == 1 else "each recipe's own two nearest sizes"
        )
        yield f"{ESTIMATED} is estimated from {two}: a fixed cost, and a part in proportion to the work."
        if any(each.apart for each in estimated):
            yield (
                "On the GPU, the way there and back is estimated apart, from what the technique takes for other amounts"
                " of bytes, in any workload and by code that may have changed since."
            )
        inside = [less < size < more for less, more in bases]
        if not all(inside):
            yield f"{'Some of that' if any(inside) else 'That'} is {EXTRAPOLATED}"
    measured = [found.numpy, *found.elsewhere.values()]
    if all(pick.first.on_gpu for pick in found.shown) and not any(measured) and not found.question.on_device:
        yield "No recipe on the CPU was measured beside it: this does not tell whether a GPU pays."
    rooms = {} if found.question.on_device else {"machine": known.room and known.room.host}
    if found.question.on_device or any(each.on_gpu for each in every):
        rooms["machine's GPU"] = known.room and known.room.gpu
    unknown = [name for name, room in rooms.items() if room is None]
    if not here and unknown and size > max(known.sizes(found.question)):
        yield (
            f"This takes {memory(workload.footprint(size))}. Whether that fits into the memory of that"
            f" {' and of the '.join(unknown)} is not known."
        )
    times = "".join(map(time_of, every))
    for sign in (format.NOISE, format.STALE):
        if sign in times:
            yield re.split(r"\. (?=A lane|First)", LEGEND[sign])[0].rstrip(".") + "."
    if found.doubtful:
        yield f"Not counted, as their times are doubtful: {_names([each.technique for each in found.doubtful])}."
    if found.hidden:
        hidden = _names([each.technique for each in found.hidden])
        yield f"Not counted, as their times at other sizes do not tell what they take at this one: {hidden}."
    if found.rounding:
        told = [f"{each.technique} ({each.basis[0].mode}, {time_of(each)})" for each in found.rounding]
        yield f"Not counted, as they round the factors to fewer digits: {', '.join(told)}."


def _sources(found: Advice, known: Knowledge, here: bool) -> Iterator[str]:
    """Where the times come from, and what is not as it is here."""
    mine = [each for each in known.results if each.ok and each.workload == found.question.workload and each.device]
    devices = [list(dict.fromkeys(str(each.device) for each in mine if each.on_gpu == gpu)) for gpu in (True, False)]
    names = ", ".join([*devices[0], *(name for name in devices[1] if name.endswith(" cores"))])
    if mine[0].origin is None:
        yield f"Measured just now: {names}."
        return
    dates = sorted({each.stored.date.removeprefix("by ") for each in mine})
    yield f"Stored results of {mine[0].stored.machine}, {' to '.join(dict.fromkeys((dates[0], dates[-1])))}: {names}."
    if not here:
        return
    alike = of_this_processor(mine)
    if not alike:
        yield f"The processor of this machine is another one: {machine.processor()}."
    if not alike or not all(each.measured for pick in found.shown for each in _shown(found, pick)):
        yield to_measure(found.question, [pick.first.recipe for pick in found.shown], here)


def _copied(estimate: Estimate, here: bool) -> Iterator[RenderableType]:
    """The commands that print the recipe and install what it needs."""
    recipe = estimate.recipe
    install = machine.install_command(recipe) if here else recipe.install
    yield Text(f"To copy {recipe.technique} ({recipe.lane}):")
    for command in (f"gpu-cookbook show {recipe.workload} {recipe.technique}", install):
        yield Text.assemble("    ", (plain(command), "cyan"), no_wrap=True, overflow="ignore")
    if recipe.shapes:
        yield Text(f"It takes only: {recipe.shapes}.")
    obstacle = machine.obstacle(recipe) if here else None
    if obstacle and not machine.missing(recipe):
        yield Text(plain(f"It does not run here yet: {obstacle}."))
    elif obstacle:
        yield Text("It is not installed here yet.")


def _page_locked(found: Advice, estimate: Estimate) -> str:
    """Where page-locked arrays for a recipe come from."""
    recipe = estimate.recipe
    if estimate.on_gpu:
        takes_out = any("out" in recipe.functions.get(name, ()) for name in ("round_trip", "download"))
        return f"Its pinned(shape) makes page-locked arrays: one for each input{', and one for out' * takes_out}."
    others = [each for each in found.elsewhere.values() if each.on_gpu]
    which = f"{others[0].technique} makes them by its pinned(shape)" if others else "no time on a GPU is known"
    return f"To {recipe.technique}, on the CPU, page-locked arrays are like any others; {which}."


def _named(estimate: Estimate) -> str:
    """'torch_cpu, PyTorch on the CPU'."""
    return f"{estimate.technique}, {estimate.recipe.framework} on the {_place(estimate)}"


def _place(estimate: Estimate) -> str:
    return "GPU" if estimate.on_gpu else "CPU"


def _names(techniques: Sequence[str]) -> str:
    more = len(techniques) - MOST
    return joined([*techniques[:MOST], *[f"{more} more"] * (more > 0)])
