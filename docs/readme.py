"""Rewrites README's tables from the stored results: ``make readme``, or ``python docs/readme.py``.

A block begins with <!-- gpu-cookbook tables … -->, or scale, and ends with <!-- end -->. ``, first`` or ``, last 2``
after the command keeps only these of its tables.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
COMMAND = Path(sys.executable).with_name("gpu-cookbook")
BLOCK = re.compile(
    r"(<!-- gpu-cookbook ((?:tables|scale) [^,]*?)(?:, (first|last) ?(\d*))? -->\n)(.*?)(<!-- end -->)", re.DOTALL
)


def block(match: re.Match[str]) -> str:
    opening, command, which, count, _, closing = match.groups()
    done = subprocess.run(
        [COMMAND, *shlex.split(command)], cwd=README.parent, capture_output=True, text=True, check=True
    )
    tables = ["### " + part for part in done.stdout.split("### ")[1:]]
    number = int(count or 1)
    tables = {None: tables, "first": tables[:number], "last": tables[-number:]}[which]
    return f"{opening}\n{''.join(tables).strip()}\n\n{closing}"


def written(text: str) -> str:
    """README's text with the tables that the tool prints now."""
    return BLOCK.sub(block, text)


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
