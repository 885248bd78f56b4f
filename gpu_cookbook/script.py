"""What the scripts that are run by themselves have in common: those in benchmarks/, which may store a line, and
docs/readme.py."""

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gpu_cookbook import catalogue
from gpu_cookbook.render.tables import Table
from gpu_cookbook.store import journal, transfers
from gpu_cookbook.store.commits import StoreError
from gpu_cookbook.terminal import console, deliver, drawn, fail, prepare, refusals_said, say, set_aside

Save = Annotated[str | None, typer.Option(metavar="NAME", help="Store the result for a machine of this name.")]


def run(main: Callable[..., None]) -> None:
    """Calls it with what the command line says, with the same around it as the command gpu-cookbook has."""
    context = {"help_option_names": ["-h", "--help"]}
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, context_settings=context)
    app.command()(main)
    try:
        with refusals_said():
            prepare()
            try:
                app()
            except (StoreError, catalogue.UnknownName) as error:
                fail(str(error))
    except typer.Exit as ended:
        sys.exit(ended.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


def commit_for(save: str | None, root: Path, code: Sequence[str], file: Path) -> str:
    """What transfers.commit_here() says, before anything is measured; '' if nothing is to be stored. StoreError, too,
    if the file cannot be written; UnknownName if there is no such environment."""
    catalogue.require_environment()
    if save is None:
        return ""
    commit = transfers.commit_here(save, root, code)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            file.open("ab").close()
        else:
            tempfile.TemporaryFile(dir=file.parent).close()
    except OSError as error:
        raise StoreError(f"Nothing can be stored in {file}: {error.strerror}") from None
    return commit


class Interruptible:
    """A context that Ctrl-C ends, and nothing else: what is known by then is shown."""

    stopped = False

    def __enter__(self) -> "Interruptible":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self.stopped = kind is KeyboardInterrupt
        return self.stopped


def finish(
    tables: Sequence[Table], file: Path, line: dict[str, Any] | None, stopped: bool = False, notes: str = ""
) -> None:
    """Adds the line to the file, if there is one, and prints the tables and the notes: after it, as who reads them may
    be gone. What was ``stopped`` by Ctrl-C is only printed."""
    unkept = None
    try:
        if line and not stopped:
            journal.append(file, line)
    except OSError as error:
        unkept = error
        set_aside(json.dumps(line, ensure_ascii=False) + "\n", f"The result was not saved: {error}.")
    deliver(drawn(tables, console()) + notes)
    if unkept:
        raise typer.Exit(1)
    if stopped:
        say("Stopped early: this was not stored." if line else "Stopped early.")
        raise typer.Exit(130)
