"""What is read from benchmarks/results comes in here. It is data that anybody may have written: each file, or each line
of a file of lines, must fit the JSON Schema of its kind in schemas/, and what does not costs only itself."""

import itertools
import json
import math
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar, cast

from jsonschema_rs import Draft202012, Draft202012Validator, Registry, ValidationError

from gpu_cookbook.store.commits import StoreError, UnknownCommit, without_commits
from gpu_cookbook.words import plain

T = TypeVar("T")
SCHEMAS = Path(__file__).parent / "schemas"
MOST_BYTES = 2**23  # of a file: ten times the largest there is
MOST_LINE = 2**20  # bytes
MOST_LINES = 50_000
MOST_DEPTH = 12  # of objects and arrays in one another
SHOWN = 200  # characters of a complaint


class Unfit(ValueError):
    """What cannot be used, and where the fault is."""


def fit(text: bytes, kind: str) -> Any:
    """The value that this JSON text stands for, if it fits the schema of that name; its texts are plain. NaN and
    Infinity, which JSON does not have, are texts of these names."""
    return _in_thread(_fit, text, kind)


def _fit(text: bytes, kind: str) -> Any:
    try:
        data = json.loads(text.decode(), parse_constant=str, parse_float=_number)
    except UnicodeDecodeError:
        raise Unfit("is not text in UTF-8") from None
    except RecursionError:
        raise Unfit("has too many objects or arrays in one another") from None
    except ValueError as error:  # no JSON, or an integer of thousands of digits
        raise Unfit(f"is not JSON, or is cut off ({plain(str(error))[:SHOWN]})") from None
    _refuse_depth(data)
    data = _plain(data)
    try:
        _validator(kind).validate(data)
    except ValidationError as error:
        if error.instance_path == ["version"]:  # no file has one but asv's
            raise Unfit(
                "was written by another version of asv, whose files this one does not read: move it away, and measure"
                " again with the asv that is installed here"
            ) from None
        place = "".join(f"[{key!r}]" for key in error.instance_path)
        raise Unfit(f"{place[:SHOWN]}: {_message(error)}" if place else _message(error)) from None
    return data


def read_file(path: Path) -> Any:
    """The content of one of asv's files; Unfit if it does not fit the schema of its kind."""
    return fit(_content(path), path.stem if path.name in ("machine.json", "benchmarks.json") else "results")


def read_lines(path: Path, kind: str) -> tuple[list[tuple[int, Any]], list[str]]:
    """[(number, value) of each line that fits the schema], and what is wrong with each other line. Nothing if there is
    no such file; empty lines do not count."""
    try:
        found, faults = fit_lines(_content(path), kind)
    except FileNotFoundError:
        return [], []
    except Unfit as error:
        return [], [f"{shown(path)}: {error}"]
    return found, [f"{shown(path)}, line {number}: {fault}" for number, fault in faults]


def made_of_lines(
    path: Path, kind: str, make: Callable[[Any], T], machine: str | None = None
) -> tuple[list[T], list[str]]:
    """What is made of each line that fits, and what is wrong with each other line: ``make`` raises a ValueError or a
    StoreError. ``machine``: whose lines they must be, unless the file is shared."""
    lines, complaints = read_lines(path, kind)
    found, unknown = [], {}
    for number, line in lines:
        try:
            if machine not in (None, line.get("machine")):
                raise Unfit(f"belongs to {line['machine']}, not to {plain(machine or '')}")
            found.append(make(line))
        except UnknownCommit as error:
            unknown[f"{shown(path)}, line {number}"] = error
        except (ValueError, StoreError) as error:
            complaints.append(f"{shown(path)}, line {number}: {error}")
    return found, complaints + without_commits(unknown, shown(path), "lines")


def everywhere(folder: Path, file: str) -> dict[Path, str | None]:
    """{path: whose lines it has} of a file of lines in this folder of results: in the folders of machines that came in,
    and last the shared one, with lines of any machine."""
    return {path: path.parent.name for path in sorted(folder.glob(f"*/{file}"))} | {folder / file: None}


def fit_lines(content: bytes, kind: str) -> tuple[list[tuple[int, Any]], list[tuple[int, Unfit]]]:
    """[(number, value) of each line that fits], [(number, fault) of each other]."""
    return _in_thread(_fit_lines, content, kind)


def _fit_lines(content: bytes, kind: str) -> tuple[list[tuple[int, Any]], list[tuple[int, Unfit]]]:
    found, faults = [], []
    lines = content.split(b"\n")
    for number, line in enumerate(lines[:MOST_LINES], 1):
        try:
            if len(line) > MOST_LINE:
                raise Unfit(f"is longer than {MOST_LINE:,} bytes")
            if line.strip():
                found.append((number, _fit(line, kind)))
        except Unfit as error:
            faults.append((number, error))
    if len(lines) > MOST_LINES + 1:  # the last line ends, too
        faults.append((MOST_LINES + 1, Unfit("it and what follows is not read: there are too many lines")))
    return found, faults


def shown(path: Path) -> str:
    """The path as complaints name it: from benchmarks/ on, if it is in there."""
    parts = path.parts
    start = len(parts) - 1 - parts[::-1].index("benchmarks") if "benchmarks" in parts else 0
    return plain(str(Path(*parts[start:])))


def _content(path: Path) -> bytes:
    try:
        if not path.is_file() and path.exists():
            raise Unfit("is not a regular file")  # a pipe would be waited for
        if path.stat().st_size > MOST_BYTES:
            raise Unfit(f"is larger than {MOST_BYTES / 2**20:.0f} MiB")
        return path.read_bytes()
    except FileNotFoundError:
        if path.is_symlink():
            raise Unfit("is a link that leads nowhere") from None
        raise
    except OSError as error:
        raise Unfit(f"cannot be read: {error.strerror}") from None


@cache
def _validator(kind: str) -> Draft202012Validator:
    schemas = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in SCHEMAS.glob("*.json")}
    return Draft202012Validator(schemas[f"{kind}.json"], registry=Registry(list(schemas.items()), draft=Draft202012))


def _in_thread(function: Callable[[bytes, str], T], content: bytes, kind: str) -> T:
    """What the function returns or raises, called in the thread of this process that reads JSON and validates it.
    jsonschema_rs writes numbers by Python's str(), which runs the handlers of signals, and drops what they raise, such
    as KeyboardInterrupt; but only the main thread runs them. The queues are SimpleQueues, since Ctrl-C may come at any
    moment: the locks of others, as of an executor, could stay locked for ever."""
    answer: SimpleQueue[Any] = SimpleQueue()
    _jobs(os.getpid()).put((function, content, kind, answer))
    found, error = answer.get()
    if error is not None:
        raise error
    return cast("T", found)


@cache
def _jobs(process: int) -> "SimpleQueue[Any]":
    """What the thread of this process is to do. A fork has no threads, and makes its own."""
    jobs: SimpleQueue[Any] = SimpleQueue()

    def work() -> None:
        while True:
            function, content, kind, answer = jobs.get()
            try:
                answer.put((function(content, kind), None))
            except Exception as error:  # whoever asked gets it
                answer.put((None, error))
            del content, answer

    Thread(target=work, daemon=True).start()
    return jobs


def _message(error: ValidationError) -> str:
    """What is wrong, but of a long value only the beginning."""
    what = plain(error.message)
    return what if len(what) <= SHOWN else f"{what[: SHOWN // 2]} … {what[-SHOWN // 2 :]}"


def _number(text: str) -> float | str:
    """The number; 'Infinity' if it is too large for one, such as 1e999."""
    value = float(text)
    return value if math.isfinite(value) else "Infinity"


def _refuse_depth(data: Any) -> None:
    level = [data]
    for _ in range(MOST_DEPTH):
        inner = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, (dict, list))]
        level = list(itertools.chain.from_iterable(inner))
    if level:
        raise Unfit(f"has more than {MOST_DEPTH} objects or arrays in one another")


def _plain(data: Any) -> Any:
    if isinstance(data, str):
        return plain(data)
    if isinstance(data, dict):
        return {plain(key): _plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_plain(each) if isinstance(each, (str, dict, list)) else each for each in data]
    return data
