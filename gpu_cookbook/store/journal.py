"""Append-only files of JSON lines: a line is added under a lock. door.py reads them."""

import fcntl
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def append(path: Path, line: dict[str, Any], unless: Callable[[bytes], bool] | None = None) -> None:
    """Adds a line in one step, even if other processes are writing. A line that was cut off before it is ended first.

    ``unless`` gets what is there while no other process can add a line. If it returns true, nothing is added.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        before = file.read()
        if unless and unless(before):
            return
        ended = before.endswith(b"\n") or not before  # if not, the process that wrote the last line was killed
        file.write(b"\n" * (not ended) + json.dumps(line, ensure_ascii=False).encode() + b"\n")
