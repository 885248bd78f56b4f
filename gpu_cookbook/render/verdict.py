"""What ``gpu-cookbook verify`` and ``send`` found about a folder, for a terminal."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gpu_cookbook.results import grouped
from gpu_cookbook.store.verifying import Finding, Verdict
from gpu_cookbook.units import counted

COMMAND = re.compile(r"(gpu-cookbook|pip|git|asv) [a-z]")
INDENT = 7  # of what to do: as wide as error and note


@dataclass(frozen=True)
class Shown:
    """A verdict: the errors, then the notes. What to do stands once, below all those that it mends. Where it has a
    command to copy, it is one line even where that is wider: print it with ``crop=False``."""

    verdict: Verdict

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        verdict = self.verdict
        yield Text(verdict.name, style="bold", overflow="fold")
        yield Text(verdict.summary, overflow="fold")
        for those in grouped(verdict.findings, lambda each: (each.grave, each.place.partition(",")[0], each.advice)):
            yield Text("")
            for each in those:
                yield _line(each)
            if those[0].advice:
                advice = Text(f"-> {those[0].advice}", style="cyan", overflow="fold")
                if COMMAND.search(advice.plain):
                    yield Text.assemble(" " * INDENT, advice, no_wrap=True, overflow="ignore")
                else:
                    yield Padding(advice, (0, 0, 0, INDENT), expand=False)
        yield Text("")
        notes = len(verdict.findings) - verdict.errors
        end = "it cannot be accepted as it is" if verdict.errors else "it can be accepted"
        if verdict.nothing:
            end = "nothing was looked at"
        yield Text(
            f"{counted(verdict.errors, 'error')}, {counted(notes, 'note')}: {end}.",
            style="bold red" if verdict.errors else "green",
        )


def _line(finding: Finding) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=5, no_wrap=True)
    grid.add_column(overflow="fold")
    kind = Text("error", "bold red") if finding.grave else Text("note", "yellow")
    grid.add_row(kind, Text.assemble((finding.place, "bold"), f": {finding.what}"))
    return grid
