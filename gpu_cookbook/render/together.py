"""What one library hands to another, as benchmarks/together.py found it: who to whom, and by which way."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial

from gpu_cookbook.render.format import STALE, UNKNOWN
from gpu_cookbook.render.tables import Entry, Table
from gpu_cookbook.store.together import POOL, Merged
from gpu_cookbook.together import DLPACK, HOST, INTERFACE, LIBRARIES, NOBODY, WAYS, Handover

NAMES = {DLPACK: "DLPack", INTERFACE: "CAI", HOST: "copy"}
TITLES = {DLPACK: "By DLPack: who waits", INTERFACE: "By the CUDA array interface: who waits"}
SHARED, COPIED, REFUSED, WRONG = "shared", "copied", "refused", "wrong"
Pairs = Mapping[tuple[str, str], Sequence[Handover]]


def works(each: Handover) -> bool:
    return not each.reason and each.right and each.seen is not False


def shortest(found: Sequence[Handover]) -> Entry:
    """The first way on which nothing is copied, before any on which nobody waits; otherwise the first that is right."""

    def order(each: Handover) -> tuple[bool, bool, int]:
        return not each.shared, each.waits == NOBODY, WAYS.index(each.way)

    good = sorted(filter(works, found), key=order)
    if not good:
        return Entry(WRONG if found else UNKNOWN, "bad" if found else "")
    first = good[0]
    name = NAMES[first.way] if first.shared else NAMES[HOST]
    return Entry(f"{name} !", "bad") if first.waits == NOBODY else Entry(name)


def outcome(way: str, found: Sequence[Handover]) -> Entry:
    """Who waits on this way, or why nothing is shared."""
    each = next((each for each in found if each.way == way), None)
    if each is None:
        return Entry()
    if each.reason:
        return Entry(REFUSED)
    if not works(each):
        return Entry(WRONG, "bad")
    if not each.shared:
        return Entry(COPIED)
    return Entry(each.waits or SHARED, "bad" if each.waits == NOBODY else "")


def tables(pairs: Pairs, stale: frozenset[tuple[str, str]] = frozenset()) -> list[Table]:
    """The shortest way of each pair, and then, for each of the two ways on which memory is shared, who waits."""
    found = [_matrix("From each library to each other one", pairs, stale, shortest, pairs)]
    for way in TITLES:
        those = {pair: each for pair, each in pairs.items() if any(one.way == way for one in each)}
        if those:
            found.append(_matrix(TITLES[way], those, stale, partial(outcome, way), pairs))
    return found


def _matrix(
    title: str,
    shown: Pairs,
    stale: frozenset[tuple[str, str]],
    entry: Callable[[Sequence[Handover]], Entry],
    pairs: Pairs,
) -> Table:
    producers = [name for name in LIBRARIES if any(name == producer for producer, _ in shown)]
    consumers = [name for name in LIBRARIES if any(name == consumer for _, consumer in shown)]
    rows = []
    for producer in producers:
        cells = [Entry(LIBRARIES[producer])]
        for consumer in consumers:
            each = entry(pairs.get((producer, consumer), ()))
            cells.append(Entry(STALE * ((producer, consumer) in stale) + each.text, each.mark))
        rows.append(tuple(cells))
    records = [asdict(each) for those in shown.values() for each in those]
    return Table(
        title, ["from", *(LIBRARIES[name] for name in consumers)], "l" + "r" * len(consumers), rows, [], records
    )


def faults(pairs: Pairs) -> list[Table]:
    """What was refused or went wrong, with the message, one row for each message."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for (producer, consumer), those in pairs.items():
        for each in those:
            if not works(each):
                why = each.reason or (
                    "what one writes, the other does not see" if each.right else "other numbers arrive"
                )
                key = (LIBRARIES.get(consumer, consumer), NAMES[each.way], why)
                found.setdefault(key, []).append(LIBRARIES.get(producer, producer))
    rows = [
        tuple(map(Entry, (", ".join(producers), consumer, way, why)))
        for (consumer, way, why), producers in found.items()
    ]
    return [Table("Refused, or wrong", ["from", "to", "way", "why"], "llll", rows, [], [])] if rows else []


def pool(found: Merged) -> Table | None:
    """Which libraries allocate from one pool; None if that was not run."""
    rows = []
    for name, (run, why) in found.pool.items():
        words = STALE * (POOL in run.changed) + (why or "yes")
        rows.append((Entry(LIBRARIES.get(name, name)), Entry(words, "bad" if why else "")))
    return Table("Allocates from RMM's pool", ["library", "from the pool"], "ll", rows, [], []) if rows else None


def stored(found: Merged) -> list[Table]:
    """All tables of one machine; the last one has where, when and with what it was run."""
    pairs = {pair: those for pair, (_, those) in found.handovers.items()}
    stale = frozenset(
        pair for pair, (run, _) in found.handovers.items() if {f"with_{name}" for name in pair} & run.changed
    )
    device = found.runs[-1].device
    first, *others = [*tables(pairs, stale), *faults(pairs)]
    absent = [label for name, label in LIBRARIES.items() if not any(name in pair for pair in pairs)]
    notes = [Entry(f"Not run on it: {', '.join(absent)}.", "note")] * bool(absent)
    notes += [Entry(f"{STALE} A script has changed since.", "note")] * bool(stale)
    titled = Table(
        f"{first.title}: {device}", first.head, first.align, first.rows, [*notes, *origins(found)], first.records
    )
    return [titled, *others]


def origins(found: Merged) -> list[Entry]:
    """Where, when and with which versions each of the runs was made."""
    words = (
        "; ".join([str(run.origin), *[f"driver {run.driver}"] * bool(run.driver), run.versions]) for run in found.runs
    )
    return [Entry(each, "note") for each in dict.fromkeys(words)]
