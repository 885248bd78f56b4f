"""What the scripts in benchmarks/ that store a line have in common."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gpu_cookbook.render.tables import Table
from gpu_cookbook.store import journal, transfers
from gpu_cookbook.store.commits import StoreError
from gpu_cookbook.terminal import console, deliver, drawn, fail, say

Save = Annotated[str | None, typer.Option(metavar="NAME", help="Store the result for a machine of this name.")]


def commit_for(save: str | None, root: Path, code: Sequence[str]) -> str:
    """What transfers.commit_here() says, before anything is measured; '' if nothing is to be stored."""
    try:
        return "" if save is None else transfers.commit_here(save, root, code)
    except StoreError as error:
        fail(str(error))


def finish(tables: Sequence[Table], file: Path, line: dict[str, Any] | None) -> None:
    """Adds the line to the file, if there is one, and prints the tables: after it, as who reads them may be gone."""
    unkept = None
    try:
        if line:
            journal.append(file, line)
    except OSError as error:
        unkept = error
    deliver(drawn(tables, console()))
    if unkept:
        say(f"The result was not saved: {unkept}")
        raise typer.Exit(1)
