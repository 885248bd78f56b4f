"""The tables that compare: what was measured, what frameworks and engines can do, what has changed; each as text.

Pure functions: cells in, Tables out, a Table as text. A Table has the words that people read and, beside them, the same
as records for programs, with every digit and the units in the names: CSV and JSON are the records.
"""

import html
import math
import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from rich import box
from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Group
from rich.style import Style
from rich.text import Text

from gpu_cookbook import catalogue
from gpu_cookbook.render import report
from gpu_cookbook.run import measure

TIMED = ("resident", "device", "transfer")
FIGURES = {  # figure: its key in a cell, its name in a record, how it is written, what it is
    "resident": ("resident_s", "value_s", report.seconds, "data on the device, one synchronised call"),
    "device": ("device_s", "value_s", report.seconds, "the device's own clock, its queue kept full"),
    "transfer": ("transfer_s", "value_s", report.seconds, "host arrays in, host result out"),
    "first result": ("first_result_s", "value_s", report.seconds, "a fresh process with empty caches"),
    "memory": ("peak_device_memory_bytes", "value_bytes", lambda v: f"{report.digits(v / 2**30)} GiB", "peak on GPUs"),
    "bandwidth": ("bandwidth_gb_per_s", "value_gb_per_s", report.digits, "GB/s that must move (share of a copy's)"),
}
CI99, QUARTILES = ("ci99_a_s", "ci99_b_s"), ("q1_s", "q3_s")  # of the median, which is the narrower; of the samples
WRONG = ("failed", "refused")
RUN = ("machine", "environment", "commit")
FACTS = (*RUN, "date", "device", "driver", "cuda", "clock")
COPYING = "device_copy_bandwidth_gb_per_s"
CELL = ("workload", "technique", "framework", "lane", "math", "size", "status", "reason", "stale", "versions", COPYING)
MARKS = (
    "* best of its lane. = tied with the best: the middle halves of their samples overlap. First results and "
    "peaks of memory are single measurements, without a spread. ~ noisy: half of "
    f"the samples spread over more than {100 * report.NOISY:.0f} %."
)
LEGEND = (
    f"{MARKS} † stale: the recipe or its kernel has changed since. – not measured: the reasons stand below the "
    "workload's last table."
)
COMPARED = (  # heading of a comparison, its figure or what follows from several; what does not fit beside moves below
    ("resident", "resident"),
    ("transfer", "transfer"),
    ("×NumPy", lambda cell: report.ratio(cell, "resident")),
    ("× transfer", lambda cell: report.ratio(cell, "transfer")),
    ("device", "device"),
    ("GB/s", "bandwidth"),
    ("Gop/s", report.operations),
    ("memory", "memory"),
    ("first", "first result"),
    ("wins from", report.wins),
)
FACTOR = 1.1  # asv's
VERDICTS = (
    f"faster, slower: the 99 % intervals do not overlap, and the medians differ by more than a factor of {FACTOR}. "
    f"same: the intervals leave no room for a factor of {FACTOR}. cannot tell: all else. why: the ratios that the "
    "intervals leave room for; they come from the samples of one process, and know nothing of how the next differs."
)
ANSWERS = {"recipes": "✓", "no": "✗", "documented": "○", "text": ""}
WRAP = 20  # characters that a column of words wants before it moves below
STYLES = {
    "group": Style(bold=True),
    **dict.fromkeys(("best", "tie", "faster", "recipes"), Style.parse("green")),
    **dict.fromkeys(("bad", "slower"), Style.parse("red")),
    **dict.fromkeys(("no", "note"), Style(dim=True)),
}


PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.4 system-ui, sans-serif; margin: 1.5rem; }}
.scroll {{ overflow-x: auto; margin-top: 2rem; }}
table {{ border-collapse: collapse; min-width: min(100%, 36rem); }}
caption {{ font-weight: bold; text-align: left; }}
th, td {{ padding: .2rem .5rem; border-bottom: 1px solid #8886; text-align: left; vertical-align: top; }}
tbody th {{ font-weight: normal; }}
tbody th[scope=rowgroup] {{ padding-top: 1rem; }}
.name {{ white-space: nowrap; }}
.r {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
thead .r {{ white-space: pre-line; }}
.bad, .slower {{ color: light-dark(#b3261e, #f2867e); }}
.recipes, .faster {{ color: light-dark(#146c2e, #7fd196); }}
p, figcaption {{ max-width: 60rem; overflow-wrap: anywhere; }}
figure {{ margin: 2rem 0; }}
summary {{ cursor: pointer; }}
details .scroll {{ margin-top: .5rem; }}
</style>
<body>
{body}</body>
</html>
"""


@dataclass(frozen=True)
class Entry:
    """What stands in one place of a table, or below it. ``mark`` is what it means, for colours."""

    text: str = ""
    mark: str = ""
    links: tuple[tuple[str, str], ...] = ()  # (label, address); a recipe's is relative to the repository's root


@dataclass(frozen=True)
class Table:
    """``align`` has a letter a column: l for words, which may wrap, r for numbers. A row whose first entry is marked
    group is the heading of the rows below; its others are empty."""

    title: str
    head: tuple[str, ...]
    align: str
    rows: list[tuple[Entry, ...]]
    notes: list[Entry]
    records: list[dict]

    def whole(self, column):
        """Whether it keeps to a line: numbers, and words left of them, which are names: a device, a lane."""
        return "r" in self.align[column:]


def of_lane(cells, lane):
    """The cells of this lane, and NumPy's, which all others are compared with; all of them where no lane is named."""
    return [cell for cell in cells if lane in (None, cell["lane"]) or cell["technique"] == "numpy"]


def compared(cells):
    """A table for each workload, then how to read them all."""
    tables = [side_by_side(mine) for mine in _grouped(cells, "workload")]
    _below(tables, explained(cells))
    return tables


def side_by_side(cells):
    """The figures of one workload in one table, the fastest of each size and lane first."""
    workload = cells[0]["workload"]
    label = catalogue.workload_module(workload).label
    ok = [cell for cell in cells if cell["status"] == "ok"]
    ok.sort(key=lambda cell: (cell["size"], cell["lane"], cell["resident_s"]))
    lanes = len({cell["lane"] for cell in ok}) > 1
    # A column of which nothing is known, or only that NumPy is as fast as itself, is left out.
    used = [(head, what) for head, what in COMPARED if any(_told(cell, what).text not in ("–", "1") for cell in ok)]
    rows = []
    for mine in _grouped(ok, "size", "lane"):
        size, lane = mine[0]["size"], mine[0]["lane"]
        ranks = {figure: _ranks([cell for cell in cells if cell["size"] == size], figure) for figure in FIGURES}
        rows.append((Entry(label(size) + f", {lane}" * lanes, "group"), *[Entry()] * (1 + len(used))))
        for cell in mine:
            entries = [_told(cell, what, ranks.get(what, {}).get(cell["technique"], "")) for _, what in used]
            rows.append((Entry(cell["technique"]), Entry(report.place(cell)), *entries))
    title = f"{workload}: {catalogue.workloads()[workload].partition(': ')[2]}"
    head = ("technique", "on", *(head for head, _ in used))
    notes = [*[Entry("Nothing ran.")] * (not rows), *reasons_of(cells)]
    return Table(title, head, "ll" + "r" * len(used), rows, notes, [])


def _told(cell, what, rank=""):
    return Entry(what(cell)) if callable(what) else entry_of(cell, what, rank)


def explained(cells):
    """How to read a comparison, if there is a figure in it."""
    ok = any(cell["status"] == "ok" for cell in cells)
    return [Entry(text, "note") for text in (report.CAPTION, MARKS, report.measured_with(cells)) if ok]


def measured(cells, lane=None):
    """Technique × size, a table for each workload and figure; cells of two machines, environments or commits never
    share one, but for the overview, where a workload is a column of one commit. Why something is missing stands below
    a workload's last table, how all was measured below a run's.

    ``lane``: only its cells, and NumPy's."""
    tables = []
    cells = [cell | bandwidth_of(cell) for cell in of_lane(cells, lane)]
    cells.sort(key=lambda cell: list(catalogue.workloads()).index(cell["workload"]))  # and not by their files' names
    for runs in _grouped(cells, "machine", "environment"):
        if len({cell["workload"] for cell in runs}) > 1:
            tables.append(_overview(runs, source_of(runs, cells)))
        for run in _grouped(runs, "commit"):
            name = source_of(run, cells)
            for mine in _grouped(run, "workload"):
                found = [_figure(mine, figure, name) for figure in FIGURES]
                tables += [table for table in found if table.rows or table is found[0]]
                _below(tables, reasons_of(mine))
            _below(tables, [Entry(LEGEND, "note"), _provenance("Measured", run)])
    return tables


def change(before, after):
    """Two commits, machines or environments side by side, a table for each workload and timed figure.

    The verdicts are those of `asv compare`, by its test of the medians' 99 % intervals and its factor, but for what it
    calls unchanged, which is two things:

    faster, slower: the intervals do not overlap, and the medians differ by more than a factor of 1.1.
    same: wherever in the intervals the true medians are, they differ by less than a factor of 1.1.
    cannot tell: neither, the intervals are too wide; or one side has no time or no interval, and the row says which.
    """
    sides = [{(c["workload"], c["technique"], c["size"]): c for c in side} for side in (before, after)]
    names = f"{source_of(before, after)} → {source_of(after, before)}"
    tables = []
    for mine in _grouped([*before, *after], "workload"):
        keys = dict.fromkeys((c["workload"], c["technique"], c["size"]) for c in mine)
        for figure in TIMED:
            pairs = [[side.get(key) for side in sides] for key in keys]
            rows = [_changed(pair, figure) for pair in pairs if any(_shown(c, figure) for c in pair)]
            if rows:
                title = f"{mine[0]['workload']}, {figure}: {names}"
                head = ("technique, size", "before", "after", "ratio", "verdict", "why")
                tables.append(
                    Table(title, head, "lrrrll", [row for row, _ in rows], [], [record for _, record in rows])
                )
    notes = [Entry(VERDICTS, "note"), *_differences(before, after)]
    _below(tables, [*notes, _provenance("Before", before), _provenance("After", after)])
    return tables


def abilities():
    """What a framework can do, and what a parallel engine can use: each tick has its recipes, each cross its reason."""
    facts = tomllib.loads(Path(__file__).with_name("frameworks.toml").read_text(encoding="utf-8"))
    legend = (
        "✓ recipes do it, and are checked: gpu-cookbook show WORKLOAD TECHNIQUE prints one. ○ no recipe does it here, "
        f"its documentation says so. ✗ no. The sources were read on {facts['checked']}."
    )
    tables = []
    for name in ("frameworks", "engines"):
        questions = facts[name]["questions"]
        rows, notes, records = [], [], []
        for row in facts[name]["row"]:
            rows.append((Entry(links=((row["name"], row["home"]),)), *(_answer(row["can"][key]) for key in questions)))
            for key, question in questions.items():
                record = {"table": name, "name": row["name"], "question": question, "checked": f"{facts['checked']}"}
                records.append(record | {"answer": _answer(row["can"][key]).mark} | row["can"][key])
            if "status" in row:
                notes.append(Entry(f"{row['name']}: {row['status']['text']}", "note", _sources(row["status"])))
        notes.append(Entry(legend, "note"))
        head = (name.removesuffix("s"), *questions.values())
        tables.append(Table(facts[name]["title"], head, "l" * len(head), rows, notes, records))
    return tables


def _answer(answer):
    kind = next(kind for kind in ANSWERS if kind in answer)
    words = [answer[key] for key in (kind, "note") if key in answer and key != "recipes"]
    links = [(path.removesuffix(".py").replace("/with_", " "), f"recipes/{path}") for path in answer.get("recipes", ())]
    return Entry(f"{ANSWERS[kind]} {'; '.join(words)}".strip(), kind, (*links, *_sources(answer)))


def _sources(answer):
    return tuple(("source" if n == 1 else str(n), address) for n, address in enumerate(answer.get("sources", ()), 1))


def _below(tables, notes):
    if tables:
        tables[-1] = replace(tables[-1], notes=[*tables[-1].notes, *notes])


def _grouped(cells, *keys):
    groups = {}
    for cell in cells:
        groups.setdefault(tuple(cell.get(key) for key in keys), []).append(cell)
    return groups.values()


def bandwidth_of(cell):
    """As measure.judge has it; nothing where there is more arithmetic than memory to move."""
    workload = catalogue.workload_module(cell["workload"])
    times = {key: cell[key] for key in ("device_s", "resident_s") if cell["status"] == "ok" and cell.get(key)}
    if not times or workload.bytes_moved(cell["size"]) < workload.operations(cell["size"]):
        return {}
    probe = {"copy_bandwidth_gb_per_s": cell.get(COPYING), "cache_bytes": cell.get("device_cache_bytes")}
    return measure.judge(times, workload, cell["size"], probe)


def _value(cell, figure):
    return cell.get(FIGURES[figure][0]) if cell and cell["status"] == "ok" else None


def _shown(cell, figure):
    """Whether the cell has a row in the figure's table; what went wrong has one among the resident times."""
    return _value(cell, figure) is not None or bool(cell) and cell["status"] in WRONG and figure == "resident"


def _timed(cell, figure):
    """What ranks a figure: the less the better. A bandwidth comes from a time."""
    return ("device" if cell.get("device_s") else "resident") if figure == "bandwidth" else figure


def _spread(cell, figure, ends):
    """(low, high), or None where none is stored, or asv had too few samples for a finite one."""
    found = [cell.get(f"{_timed(cell, figure)}_{end}") for end in ends]
    return found if all(end is not None and math.isfinite(end) for end in found) else None


def tied(cell, best, figure):
    """Whether the middle halves of their samples overlap."""
    # Not the intervals of the medians: of ten thousand calls in one process they are narrower than what the next
    # process differs by, and of three calls they reach from nothing to several times the median.
    a, b = _spread(cell, figure, QUARTILES), _spread(best, figure, QUARTILES)
    if a and b:
        return a[0] <= b[1] and b[0] <= a[1]
    return _value(cell, figure) == _value(best, figure)


def _ranks(cells, figure):
    """{technique: best or tie} among the cells of one size: each lane has its own."""
    ranks = {}
    lanes = len({cell["lane"] for cell in cells})
    for lane in _grouped([cell for cell in cells if _value(cell, figure) is not None], "lane"):
        if lanes > 1 and all(cell["technique"] == "numpy" for cell in lane):
            continue  # it is there to compare with: alone of its lane, it is not the best of it
        best = min(lane, key=lambda cell: _value(cell, _timed(cell, figure)))
        first = [cell["technique"] for cell in lane if cell is best or tied(cell, best, figure)]
        ranks |= dict.fromkeys(first, "tie" if len(first) > 1 else "best")
    return ranks


def entry_of(cell, figure, rank=""):
    """Nothing where there is no cell; why not in a word; or the figure after its marks."""
    value = _value(cell, figure)
    if value is None:
        wrong = cell and cell["status"] in WRONG
        return Entry(cell["status"], "bad") if wrong else Entry("–" if cell else "")
    quartiles = figure in TIMED and _spread(cell, figure, QUARTILES)
    text = report.timing(cell, figure) if quartiles else FIGURES[figure][2](value)
    if figure == "bandwidth" and cell.get("copy_bandwidth_percent") is not None:
        text += f" ({cell['copy_bandwidth_percent']:.0f} %)"
    return Entry({"best": "*", "tie": "="}.get(rank, "") + "†" * bool(cell.get("stale")) + text, rank)


def _numbers(cell, figure):
    """The figure and, of a timed one, its spread."""
    numbers = {FIGURES[figure][1]: _value(cell, figure)}
    if figure in TIMED:
        for ends in (QUARTILES, CI99):
            numbers |= zip(ends, cell and _spread(cell, figure, ends) or (None, None), strict=True)
        numbers["samples"] = cell and cell.get(f"{figure}_samples")
    if figure == "bandwidth":
        numbers["copy_bandwidth_percent"] = cell.get("copy_bandwidth_percent")
    return numbers


def _figure(cells, figure, name):
    """The table of one figure of one workload, the fastest at the largest size first."""
    every = {(cell["technique"], cell["size"]): cell for cell in cells}
    shown = [cell for cell in every.values() if _shown(cell, figure)]
    sizes = sorted({cell["size"] for cell in shown})
    ranks = {size: _ranks([cell for cell in every.values() if cell["size"] == size], figure) for size in sizes}
    lanes = len({cell["lane"] for cell in shown}) > 1
    rows, records = {}, []
    for mine in _grouped(shown, "technique"):
        technique, lane = mine[0]["technique"], mine[0]["lane"]
        place = next((report.place(cell) for cell in mine if report.place(cell)), "")
        row = [Entry(word) for word in (technique, *[lane] * lanes, place)]
        order = [lane]
        for size in sizes:
            cell = every.get((technique, size))
            value, rank = _value(cell, figure), ranks[size].get(technique, "")
            row.append(entry_of(cell, figure, rank))
            order.insert(1, math.inf if value is None else _value(cell, _timed(cell, figure)))
            if value is not None:
                records.append(_record(cell, figure) | _numbers(cell, figure) | {"rank": rank or None})
        rows[*order, technique] = tuple(row)
    if figure == "resident":
        records += [_record(cell, None) for cell in every.values() if cell["status"] != "ok"]
    workload = cells[0]["workload"]
    words = ("technique", *["lane"] * lanes, "on")
    head = (*words, *map(catalogue.workload_module(workload).label, sizes))
    title = f"{workload}, {figure}: {FIGURES[figure][3]}" + f". {name}" * bool(name)
    return Table(title, head, "l" * len(words) + "r" * len(sizes), [rows[order] for order in sorted(rows)], [], records)


def _overview(cells, name):
    """Every technique in every workload, at the largest size that was measured."""
    ok = [cell for cell in cells if _value(cell, "resident")]
    sizes = {c["workload"]: max(d["size"] for d in ok if d["workload"] == c["workload"]) for c in ok}
    every = {(c["workload"], c["technique"]): c for c in cells if c["size"] == sizes.get(c["workload"])}
    ranks = {w: _ranks([c for c in every.values() if c["workload"] == w], "resident") for w in sizes}
    lanes = {technique: cell["lane"] for (_, technique), cell in every.items() if _value(cell, "resident")}
    both = len(set(lanes.values())) > 1
    rows = []
    for technique in sorted({technique for _, technique in every}, key=lambda name: (name != "numpy", name)):
        mine = [every.get((workload, technique)) for workload in sizes]
        if any(_value(cell, "resident") for cell in mine):
            place = next(report.place(cell) for cell in mine if _value(cell, "resident"))
            entries = [entry_of(c, "resident", ranks[c["workload"]].get(technique, "") if c else "") for c in mine]
            words = (technique, *[lanes[technique]] * both, place)
            rows.append((*map(Entry, words), *entries))
    labels = [f"{workload}\n{catalogue.workload_module(workload).label(size)}" for workload, size in sizes.items()]
    title = "Resident, at the largest size" + f". {name}" * bool(name)
    head = ("technique", *["lane"] * both, "on")
    return Table(title, (*head, *labels), "l" * len(head) + "r" * len(sizes), rows, [], [])


def _record(cell, figure):
    return {"table": "measured", "figure": figure} | {key: cell.get(key) for key in (*FACTS, *CELL)}


def reasons_of(cells):
    """Why there are no figures, what went wrong first; and other arithmetic than IEEE 754. Those that share a reason
    share a line."""
    lines = list(report.rest([{**cell, "reason": cell["reason"] or "no reason stored"} for cell in cells]))
    for cell in cells:
        if cell["status"] == "ok" and cell.get("device_reason") and not cell.get("device_s"):
            lines.append((cell["technique"], "no device time", cell["device_reason"]))
    groups = {}
    for technique, status, reason in dict.fromkeys(lines):
        groups.setdefault((status not in WRONG, status, reason), []).append(technique)
    for (fine, status, reason), techniques in sorted(groups.items()):
        yield Entry(f"{status}: {', '.join(techniques)}: {reason}", "note" if fine else "bad")


def source_of(cells, others):
    """The cells' machine, commit and date, and their environment where not all have the same."""
    same = len({cell.get("environment") for cell in (*cells, *others)}) < 2
    facts = _facts(cells)
    return ", ".join(facts[key] for key in (*RUN, "date") if key in facts and not (same and key == "environment"))


def _facts(cells):
    """{fact: its values}, then {package: its versions}."""
    rates = {cell["device"]: report.digits(cell[COPYING]) for cell in cells if cell.get(COPYING)}
    facts = {key: {} for key in FACTS} | {"copying": {f"{rate} GB/s on {device}": 1 for device, rate in rates.items()}}
    packages = {}
    for cell in cells:
        for key in FACTS:
            if cell.get(key):
                facts[key][cell[key][:8] if key == "commit" else f"{cell[key]}"] = 1
        for version in filter(None, (cell.get("versions") or "").split(", ")):
            package, _, number = version.rpartition(" ")
            packages.setdefault(package, {})[number] = 1
    facts |= sorted(packages.items())
    return {key: " and ".join(sorted(values)) for key, values in facts.items() if values}


def _provenance(word, cells):
    return Entry(f"{word}: {'; '.join(f'{key} {value}' for key, value in _facts(cells).items())}.", "note")


def _differences(before, after):
    """What else is not the same, of what both sides measured."""
    sides = [{(c["workload"], c["technique"]): c for c in side if c["status"] == "ok"} for side in (before, after)]
    facts = []
    for side in sides:
        both = [side[key] for key in side if key in sides[0] and key in sides[1]]
        modes = {f"math of {cell['technique']} in {cell['workload']}": cell["math"] for cell in both}
        facts.append(_facts(both) | modes)
    for key in dict.fromkeys([*facts[0], *facts[1]]):
        values = [side.get(key, "none") for side in facts]
        if values[0] != values[1] and key not in (*RUN, "copying"):
            yield Entry(f"Not the same: {key}: {values[0]} → {values[1]}", "note")


def _changed(pair, figure):
    """The row and the record of one technique at one size, before and after; not both are None."""
    verdict, why = _verdict(*pair, figure)
    known = pair[0] or pair[1]
    values = [_value(cell, figure) for cell in pair]
    ratio = None if None in values else values[1] / values[0]
    mark = "bad" if any(cell and cell["status"] in WRONG for cell in pair) else verdict
    label = catalogue.workload_module(known["workload"]).label(known["size"])
    texts = (Entry("" if ratio is None else f"×{report.digits(ratio)}"), Entry(verdict, mark), Entry(why))
    record = {"table": "change", "figure": figure} | {key: known[key] for key in ("workload", "technique", "size")}
    for when, cell in zip(("before", "after"), pair, strict=True):
        numbers = {key: (cell or {}).get(key) for key in RUN} | _numbers(cell, figure)
        record |= {f"{when}_{key}": value for key, value in numbers.items()}
    record |= {"ratio_x": ratio, "verdict": verdict, "why": why}
    return (Entry(f"{known['technique']}, {label}"), *(entry_of(cell, figure) for cell in pair), *texts), record


def _verdict(before, after, figure):
    """(verdict, why): the ratios that the intervals leave room for, or what is missing on which side."""
    from asv._stats import is_different  # here, so that the other tables need no asv

    faults = {}
    for when, cell in (("before", before), ("after", after)):
        if cell is None:
            faults.setdefault("not measured", []).append(when)
        elif cell["status"] != "ok":
            faults.setdefault(f"{cell['status']}: {cell['reason'] or 'no reason stored'}", []).append(when)
        elif _value(cell, figure) is None:
            faults.setdefault(f"no {figure} time", []).append(when)
        elif not _spread(cell, figure, CI99):
            faults.setdefault("no 99 % interval", []).append(when)
    if faults:
        return "cannot tell", "; ".join(f"{' and '.join(whens)}: {fault}" for fault, whens in faults.items())
    (low, high), (new_low, new_high) = _spread(before, figure, CI99), _spread(after, figure, CI99)
    ratio = _value(after, figure) / _value(before, figure)
    # asv's interval of fewer than ten samples may begin below 0.
    least, most = max(0, new_low) / high, new_high / low if low > 0 else math.inf
    why = f"×{report.digits(least)} to {f'×{report.digits(most)}' if most < math.inf else 'any'}"
    stats = [{"ci_99_a": low, "ci_99_b": high}, {"ci_99_a": new_low, "ci_99_b": new_high}]
    if is_different(None, None, *stats) and not 1 / FACTOR <= ratio <= FACTOR:
        return "faster" if ratio < 1 else "slower", why
    return "same" if least > 1 / FACTOR and most < FACTOR else "cannot tell", why


def terminal(tables, width):
    """A rich renderable, no wider than ``width``: columns that do not fit move below, beside the first one again."""
    parts = []
    for table in tables:
        parts.append(Text(table.title, style="bold"))
        for columns in _blocks(table, width) if table.rows else ():
            drawn = rich_table.Table(box=box.SIMPLE_HEAD, pad_edge=False, leading=int("r" not in table.align))
            for i in columns:
                justify = "right" if table.align[i] == "r" else "left"
                drawn.add_column(table.head[i], justify=justify, overflow="fold", no_wrap=i > 0 and table.whole(i))
            for row in table.rows:
                if row[0].mark == "group":
                    drawn.add_section()
                drawn.add_row(*(_drawn(row[i]) for i in columns))
            parts.append(drawn)
        parts += [*map(_drawn, table.notes), Text()]
    return Group(*parts)


def _drawn(entry):
    """The words, a link where the terminal has them; recipes also by name, since gpu-cookbook show takes it."""
    names = [label for label, address in entry.links if not (entry.text and address.startswith("https:"))]
    names = ", ".join(names[:1] + [f"+{len(names) - 1}"] * (len(names) > 1))
    style = STYLES.get(entry.mark, Style())
    for _, address in entry.links[:1]:
        local = catalogue.FOLDER / address.removeprefix("recipes/")
        style += Style(link=address if address.startswith("https:") else local.as_uri())
    return Text(f"{entry.text} ({names})" if entry.text and names else entry.text or names, style)


def _blocks(table, width):
    """Lists of column numbers: the first column, with its lane where it has one, and as many others as fit beside."""
    kept = 2 if table.head[1:2] == ("lane",) else 1
    block, taken = [], 0
    for i, head in enumerate(table.head):
        lines = head.split("\n")
        for row in table.rows:
            text = _drawn(row[i]).plain
            lines += text.split() if row[i].mark == "group" else [text]  # a heading wraps before a figure moves below
        room = 3 + max(map(cell_len, lines))
        if i and not table.whole(i):
            room = min(room, 3 + WRAP)
        if i == kept:
            first = taken
        if len(block) > kept and taken + room > width:
            yield block
            block, taken = list(range(kept)), first
        block.append(i)
        taken += room
    yield block


def as_markdown(tables):
    parts = []
    for table in tables:
        parts.append(f"### {_escaped(table.title)}")
        if table.rows:
            rows = [[_escaped(head) for head in table.head], ["---:" if a == "r" else "---" for a in table.align]]
            rows += [[_worded(entry, *MARKDOWN) for entry in row] for row in table.rows]
            parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
        parts += [_worded(note, *MARKDOWN) for note in table.notes]
    return "\n\n".join(parts) + "\n"


def _escaped(text):
    return re.sub(r"([\\`*_~|<>\[\]])", r"\\\1", " ".join(text.split()))


def as_html(tables):
    """A page that needs nothing else; its links to recipes are relative to the repository's root."""
    return page("GPU Cookbook: tables", "".join(map(html_of, tables)))


def page(title, body):
    return PAGE.format(title=html.escape(title), body=body)


def html_of(table):
    """The table and its notes; what is too wide scrolls in a box of its own."""
    title = html.escape(table.title)
    notes = [f'<p class="{note.mark}">{_worded(note, *HTML)}</p>\n' for note in table.notes]
    if not table.rows:
        return "".join([f"<p><strong>{title}</strong></p>\n", *notes])
    heads = (f'<th scope="col" class="{a}">{html.escape(h)}</th>' for h, a in zip(table.head, table.align, strict=True))
    # The box takes the focus: who has no mouse scrolls it by the arrow keys.
    parts = [f'<div class="scroll" role="region" tabindex="0" aria-label="{title}">\n']
    parts += [f"<table>\n<caption><span>{title}</span></caption>\n<thead><tr>", *heads, "</tr></thead>\n<tbody>\n"]
    for first, *others in table.rows:
        if first.mark == "group":
            across = f'<th scope="rowgroup" colspan="{len(table.head)}">{_worded(first, *HTML)}</th>'
            parts.append(f"</tbody>\n<tbody>\n<tr>{across}</tr>\n")
            continue
        parts.append(f'<tr><th scope="row">{_worded(first, *HTML)}</th>')
        for column, entry in enumerate(others, 1):
            kind = "l name" if table.whole(column) and table.align[column] == "l" else table.align[column]
            parts.append(f'<td class="{kind} {entry.mark}">{_worded(entry, *HTML)}</td>')
        parts.append("</tr>\n")
    parts.append("</tbody>\n</table>\n</div>\n")
    return "".join([*parts, *notes])


MARKDOWN = (_escaped, "**{}**", "[{}]({})")
HTML = (html.escape, "<strong>{}</strong>", '<a href="{1}">{0}</a>')


def _worded(entry, escaped, strong, link):
    links = ", ".join(link.format(escaped(label), html.escape(address)) for label, address in entry.links)
    text = escaped(entry.text)
    text = strong.format(text) if entry.mark in ("best", "tie", "group") else text
    return f"{text} ({links})" if text and links else text or links


def as_csv(tables):
    """One row a value, one column a name that any record has; lists with spaces between."""
    records = [record for table in tables for record in table.records]
    return report.as_csv(
        [{key: " ".join(v) if isinstance(v, list) else v for key, v in record.items()} for record in records]
    )


def as_json(tables):
    """A list of tables: title, notes, and a record a value."""
    return report.as_json(
        [{"title": t.title, "notes": [note.text for note in t.notes], "rows": t.records} for t in tables]
    )
