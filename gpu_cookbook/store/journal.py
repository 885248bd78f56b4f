"""Append-only files of JSON lines: adding a line under a lock, and reading, even after a line was cut off."""

import fcntl
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def append(path: Path, line: dict[str, Any], unless: Callable[[list[dict[str, Any]]], bool] | None = None) -> None:
    """Adds a line in one step, even if other processes are writing. A line that was cut off before it is ended first.

    ``unless`` gets the existing lines while no other process can add one. If it returns true, nothing is added.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        before = file.read()
        if unless and unless([entry for _, entry in _lines(before)]):
            return
        ended = before.endswith(b"\n") or not before  # if not, the process that wrote the last line was killed
        file.write(b"\n" * (not ended) + json.dumps(line, ensure_ascii=False).encode() + b"\n")


def read(path: Path, strict: bool = False) -> list[tuple[int, dict[str, Any]]]:
    """(line number, object) of each line that is a JSON object; [] if there is no such file.

    Other lines, such as one that was cut off, are left out. ``strict``: a ValueError names the first of them that
    is not empty."""
    try:
        return list(_lines(path.read_bytes(), strict))
    except FileNotFoundError:
        return []


def _lines(content: bytes, strict: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, text in enumerate(content.splitlines(), 1):
        try:
            entry = json.loads(text)
        except (ValueError, RecursionError):
            entry = None
        if isinstance(entry, dict):
            yield number, entry
        elif strict and text:
            raise ValueError(f"line {number} is not a JSON object")
