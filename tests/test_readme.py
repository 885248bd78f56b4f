"""README's tables are what the tool prints: ``python tests/test_readme.py`` writes them anew from the stored results.

A block begins with <!-- gpu-cookbook tables … -->, or scale, and ends with <!-- end -->. ``, first`` and ``, last 2``
after the command take that many of its tables.
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


def written(match):
    opening, command, which, count, _, closing = match.groups()
    done = subprocess.run(
        [COMMAND, *shlex.split(command)], cwd=README.parent, capture_output=True, text=True, check=True
    )
    tables = ["### " + part for part in done.stdout.split("### ")[1:]]
    count = int(count or 1)
    tables = {None: tables, "first": tables[:count], "last": tables[-count:]}[which]
    return f"{opening}\n{''.join(tables).strip()}\n\n{closing}"


def test_the_tables_are_what_the_tool_prints():
    text = README.read_text(encoding="utf-8")
    assert BLOCK.search(text)
    assert BLOCK.sub(written, text) == text, f"python {Path(__file__).name} writes them anew"


if __name__ == "__main__":
    README.write_text(BLOCK.sub(written, README.read_text(encoding="utf-8")), encoding="utf-8")
