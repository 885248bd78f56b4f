"""Whose results a machine's are: each time that they are sent is a line of benchmarks/results/MACHINE/sent.jsonl, with
what was installed and what ``doctor`` found. Its name does not end in .json, since asv takes all such files for its
own."""

from pathlib import Path
from typing import Any

from gpu_cookbook.store import door

FILE, KIND = "sent.jsonl", "sent"
SCHEMA = 1  # as in schemas/sent.json


def lines(folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The lines of a machine's folder, the newest last, and what is wrong with each line that cannot be used."""
    found, complaints = door.read_lines(folder / FILE, KIND)
    return [line for _, line in found], complaints


def contributors(those: list[dict[str, Any]]) -> dict[str, str]:
    """{commit: who sent its results} of those commits whose senders are named. Results of a commit that has no line
    are nobody's: who sent a later one may not have measured them."""
    names: dict[str, dict[str, None]] = {}
    for line in those:
        if name := line.get("contributor"):
            names.setdefault(line["commit"], {})[name] = None
    return {commit: " and ".join(each) for commit, each in names.items()}
