"""Tables as HTML, and a comparison as one page that needs nothing else: machine, tables, charts with their numbers."""

import html
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_cookbook import machine
from gpu_cookbook.render import charts, tables
from gpu_cookbook.render.tables import Entry, Recipe, Table
from gpu_cookbook.render.text import STRONG, recipe_file
from gpu_cookbook.results import Metric, Result, grouped
from gpu_cookbook.store.commits import CODE, StoreError, git, is_changed

SHORT = 20  # characters: words that stay in one line
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
.r, td:not([class]) {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
thead .r {{ white-space: pre-line; }}
.bad, .slower {{ color: light-dark(#b3261e, #f2867e); }}
.recipes, .faster, .right {{ color: light-dark(#146c2e, #7fd196); }}
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
class Site:
    """What a site adds to a table. ``address``: where a recipe is shown; None if it is not linked. ``about``: the data
    attributes of a row that belongs to a recipe, without their ``data-``."""

    address: Callable[[Recipe], str | None]
    about: Callable[[Recipe], Mapping[str, str]]


# ---- Tables.


def as_html(found: Iterable[Table]) -> str:
    """A self-contained page. Its links to recipes are relative to the root of the repository."""
    return page("GPU Cookbook: tables", "".join(map(html_of, found)))


def page(title: str, body: str) -> str:
    return PAGE.format(title=html.escape(title), body=body)


def html_of(table: Table, site: Site | None = None) -> str:
    """The table and its notes. A table that is too wide scrolls in its own box.

    On a site, an entry that names a recipe links to it. Elsewhere only the ``links`` of an entry become links.
    """
    title = html.escape(table.title)
    if not table.rows:
        return f"<p><strong>{title}</strong></p>\n{below(table.notes, site)}"
    heads = (f'<th scope="col" class="{a}">{_folding(h)}</th>' for h, a in zip(table.head, table.align, strict=True))
    # The box can be focused, so that it can be scrolled with the arrow keys.
    parts = [f'<div class="scroll" role="region" tabindex="0" aria-label="{title}">\n']
    kinds = [f"{align} name" if align == "l" and _unwrapped(table, n) else align for n, align in enumerate(table.align)]
    parts += [f"<table>\n<caption><span>{title}</span></caption>\n<thead><tr>", *heads, "</tr></thead>\n<tbody>\n"]
    for row in table.rows:
        first, *others = row
        if first.mark == "group":
            across = f'<th scope="rowgroup" colspan="{len(table.head)}">{_worded(first, site)}</th>'
            parts.append(f"</tbody>\n<tbody>\n<tr>{across}</tr>\n")
            continue
        recipe = tables.recipe_of(row)
        about = site.about(recipe) if site and recipe else {}
        data = "".join(f' data-{name}="{html.escape(value)}"' for name, value in about.items())
        parts.append(f'<tr{data}><th scope="row">{_worded(first, site)}</th>')
        for column, entry in enumerate(others, 1):
            parts.append(f"<td{_styled(kinds[column], entry.mark)}>{_worded(entry, site)}</td>")
        parts.append("</tr>\n")
    return "".join([*parts, "</tbody>\n</table>\n</div>\n", below(table.notes, site)])


def below(notes: Iterable[Entry], site: Site | None = None) -> str:
    """The notes of a table."""
    return "".join(f'<p class="{note.mark}">{_worded(note, site)}</p>\n' for note in notes)


def _styled(kind: str, mark: str) -> str:
    """The classes of a cell. A plain number has none: most cells are numbers, and half of those are empty."""
    return f' class="{f"{kind} {mark}".strip()}"' if kind != "r" or mark else ""


def _folding(head: str) -> str:
    """A heading that a browser may break inside of names and sizes, which are longer than what is below them."""
    first, *others = re.sub("[_×]", r"\g<0><wbr>", html.escape(head)).split("\n")
    return "\n".join([first, *(f"<small>{other}</small>" for other in others)])


def _unwrapped(table: Table, column: int) -> bool:
    """Whether nothing in a column of words wraps: names, and words that are short in every row."""
    words = (row[column] for row in table.rows if row[0].mark != "group")
    lengths = (sum(map(len, [entry.text, *(label for label, _ in entry.links)])) for entry in words)
    return table.whole(column) or max(lengths, default=0) <= SHORT


def _worded(entry: Entry, site: Site | None) -> str:
    links = ", ".join(_link(html.escape(label), _address(target, site)) for label, target in entry.links)
    text = html.escape(entry.text)
    if site and entry.recipe:
        text = _link(text, site.address(entry.recipe))
    text = f"<strong>{text}</strong>" if entry.mark in STRONG else text
    return f"{text} ({links})" if text and links else text or links


def _address(target: str | Recipe, site: Site | None) -> str | None:
    if isinstance(target, str):
        return target
    return site.address(target) if site else recipe_file(target)


def _link(text: str, address: str | None) -> str:
    return f'<a href="{html.escape(address)}">{text}</a>' if address else text


def figure(chart: charts.Chart, site: Site | None = None) -> str:
    """The chart under its title, and its numbers in a table that can be unfolded."""
    return (
        f"<figure>\n<figcaption><strong>{html.escape(chart.title)}</strong><br>{html.escape(chart.text)}</figcaption>\n"
        f"{chart.svg}\n<details><summary>Numbers</summary>\n{html_of(chart.table, site)}</details>\n</figure>\n"
    )


# ---- A comparison.


def comparison(results: Sequence[Result], facts: Iterable[tuple[str, str | None]]) -> str:
    """The page of one machine's completed results. ``facts``: (name, value) of where and when it was measured."""
    parts = ["<h1>GPU Cookbook: a comparison</h1>\n"]
    lines = (f"{html.escape(name)}: {html.escape(value)}" for name, value in facts if value)
    parts.append(f"<p>{'<br>'.join(lines)}</p>\n")
    workloads = grouped(results, lambda each: each.workload)
    if len(workloads) > 1:
        names = [mine[0].workload for mine in workloads]
        links = " · ".join(f'<a href="#{name}">{name}</a>' for name in names)
        parts.append(f"<nav><p>{links}</p></nav>\n")
    for mine in workloads:
        name = mine[0].workload
        parts.append(f'<h2 id="{name}">{name}</h2>\n{html_of(tables.side_by_side(mine))}')
        parts += [figure(chart) for chart in _charts(mine) if chart]
    overall = [chart for chart in (charts.share_of_limit(results), charts.roofline(results)) if chart]
    if overall:
        parts += ["<h2>All workloads</h2>\n", *map(figure, overall)]
    notes = [f"<p>{html.escape(note.text)}</p>\n" for note in tables.explained(results)]
    parts += ["<h2>How it was measured</h2>\n"] * bool(notes) + notes
    return page("GPU Cookbook: a comparison", "".join(parts))


def _charts(mine: Sequence[Result]) -> Iterator[charts.Chart | None]:
    """The charts of one workload, or None for an empty one. With a single size, bars replace the lines over sizes."""
    ok = [each for each in mine if each.ok]
    if len({each.size for each in ok}) > 1:
        yield charts.by_size(mine)
        yield charts.by_size(mine, Metric.TRANSFER)
        yield charts.by_size(mine, Metric.PINNED)
    elif len(ok) > 1:
        picks = [(each.technique, each.workload, each.technique, each.size, Metric.RESIDENT) for each in ok]
        yield charts.bars(mine, picks, f"{ok[0].workload}, {ok[0].label}: resident")
    yield charts.costs(mine)
    yield charts.cold_start(mine)


def facts_here() -> list[tuple[str, str | None]]:
    """What a comparison says about this machine and about the state of the recipes."""
    nvidia = machine.nvidia()
    gpus = ", ".join(f"{gpu.name} ({gpu.memory_bytes / 2**30:.0f} GiB)" for gpu in machine.gpus())
    driver = f"{nvidia.driver}, for CUDA up to {'.'.join(map(str, nvidia.cuda))}" if nvidia else None
    return [
        ("Processor", machine.processor()),
        ("GPUs", gpus or "no NVIDIA GPU"),
        ("Driver", driver),
        ("Date", time.strftime("%Y-%m-%d %H:%M %Z")),
        ("Commit", _commit()),
    ]


def _commit() -> str | None:
    """The commit of the clone that this package is in, or why git does not say; None if it is installed elsewhere."""
    package = Path(__file__).resolve().parents[1]
    try:
        root = git(package, "rev-parse", "--show-toplevel")
        commit = git(package, "rev-parse", "HEAD")
        # A virtual environment may lie in somebody else's clone.
        if not commit or Path(root).resolve() / "gpu_cookbook" != package:
            return None
        return commit + ", with changes" * is_changed(package.parent, CODE)
    except StoreError as error:
        return f"unknown: {error}"
