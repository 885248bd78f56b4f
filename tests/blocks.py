"""The Python blocks of the site's pages, run as they stand: ``python tests/blocks.py [PAGE …]`` runs those of all pages
below, and prints what came of each section.

The blocks of one section are one script, in a process of its own. One that begins with "# needs a GPU" is left out
where there is none. A script ends without an error, unless a line of it says "ends here"; and each block of ```text in
its section is a part of what it prints, where "…" stands for anything in a line.
"""

import ast
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gpu_cookbook import machine
from gpu_cookbook.run import runner

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("concepts.md", "streams.md", "profiling.md", "memory.md", "debugging.md")
PARTS = re.compile(r"^```([^\n]*)\n(.*?)^```$|^##+ ([^\n]+)$", re.MULTILINE | re.DOTALL)
NEEDS_GPU = "# needs a GPU\n"
ENDS_HERE = "ends here"
LIMIT = 120  # seconds for a section


@dataclass(frozen=True)
class Section:
    page: str
    title: str
    blocks: tuple[str, ...]  # of Python
    shown: tuple[str, ...]  # blocks of ```text: what one sees

    @property
    def script(self):
        return "\n\n".join(self.blocks)

    @property
    def obstacle(self):
        """Why it cannot run here, or None."""
        if any(block.startswith(NEEDS_GPU) for block in self.blocks) and not machine.gpus():
            return "needs an NVIDIA GPU"
        missing = [name for name in sorted(packages(self.script)) if not machine.installed(name)]
        if missing:
            return f"{', '.join(missing)} not installed"
        return machine.lacks_opencl() if "pyopencl" in packages(self.script) else None

    def run(self):
        """(what is wrong or None, what it printed)."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "script.py"
            path.write_text(self.script, encoding="utf-8")
            settings = runner.environment(folder) | {"PYTHONUNBUFFERED": "1"}
            merged = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
            try:
                command = [sys.executable, path]
                done = subprocess.run(command, cwd=folder, env=settings, timeout=LIMIT, **merged)
            except subprocess.TimeoutExpired as error:
                return f"not done after {LIMIT} s", (error.stdout or b"").decode(errors="replace")
        fault = None
        if (done.returncode == 0) == (ENDS_HERE in self.script):
            fault = f"exit status {done.returncode}"
        # A line of the script that a traceback names is the marked one. Warp ends the process without a traceback.
        named = re.findall(r'^  File "[^"]*/script\.py", line (\d+)', done.stdout, re.MULTILINE)
        if named and not any(ENDS_HERE in self.script.splitlines()[int(line) - 1] for line in named):
            fault = fault or f"it ended in line {named[-1]}"
        for text in self.shown:
            if not re.search(f"^{re.escape(text).replace('…', '.*')}", done.stdout, re.MULTILINE):
                fault = fault or f"this was not printed:\n{text}"
        return fault, done.stdout


def packages(code):
    """The top-level modules that it imports."""
    nodes = list(ast.walk(ast.parse(code)))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def sections(page):
    """The sections of a page that have Python in them."""
    title, found = "", {}
    for language, text, heading in PARTS.findall((DOCS / page).read_text(encoding="utf-8")):
        title = heading or title
        found.setdefault(title, []).append((language, text))
    every = [
        Section(page, title, *(tuple(text for kind, text in parts if kind == wanted) for wanted in ("python", "text")))
        for title, parts in found.items()
    ]
    return [section for section in every if section.blocks]


def main(pages):
    every = [section for page in pages for section in sections(page)]
    status = 0
    with ThreadPoolExecutor(4) as pool:
        outcomes = pool.map(lambda section: (None, "") if section.obstacle else section.run(), every)
        for section, (fault, printed) in zip(every, outcomes, strict=True):
            print(f"== {section.page}, {section.title}: {section.obstacle or fault or 'right'}", printed, sep="\n")
            status = 1 if fault else status
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or PAGES))
