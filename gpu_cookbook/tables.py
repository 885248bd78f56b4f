"""The tables that compare: measured, what frameworks and engines can do, what has changed; and each as text.

Pure functions: cells in, Tables out, a Table as text. A Table has the words that people read and, beside them, ``data``:
the same as records for programs, with every digit. CSV and JSON are those; the other formats are the words.
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

from gpu_cookbook import catalogue, report

TIMED = ("resident", "device", "transfer")
FIGURES = {  # the key in a cell, its name in the data, how it is written, what it is
    "resident": ("resident_s", "value_s", report.seconds, "data on the device, one synchronised call"),
    "device": ("device_s", "value_s", report.seconds, "the device's own clock, its queue kept full"),
    "transfer": ("transfer_s", "value_s", report.seconds, "host arrays in, host result out"),
    "first result": ("first_result_s", "value_s", report.seconds, "a fresh process with empty caches"),
    "memory": (
        "peak_device_memory_bytes",
        "value_bytes",
        lambda value: f"{report.digits(value / 2**30)} GiB",
        "peak on the GPU",
    ),
    "bandwidth": (
        "bandwidth_gb_per_s",
        "value_gb_per_s",
        report.digits,
        "GB/s of what must move at least, in the device's time where there is one "
        "(share of this device's copy bandwidth, where the data exceed its cache)",
    ),
}
SPREADS = (("ci99_a_s", "ci99_b_s"), ("q1_s", "q3_s"))  # of the median, the narrower first; of the samples
RUN = ("machine", "environment", "commit")
FACTS = (*RUN, "device", "driver", "cuda", "clock")
LEGEND = (
    "* best of its lane. = tied with the best: their 99 % intervals, or their middle halves where no interval is "
    "stored, overlap; a first result and a peak of memory are one measurement, without a spread. ~ noisy: half of the "
    f"samples spread over more than {report.NOISY:.0%} of the median. † stale: the recipe or its kernel has changed "
    "since. – not measured, for a reason below the workload's last table."
)
FACTOR = 1.1  # asv's: what changed less is called the same
VERDICTS = (
    f"faster, slower: the 99 % intervals do not overlap, and the medians differ by more than {FACTOR - 1:.0%}. "
    f"same: the intervals leave no room for {FACTOR - 1:.0%}. cannot tell: everything else. In brackets the ratios "
    "that the intervals leave room for. They know the samples of one process each: what differs from one start to the "
    "next is not in them."
)
ANSWERS = {"recipes": "✓", "no": "✗", "documented": "○", "text": ""}
WRAP = 20  # characters that a column of words needs before it moves below
STYLES = {
    **dict.fromkeys(("best", "tie", "faster"), Style.parse("bold green")),
    **dict.fromkeys(("bad", "slower"), Style.parse("red")),
    **dict.fromkeys(("no", "note"), Style(dim=True)),
    "recipes": Style.parse("green"),
}


@dataclass(frozen=True)
class Entry:
    """What stands in one place of a table, or below it. ``mark`` says what it means: the formats' colours follow."""

    text: str = ""
    mark: str = ""
    links: tuple[tuple[str, str], ...] = ()  # (label, address); a recipe's address is relative to the repository


@dataclass(frozen=True)
class Table:
    """``align`` has a letter a column: l for words, which may wrap, r for numbers."""

    title: str
    head: tuple[str, ...]
    align: str
    rows: tuple[tuple[Entry, ...], ...]
    notes: tuple[Entry, ...]
    data: tuple[dict, ...]


def measured(cells):
    """Technique × size, a table for each workload and figure. Cells of several machines, environments or commits never
    share one. The reasons stand below a workload's last table, how it was measured below a run's."""
    tables = []
    for run in _grouped([_rates(cell) | cell for cell in cells], *RUN):
        for mine in _grouped(run, "workload"):
            found = [_figure(mine, figure, _name(run, cells)) for figure in FIGURES]
            tables += [table for table in found if table.rows or table is found[0]]
            tables[-1] = replace(tables[-1], notes=tables[-1].notes + tuple(_reasons(mine)))
        last = (Entry(LEGEND, "note"), Entry(f"Measured with {_provenance(run)}.", "note"))
        tables[-1] = replace(tables[-1], notes=tables[-1].notes + last)
    return tables


def change(before, after):
    """Two commits, machines or environments side by side, a table for each workload and timed figure.

    Each verdict follows `asv compare`: its test for a difference, of the 99 % intervals of the medians, and its factor.

    faster, slower: the intervals do not overlap, and the medians differ by more than the factor 1.1.
    same: whichever values within the intervals are the true ones, the change is less than the factor 1.1.
    cannot tell: neither is shown, since the intervals are too wide; or one side has no time, or no interval: the row
    says which. asv would call all of these unchanged.
    """
    sides = [{(c["workload"], c["technique"], c["size"]): c for c in side} for side in (before, after)]
    tables = []
    for mine in _grouped([*before, *after], "workload"):
        keys = sorted({(c["workload"], c["technique"], c["size"]) for c in mine})
        keys.sort(key=lambda key: key[1] != "numpy")
        for figure in TIMED:
            rows, data = [], []
            for key in keys:
                pair = [side.get(key) for side in sides]
                told = figure == "resident" and any(c and c["status"] in ("failed", "refused") for c in pair)
                if not told and all(_value(c, figure) is None for c in pair):
                    continue
                verdict, why = _verdict(*pair, figure)
                values = [_value(c, figure) for c in pair]
                ratio = None if None in values else values[1] / values[0]
                bad = any(c and c["status"] in ("failed", "refused") for c in pair)
                rows.append(
                    (
                        Entry(key[1]),
                        Entry(_label(key[0], key[2])),
                        *(_entry(c, figure) for c in pair),
                        Entry("" if ratio is None else f"×{report.digits(ratio)}", verdict),
                        Entry(f"{verdict} ({why})", "bad" if bad else verdict),
                    )
                )
                record = {"table": "change", "workload": key[0], "technique": key[1], "size": key[2], "figure": figure}
                for when, cell in zip(("before", "after"), pair, strict=True):
                    record |= {
                        f"{name}_{when}": (cell or {}).get(name) for name in ("machine", "environment", "commit")
                    }
                    record |= {f"{name}_{when}": number for name, number in _numbers(cell or {}, figure).items()}
                data.append(record | {"ratio_x": ratio, "verdict": verdict, "why": why})
            if rows:
                head = ("technique", "size", "before", "after", "ratio", "verdict")
                title = f"{mine[0]['workload']}, {figure}: {_name(before, after)} → {_name(after, before)}"
                tables.append(Table(title, head, "lrrrrl", tuple(rows), (), tuple(data)))
    if tables:
        notes = [VERDICTS, *_differences(before, after)]
        notes += [f"Before: {_provenance(before)}.", f"After: {_provenance(after)}."]
        tables[-1] = replace(tables[-1], notes=tuple(Entry(note, "note") for note in notes))
    return tables


def frameworks():
    """What a framework can do: each tick has its recipes, each cross its reason and source."""
    return _abilities("frameworks")


def engines():
    """What a parallel engine can use, likewise."""
    return _abilities("engines")


def _abilities(name):
    facts = tomllib.loads(Path(__file__).with_name("frameworks.toml").read_text(encoding="utf-8"))
    table = facts[name]
    rows, data, notes = [], [], []
    for row in table["row"]:
        rows.append((Entry(links=((row["name"], row["home"]),)), *(_answer(row["can"][q]) for q in table["questions"])))
        for question, words in table["questions"].items():
            answer = row["can"][question]
            kind = next(kind for kind in ANSWERS if kind in answer)
            data.append(
                {
                    "table": name,
                    "name": row["name"],
                    "question": words,
                    "answer": {"recipes": "yes"}.get(kind, kind),
                    "text": answer[kind] if kind != "recipes" else None,
                    "note": answer.get("note"),
                    "recipes": [f"recipes/{path}" for path in answer.get("recipes", ())],
                    "sources": answer.get("sources", []),
                    "checked": facts["checked"].isoformat(),
                }
            )
        if "status" in row:
            notes.append(Entry(f"{row['name']}: {row['status']['text']}", "note", _sources(row["status"])))
    legend = (
        "✓ the recipes named do it, and are checked: gpu-cookbook show WORKLOAD TECHNIQUE prints one. ○ its own "
        f"documentation says so; no recipe here does it. ✗ no. The sources were read on {facts['checked']}."
    )
    head = ("", *table["questions"].values())
    notes = (*notes, Entry(legend, "note"))
    return Table(table["title"], head, "l" * len(head), tuple(rows), notes, tuple(data))


def _answer(answer):
    kind = next(kind for kind in ANSWERS if kind in answer)
    said = (answer[kind] if kind != "recipes" else "", answer.get("note", ""))
    links = [(path.removesuffix(".py").replace("/with_", " "), f"recipes/{path}") for path in answer.get("recipes", ())]
    text = f"{ANSWERS[kind]} {'; '.join(part for part in said if part)}"
    return Entry(text.strip(), kind, (*links, *_sources(answer)))


def _sources(answer):
    """One is 'source', the next ones are numbered."""
    return tuple(("source" if n == 1 else str(n), url) for n, url in enumerate(answer.get("sources", ()), 1))


def _grouped(cells, *keys):
    groups = {}
    for cell in cells:
        groups.setdefault(tuple(cell.get(key) for key in keys), []).append(cell)
    return groups.values()


def _label(workload, size):
    return catalogue.workload_module(workload).label(size)


def _rates(cell):
    """The bandwidth, as measure.judge has it: from the device's time where there is one. What asv runs stores none."""
    moved = catalogue.workload_module(cell["workload"]).bytes_moved(cell["size"])
    best = cell.get("device_s") or cell.get("resident_s")
    return {"bandwidth_gb_per_s": moved / best / 1e9} if moved and best else {}


def _value(cell, figure):
    return cell.get(FIGURES[figure][0]) if cell and cell["status"] == "ok" else None


def _cost(cell, figure):
    """What ranks a cell, the less the better: a bandwidth by the time that it comes from."""
    value = _value(cell, figure)
    if value is None or figure != "bandwidth":
        return math.inf if value is None else value
    return cell.get("device_s") or cell["resident_s"]


def _spread(cell, figure, ends):
    """(low, high), or None where it is not stored, or asv had too few samples and stored an infinite one."""
    if figure == "bandwidth":
        figure = "device" if cell.get("device_s") else "resident"
    found = [cell.get(f"{figure}_{end}") for end in ends]
    return found if all(end is not None and math.isfinite(end) for end in found) else None


def _tied(cell, other, figure):
    for ends in SPREADS:
        a, b = _spread(cell, figure, ends), _spread(other, figure, ends)
        if a and b:
            return a[0] <= b[1] and b[0] <= a[1]
    return _cost(cell, figure) == _cost(other, figure)


def _mark(cell, neighbours, figure):
    """best, tie or nothing, among the cells of one size: each lane has its own best."""
    lane = [c for c in neighbours if c["lane"] == cell["lane"] and _value(c, figure) is not None]
    best = min(lane, key=lambda c: _cost(c, figure), default=None)
    if _value(cell, figure) is None or not (cell is best or _tied(cell, best, figure)):
        return ""
    return "tie" if any(c is not best and _tied(c, best, figure) for c in lane) else "best"


def _entry(cell, figure, mark=""):
    """Nothing where there is no cell; a dash where there is no figure, or why in a word; else the figure, marked."""
    if cell is None:
        return Entry()
    if cell["status"] in ("failed", "refused"):
        return Entry(cell["status"], "bad")
    value = _value(cell, figure)
    if value is None:
        return Entry("–")
    quartiles = figure in TIMED and _spread(cell, figure, SPREADS[1])
    text = report.timing(cell, figure) if quartiles else FIGURES[figure][2](value)
    if figure == "bandwidth" and cell.get("copy_bandwidth_percent") is not None:
        text += f" ({cell['copy_bandwidth_percent']:.0f} %)"
    return Entry({"best": "*", "tie": "="}.get(mark, "") + text + "†" * bool(cell.get("stale")), mark)


def _numbers(cell, figure):
    """The figure's value and, of a timed one, its spread: the names have the units."""
    numbers = {FIGURES[figure][1]: _value(cell, figure) if cell else None}
    if figure in TIMED:
        for ends in SPREADS:
            numbers |= dict(zip(ends, _spread(cell, figure, ends) or (None, None), strict=True))
        numbers["samples"] = cell.get(f"{figure}_samples")
    if figure == "bandwidth":
        numbers["copy_bandwidth_percent"] = cell.get("copy_bandwidth_percent")
    return numbers


def _figure(cells, figure, name):
    """The table of one figure of one workload; what did not run has its records in that of the resident times."""
    every = {(cell["technique"], cell["size"]): cell for cell in cells}
    bad = ("failed", "refused") if figure == "resident" else ()
    shown = [cell for cell in every.values() if _value(cell, figure) is not None or cell["status"] in bad]
    sizes = sorted({cell["size"] for cell in shown})
    lanes = {cell["technique"]: cell["lane"] for cell in shown}
    places = {cell["technique"]: report.place(cell) for cell in shown if report.place(cell)}
    columns = {size: [cell for cell in every.values() if cell["size"] == size] for size in sizes}
    both = len(set(lanes.values())) > 1

    def order(technique):
        return lanes[technique], *(_cost(every.get((technique, size)), figure) for size in reversed(sizes))

    rows, data = [], []
    for technique in sorted(lanes, key=order):
        mine = [every.get((technique, size)) for size in sizes]
        marks = [cell and _mark(cell, columns[size], figure) for cell, size in zip(mine, sizes, strict=True)]
        words = [technique, *([lanes[technique]] if both else []), places.get(technique, "")]
        rows.append((*map(Entry, words), *(_entry(c, figure, mark) for c, mark in zip(mine, marks, strict=True))))
        data += [
            _record(cell, figure) | _numbers(cell, figure) | {"rank": mark or None}
            for cell, mark in zip(mine, marks, strict=True)
            if _value(cell, figure) is not None
        ]
    if figure == "resident":
        data += [_record(cell, None) for cell in every.values() if cell["status"] != "ok"]
    workload = cells[0]["workload"]
    head = ("technique", *(["lane"] if both else []), "on", *(_label(workload, size) for size in sizes))
    title = f"{workload}, {figure}: {FIGURES[figure][3]}. {name}"
    return Table(title, head, "l" * (len(head) - len(sizes)) + "r" * len(sizes), tuple(rows), (), tuple(data))


def _record(cell, figure):
    keys = ("workload", "technique", "framework", "lane", "math", "size", "status", "reason", "stale", *FACTS)
    return {"table": "measured", "figure": figure} | {key: cell.get(key) for key in (*keys, "versions")}


def _reasons(cells):
    """Why there are no figures, what failed first; and other arithmetic than IEEE 754: a line for all that share it."""
    groups = {}
    for technique, status, reason in report.rest([{**c, "reason": c["reason"] or "no reason stored"} for c in cells]):
        groups.setdefault((status, reason), []).append(technique)
    for cell in cells:
        if cell["status"] == "ok" and cell.get("device_reason") and not cell.get("device_s"):
            those = groups.setdefault(("no device time", cell["device_reason"]), [])
            those += [cell["technique"]] * (cell["technique"] not in those)
    order = ("failed", "refused", "math", "no device time", "skipped")
    for (status, reason), techniques in sorted(groups.items(), key=lambda group: order.index(group[0][0])):
        mark = "bad" if status in order[:2] else "note"
        yield Entry(f"{status}: {', '.join(techniques)}: {reason}", mark)


def _short(key, value):
    return value[:8] if key == "commit" else str(value)


def _name(cells, others):
    """The cells' machine and commit, and their environment where the others have another one."""
    values = [(key, cell.get(key)) for key in RUN for cell in cells]
    alike = len({cell.get("environment") for cell in (*cells, *others)}) == 1
    return ", ".join(dict.fromkeys(_short(k, v) for k, v in values if v and not (alike and k == "environment")))


def _facts(cells):
    """{fact or package: its values} of what was measured, sorted by name of package."""
    found = {key: {} for key in FACTS}
    packages = {}
    for cell in cells:
        if cell["status"] == "ok":
            for key in FACTS:
                if cell.get(key):
                    found[key][_short(key, cell[key])] = None
            for version in (cell.get("versions") or "").split(", "):
                package, _, number = version.rpartition(" ")
                packages.setdefault(package, {})[number] = None
    return {key: tuple(values) for key, values in (*found.items(), *sorted(packages.items())) if key and values}


def _provenance(cells):
    """All facts and versions in one line, with the copy bandwidth of each device."""
    facts = _facts(cells)
    rates = {c["device"]: c.get("device_copy_bandwidth_gb_per_s") for c in cells if c.get("device")}
    rates = [f"{report.digits(rate)} GB/s on {device}" for device, rate in rates.items() if rate]
    words = [f"{key} {', '.join(facts.pop(key))}" for key in FACTS if key in facts]
    words += [f"copy bandwidth {', '.join(rates)}"] * bool(rates)
    return "; ".join([*words, ", ".join(f"{package} {' and '.join(those)}" for package, those in facts.items())])


def _differences(before, after):
    """What else is not the same, of the techniques that both sides measured."""
    sides = [{(c["workload"], c["technique"]) for c in side if c["status"] == "ok"} for side in (before, after)]
    facts = []
    for side in (before, after):
        both = [cell for cell in side if (cell["workload"], cell["technique"]) in sides[0] & sides[1]]
        modes = {f"math of {cell['workload']} {cell['technique']}": (cell["math"],) for cell in both}
        facts.append(_facts(both) | modes)
    for key in dict.fromkeys([*facts[0], *facts[1]]):
        values = [" and ".join(sorted(side.get(key, ("none",)))) for side in facts]
        if values[0] != values[1] and key not in RUN:
            yield f"Not the same: {key} {values[0]} → {values[1]}"


def _verdict(before, after, figure):
    """(verdict, why) of two cells, either of which may be None."""
    from asv._stats import is_different  # here, so that the other tables need no asv

    pair = {"before": before, "after": after}
    intervals = {}
    faults = []
    for when, cell in pair.items():
        if cell is None:
            faults.append(f"not measured {when}")
        elif cell["status"] != "ok":
            faults.append(f"{cell['status']} {when}: {cell['reason']}")
        elif _value(cell, figure) is None:
            faults.append(f"no {figure} time {when}")
        else:
            intervals[when] = _spread(cell, figure, SPREADS[0])
            faults += [f"no 99 % interval {when}"] * (intervals[when] is None)
    if faults:
        return "cannot tell", "; ".join(faults)
    stats = [{"ci_99_a": low, "ci_99_b": high} for low, high in intervals.values()]
    (low, high), (new_low, new_high) = intervals.values()
    ratio = _value(after, figure) / _value(before, figure)
    # asv's intervals of fewer than ten samples can begin below 0.
    least, most = max(0, new_low) / high, new_high / low if low > 0 else math.inf
    why = f"×{report.digits(least)} to " + (f"×{report.digits(most)}" if most < math.inf else "any")
    if is_different(None, None, *stats) and not 1 / FACTOR <= ratio <= FACTOR:
        return "faster" if ratio < 1 else "slower", why
    return "same" if 1 / FACTOR < least and most < FACTOR else "cannot tell", why


def terminal(tables, width):
    """A rich renderable, no wider than ``width``: columns that do not fit move below, beside the first one again."""
    parts = []
    for table in tables:
        parts.append(Text(table.title, style="bold"))
        for columns in _blocks(table, width) if table.rows else ():
            drawn = rich_table.Table(box=box.SIMPLE_HEAD, pad_edge=False, leading=int("l" * 3 in table.align))
            for i in columns:
                right = table.align[i] == "r"
                drawn.add_column(table.head[i], justify="right" if right else "left", no_wrap=right or i == 0)
            for row in table.rows:
                drawn.add_row(*(_drawn(row[i]) for i in columns))
            parts.append(drawn)
        parts += [*map(_drawn, table.notes), Text()]
    return Group(*parts)


def _drawn(entry):
    """The words, with the first link behind them; a recipe is named too, since that link may not open from here."""
    named = [label for label, address in entry.links if not (entry.text and address.startswith("https:"))]
    text = " ".join(part for part in (entry.text, *named[:1], f"+{len(named) - 1}" if len(named) > 1 else "") if part)
    style = STYLES.get(entry.mark, Style())
    if entry.links:
        address = entry.links[0][1]
        local = catalogue.FOLDER / address.removeprefix("recipes/")
        style += Style(link=address if address.startswith("https:") else local.as_uri())
    return Text(text, style=style)


def _blocks(table, width):
    """Lists of column numbers, each with the first column and as many others as fit."""
    room = []
    for i, head in enumerate(table.head):
        longest = max(cell_len(text) for text in (head, *(_drawn(row[i]).plain for row in table.rows)))
        room.append(min(longest, WRAP) if table.align[i] == "l" and i else longest)
    block, taken = [0], room[0] + 2
    for i in range(1, len(room)):
        if len(block) > 1 and taken + room[i] + 3 > width:
            yield block
            block, taken = [0], room[0] + 2
        block.append(i)
        taken += room[i] + 3
    yield block


def as_markdown(tables):
    parts = []
    for table in tables:
        parts.append(f"### {_escaped(table.title)}")
        if table.rows:
            rows = [[_escaped(head) for head in table.head], ["---:" if a == "r" else "---" for a in table.align]]
            rows += [[_in_markdown(entry) for entry in row] for row in table.rows]
            parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
        parts += [_in_markdown(note) for note in table.notes]
    return "\n\n".join(parts) + "\n"


def _escaped(text):
    return re.sub(r"([\\`*_~|<>\[\]])", r"\\\1", text)


def _in_markdown(entry):
    links = ", ".join(f"[{_escaped(label)}]({address})" for label, address in entry.links)
    text = f"**{_escaped(entry.text)}**" if entry.mark in ("best", "tie") else _escaped(entry.text)
    return f"{text} ({links})" if text and links else text or links


PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>GPU Cookbook: tables</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.4 system-ui, sans-serif; margin: 1.5rem; }
section { margin-bottom: 2.5rem; overflow-x: auto; }
table { border-collapse: collapse; }
caption { font-weight: bold; text-align: left; padding-bottom: .4rem; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #8886; text-align: left; vertical-align: top; }
th { font-weight: normal; }
thead th { font-weight: bold; vertical-align: bottom; }
.r { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.bad, .slower { color: light-dark(#b3261e, #f2867e); }
.recipes, .faster { color: light-dark(#146c2e, #7fd196); }
p { margin: .4rem 0; max-width: 60rem; }
</style>
</head>
<body>
"""


def as_html(tables):
    """A page that needs nothing else. Recipes are linked relative to the repository's root."""
    parts = [PAGE]
    for table in tables:
        classes = ["r" if letter == "r" else "" for letter in table.align]
        heads = [_tag("th", kind, html.escape(h), "col") for h, kind in zip(table.head, classes, strict=True)]
        parts.append(f"<section>\n<table>\n<caption>{html.escape(table.title)}</caption>\n")
        parts.append(f"<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>\n")
        for first, *rest in table.rows:
            others = (
                _tag("td", f"{kind} {entry.mark}", _in_html(entry))
                for entry, kind in zip(rest, classes[1:], strict=True)
            )
            parts.append(f"<tr>{_tag('th', '', _in_html(first), 'row')}{''.join(others)}</tr>\n")
        parts.append("</tbody>\n</table>\n")
        parts += [f"{_tag('p', note.mark, _in_html(note))}\n" for note in table.notes]
        parts.append("</section>\n")
    return "".join([*parts, "</body>\n</html>\n"])


def _tag(name, classes, content, scope=""):
    classes = f' class="{classes.strip()}"' if classes.strip() else ""
    return f"<{name}{classes}{f' scope={chr(34)}{scope}{chr(34)}' if scope else ''}>{content}</{name}>"


def _in_html(entry):
    links = ", ".join(f'<a href="{html.escape(address)}">{html.escape(label)}</a>' for label, address in entry.links)
    text = html.escape(entry.text)
    text = f"<strong>{text}</strong>" if entry.mark in ("best", "tie") else text
    return f"{text} ({links})" if text and links else text or links


def as_csv(tables):
    """One row a value, one column a name that any record has; lists with spaces between."""
    records = [record for table in tables for record in table.data]
    return report.as_csv(
        [{key: " ".join(v) if isinstance(v, list) else v for key, v in record.items()} for record in records]
    )


def as_json(tables):
    """A list of tables: title, notes, and a record for each value."""
    return report.as_json(
        [{"title": t.title, "notes": [note.text for note in t.notes], "rows": list(t.data)} for t in tables]
    )
