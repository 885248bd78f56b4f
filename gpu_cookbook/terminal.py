"""What the tool says, and where: tables, messages and progress, on a terminal, in a pipe or in a file."""

import contextlib
import enum
import errno
import io
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gpu_cookbook.render import format
from gpu_cookbook.results import Result, record
from gpu_cookbook.words import plain

PATIENCE = 5  # seconds, in which a second Ctrl-C ends nothing
PIPE_WIDTH = 160  # in characters, if the output is not a terminal: a file has no width of its own


class TableFormat(enum.StrEnum):
    """The formats of tables of results, measured now or stored."""

    table = "table"
    markdown = "markdown"
    csv = "csv"
    json = "json"
    html = "html"


def console() -> Console:
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=PIPE_WIDTH)


def say(message: str) -> None:
    """A message, in lines of its own on standard error."""
    print(*map(plain, message.split("\n")), sep="\n", file=sys.stderr)


def fail(message: str) -> NoReturn:
    """Report bad input and what to do about it on standard error, and exit with 2."""
    say(message)
    raise typer.Exit(2)


def complain(complaints: Sequence[str]) -> None:
    """One line for each, after everything else was shown; exits with 1 if there are any."""
    for complaint in complaints:
        say(complaint)
    if complaints:
        raise typer.Exit(1)


def prepare() -> None:
    """What comes before everything else: signals and streams."""
    end = interrupting()
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # what was measured is kept, and no process is left
        if signal.getsignal(name) is not signal.SIG_IGN:  # nohup has it ignored
            signal.signal(name, end)
    require_streams()


def interrupting() -> Callable[[int, object], None]:
    """A handler of signals that raises KeyboardInterrupt, and not again for some seconds: whoever presses Ctrl-C twice,
    or a shell that signals the process and its group, would stop what ends the workers, and lose what was measured."""
    last = -math.inf

    def interrupt(number: int, frame: object) -> None:
        nonlocal last
        if time.monotonic() - last > PATIENCE:
            last = time.monotonic()
            raise KeyboardInterrupt

    return interrupt


class Lossy(io.FileIO):
    """What cannot be written here is lost, without an error."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def require_streams() -> None:
    """Makes the standard streams fit for everything that is written. Exits if there is no standard output."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # it was closed: a file that is opened later must not take its place
    os.close(descriptor)
    output_is_closed = sys.stdout is None
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="gpu-cookbook")
            if stream is sys.__stderr__:  # no message on a full disk is worth what was measured
                raw = io.BufferedWriter(Lossy(stream.fileno(), "w", closefd=False))
                sys.stderr = io.TextIOWrapper(
                    raw, stream.encoding, stream.errors, line_buffering=True, write_through=stream.write_through
                )
    if output_is_closed:
        fail("Standard output is closed: redirect it into a file, or to /dev/null.")


def end_output() -> None:
    """Writes what is left of the output. If that is impossible, it is discarded: the end of the process would try again
    to write it."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(io.UnsupportedOperation), Path(os.devnull).open("w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextlib.contextmanager
def refusals_said() -> Iterator[None]:
    """What the system refuses, such as writing to a full disk, is said in a line, and the exit code is 1."""
    try:
        try:
            yield
        finally:  # after an exit, too
            if sys.stdout:  # not closed from the start, of which require_streams tells
                sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.EPIPE:  # whoever reads the output may have seen enough
            say(f"Cannot go on: {error}")
        end_output()
        raise typer.Exit(1) from None


def write(text: str, form: TableFormat | None = None) -> None:
    """Writes to standard output. A page says of itself that it is in UTF-8."""
    if form is TableFormat.html and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(text)


def deliver(text: str, form: TableFormat | None = None) -> None:
    """Writes what was measured to standard output or, if that has become impossible, into a file that a message
    names."""
    try:
        write(text, form)
        sys.stdout.flush()
    except OSError as error:
        end_output()
        set_aside(text, f"Cannot write to standard output ({error.strerror}).")
        raise typer.Exit(1) from None


def set_aside(text: str, why: str) -> None:
    """Writes what was measured and could not go where it belongs into a file that a message names; if that is
    impossible, too, to standard error."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="gpu-cookbook-", suffix=".txt", encoding="utf-8", delete=False
        ) as file:
            file.write(text)
    except OSError:
        say(why)
        sys.stderr.write(text)
    else:
        say(f"{why} What was measured is in {file.name}")


def progress() -> Progress:
    """A progress bar on standard error if it is a terminal; otherwise nothing."""
    err = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )


def write_tables(found: Sequence[Any], form: TableFormat) -> None:
    write(table_text(found, form), form)


def table_text(found: Sequence[Any], form: TableFormat) -> str:
    from gpu_cookbook.render import html_page, text

    if form is TableFormat.table:
        return drawn(found, console())
    others = {"markdown": text.as_markdown, "csv": text.as_csv, "json": text.as_json}
    return others.get(form, html_page.as_html)(found)


def drawn(found: Sequence[Any], out: Console) -> str:
    """Tables as wide as the console ``out``, in its colours."""
    from gpu_cookbook.render import text

    # Afterwards, rich writes nothing to its file, and a full one may refuse even that.
    with contextlib.suppress(OSError), out, out.capture() as captured:
        out.print(text.terminal(found, out.width), crop=False)
    return captured.get()


def written(results: Sequence[Result], form: TableFormat, out: Console) -> str:
    """The comparison as text; a table is as wide as the console ``out`` and has its colours."""
    from gpu_cookbook.render import html_page, tables, text  # more imports than 'list' can afford

    if form is TableFormat.table:
        return drawn(tables.compared(results), out)
    if form is TableFormat.markdown:
        return text.as_markdown(tables.compared(results))
    if form is TableFormat.html:
        return html_page.comparison(results, html_page.facts_here())
    rows = [record(each) for each in results]
    for row, each in zip(rows, results, strict=True):
        row |= {"commit": each.origin.commit, "date": each.origin.date} if each.origin else {}
    return {"csv": format.as_csv, "json": format.as_json}[form](rows)


def cannot_write(path: Path, error: OSError) -> str:
    return f"Cannot write {path}: {error.strerror}. Name a file that you can write to, in an existing folder."


def cannot_show(form: TableFormat, error: Exception) -> str:
    return f"Cannot show this as {form} ({type(error).__name__}: {error}): it is shown as JSON instead."
