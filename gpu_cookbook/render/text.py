"""Tables as text: for a terminal, as Markdown, and their records as CSV and JSON."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich import box
from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text

from gpu_cookbook import catalogue
from gpu_cookbook.render import format
from gpu_cookbook.render.tables import Entry, Recipe, Table
from gpu_cookbook.words import markdown

WRAP = 20  # characters: the least width of a column of words before it is moved below
LEAST = 10  # the same in a terminal that has no room for that even below
GAP = 3  # characters between two columns
BREAK = re.compile("(?<=[×_])(?=[^ ])")  # where a head that is too long takes another line
COMMAND = re.compile("(?<=:) ((pip|make|gpu-cookbook|[A-Z_]+=[^ ]+ gpu-cookbook) (?:[^:]|:(?! ))+)$")
STYLES = {
    "group": Style(bold=True),
    **dict.fromkeys(("best", "tie", "faster", "recipes", "right"), Style.parse("green")),
    **dict.fromkeys(("bad", "slower"), Style.parse("red")),
    **dict.fromkeys(("no", "note"), Style(dim=True)),
}
STRONG = ("best", "tie", "group")  # the marks of entries in bold


def recipe_file(recipe: Recipe) -> str:
    """Where a recipe is, relative to the root of the repository."""
    workload, technique = recipe
    return f"recipes/{workload}/with_{technique}.py"


# ---- For a terminal.


def terminal(tables: Iterable[Table], width: int) -> RenderableType:
    """A rich renderable no wider than ``width``. Columns that do not fit are moved below, with those that name the row
    repeated. A command is one line even where that is wider: print it with ``crop=False``."""
    parts: list[RenderableType] = []
    for table in tables:
        parts.append(Text(table.title, style="bold"))
        for columns in blocks(table, width) if table.rows else ():
            drawn = rich_table.Table(box=box.SIMPLE_HEAD, pad_edge=False, leading=int("r" not in table.align))
            fits = sum(_room(table, i) for i in columns) <= width
            # If not, heads and words fold before names do, and names before a value is cut.
            heads = table.head if fits else [BREAK.sub("\n", head) for head in table.head]
            whole = not fits and sum(_least(replace(table, head=heads), i) for i in columns) <= width
            for i in columns:
                drawn.add_column(
                    heads[i],
                    justify="right" if table.align[i] == "r" else "left",
                    width=_room(table, 0) - GAP if whole and not i else None,
                    overflow="fold",
                    no_wrap=i > 0 and (table.align[i] == "r" or (fits and table.whole(i))),
                )
            for row in table.rows:
                if row[0].mark == "group":
                    drawn.add_section()
                drawn.add_row(*(_drawn(row[i]) for i in columns))
            parts.append(drawn)
        parts += [*(line for note in table.notes for line in _lines(note, width)), Text()]
    return Group(*parts)


def _lines(note: Entry, width: int) -> list[Text]:
    """A note. A command at its end, which would be broken where the note takes several lines, has one of its own."""
    text = _drawn(note)
    command = COMMAND.search(text.plain)
    if not command or cell_len(text.plain) <= width:
        return [text]
    line = text[command.start(1) :]
    line.no_wrap, line.overflow = True, "ignore"
    return [text[: command.start()], line]


def _drawn(entry: Entry) -> Text:
    """The text, as a link if the terminal supports links. Recipes are also shown by name, because gpu-cookbook show
    takes the name."""
    labels = [label for label, target in entry.links if not (entry.text and isinstance(target, str))]
    names = ", ".join(labels[:1] + [f"+{len(labels) - 1}"] * (len(labels) > 1))
    style = STYLES.get(entry.mark, Style())
    for _, target in entry.links[:1]:
        style += Style(link=target if isinstance(target, str) else _path(target).as_uri())
    return Text(f"{entry.text} ({names})" if entry.text and names else entry.text or names, style)


def _path(recipe: Recipe) -> Path:
    return catalogue.FOLDER.parent / recipe_file(recipe)


def blocks(table: Table, width: int) -> Iterator[list[int]]:
    """Lists of column numbers: the columns that name the row, and as many others as fit."""
    rooms = [_room(table, column) for column in range(len(table.head))]
    names = _names(table, width)
    block, taken = list(range(names)), sum(rooms[:names])
    for column in range(names, len(rooms)):
        if len(block) > names and taken + rooms[column] > width:
            yield block
            block, taken = list(range(names)), sum(rooms[:names])
        block.append(column)
        taken += rooms[column]
    yield block


def _names(table: Table, width: int) -> int:
    """How many columns on the left name the row: the technique, its lane and the device if there is room for them, and
    whatever else tells the rows below one heading apart. Where there is none for the lane, the technique's whole name
    tells it."""
    rooms = [_room(table, column) for column in range(len(table.head))]
    names = 1 + len(list(itertools.takewhile(lambda head: head in ("lane", "on"), table.head[1:])))
    most = max(rooms[names:], default=0)
    while names > 1 and sum(rooms[:names]) + most > width:
        names -= 1
    keys, heading = [], 0
    for row in table.rows:
        heading += row[0].mark == "group"
        keys.append((heading, *(_drawn(entry).plain for entry in row)))
    words = len(table.align) - len(table.align.lstrip("l"))
    telling = (count for count in range(1, words + 1) if len({key[: 1 + count] for key in keys}) == len(keys))
    return max(names, next(telling, 1))


def _room(table: Table, column: int) -> int:
    """The number of characters that a column takes up beside others."""
    lines = table.head[column].split("\n")
    for row in table.rows:
        text = _drawn(row[column]).plain
        lines += text.split() if row[column].mark == "group" else [text]  # a heading of rows may wrap
    room = GAP + max(map(cell_len, lines))
    return room if not column or table.whole(column) else min(room, GAP + WRAP)


def _least(table: Table, column: int) -> int:
    """The room without which a name or a value breaks, or a column of words cannot be read."""
    room = _room(table, column)
    return room if not column or table.align[column] == "r" else min(room, GAP + LEAST)


def as_markdown(tables: Iterable[Table]) -> str:
    parts = []
    for table in tables:
        parts.append(f"### {markdown(table.title)}")
        if table.rows:
            rows = [[markdown(head) for head in table.head], ["---:" if a == "r" else "---" for a in table.align]]
            rows += [list(map(_worded, row)) for row in table.rows]
            parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
        parts += map(_worded, table.notes)
    return "\n\n".join(parts) + "\n"


def _worded(entry: Entry) -> str:
    targets = [(label, target if isinstance(target, str) else recipe_file(target)) for label, target in entry.links]
    links = ", ".join(f"[{markdown(label)}]({target})" for label, target in targets)
    text = markdown(entry.text)
    text = f"**{text}**" if entry.mark in STRONG else text
    return f"{text} ({links})" if text and links else text or links


# ---- For programs.


def as_csv(tables: Sequence[Table]) -> str:
    """One line per record, and one column per key that any record has; lists are joined with spaces."""
    records = [record for table in tables for record in table.records]
    return format.as_csv(
        {key: " ".join(value) if isinstance(value, list) else value for key, value in record.items()}
        for record in records
    )


def as_json(tables: Iterable[Table]) -> str:
    """A list of tables, each with its title, its notes and its records."""
    return format.as_json(
        [{"title": t.title, "notes": [note.text for note in t.notes], "rows": list(t.records)} for t in tables]
    )
