"""For the tests of the scripts in benchmarks/: such a script as a module, lines that it has stored or somebody has
changed, and the page of the site that shows them."""

import copy
import importlib.util
import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path

from gpu_cookbook.render import html_page

ROOT = Path(__file__).parents[1]
BAD = (
    *(None, True, "", "x", "\x1b[31m", "<script>alert(1)</script>", "\ud800", "x" * 100_000, "HEAD", "NaN", "Infinity"),
    *(0, -1, -1e-5, 1, 1e-320, 1e300, 1e999, -1e999, math.nan, 10**30, 10**400, "40000", "'x'", "(1, 2)"),
    *([], {}, [[]], [None], ["x"], {"x": 1}, [1e-5] * 1000, {"x": {"x": [{"x": []}]}}),
)
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800]")  # by a terminal


def loaded(path):
    """A script as a module, under whose name its dataclasses look themselves up."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def write(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")


# ---- Lines that somebody has changed.


def places(data, at=()):
    """The path of every value; of a list, only those in its first and its last item."""
    yield at
    if isinstance(data, dict):
        for key, value in data.items():
            yield from places(value, (*at, key))
    elif isinstance(data, list) and data:
        for index in sorted({0, len(data) - 1}):
            yield from places(data[index], (*at, index))


def changed(data, at, value):
    """A copy with another value at that place; ``...`` takes it away."""
    if not at:
        return value
    made = copy.deepcopy(data)
    inner = made
    for key in at[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[at[-1]]
    else:
        inner[at[-1]] = value
    return made


def mutants(data, few):
    """(place, value, changed copy) for every place and every bad value; ``few``: a sample of them, always the same."""
    every = [(at, value) for at in places(data) for value in (*BAD, *[...] * bool(at))]
    for at, value in random.Random(15).sample(every, min(few, len(every))) if few else every:
        yield at, value, changed(data, at, value)


def dumped(data):
    return json.dumps(data).replace("1e+999", "1e999")


def require_that_changes_cost_one_line(path, line, read, tables, few=100):
    """Whatever is changed in a line costs that line at most, is named once, and can be shown if it is read. ``read()``
    gives (what there is, complaints); ``tables``: those in which one of what there is is shown."""
    good, refused = json.dumps(line | {"machine": "good"}), 0
    path.parent.mkdir(parents=True, exist_ok=True)
    for at, value, made in mutants(line, few):
        path.write_text(f"{dumped(made)}\n{good}\n")
        found, complaints = read()
        assert any(each.origin.machine == "good" for each in found) and len(complaints) <= 1, (at, value)
        assert not any(OBEYED.search(complaint) for complaint in complaints)
        refused += len(complaints)
        for each in found:
            assert "<script" not in "".join(map(html_page.html_of, tables(each)))
    assert refused > few / 3


# ---- The page that shows them.

CONF = """
import os
import sys
from pathlib import Path

os.chdir("{root}")  # whose other results the page shows, too: Sphinx has gone to its own folder
sys.path[:0] = ["{root}/docs", "{root}/benchmarks"]
import pages
import stored
from gpu_cookbook.store import together, transfers

file, root = Path("{file}"), Path("{root}")
runs, complaints = {runs}
assert not complaints
stored.{name} = lambda: {stands}
pages.HERE = Path("{source}")
pages.write_{page}()
extensions = ["myst_parser", "sphinx_design", "figures"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["generated"]
suppress_warnings = ["myst.xref_missing", "toc.not_readable"]  # of the other pages, which are not here
"""


def page_of(source, page, file, name, stands, runs="transfers.kept_in(file, root, None)"):
    """The text of index.md in a folder as the site shows it, with what is stored in this file. ``page``: what
    docs/pages.py writes for it. ``name``: the function of docs/stored.py in whose place ``stands`` this, made of
    ``runs``."""
    text = CONF.format(root=ROOT, source=source, page=page, file=file, name=name, stands=stands, runs=runs)
    (source / "conf.py").write_text(text, encoding="utf-8")
    out = source.with_name("out")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", source, out]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return (out / "index.html").read_text(encoding="utf-8")
