"""What is in recipes/, found by looking at the files: no framework is imported, and nothing is registered anywhere."""

import ast
import difflib
import importlib
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import gpu_cookbook.recipes
from gpu_cookbook import machine

FOLDER = Path(next(iter(gpu_cookbook.recipes.__path__)))
RUNS_ON = ("CPU", "NVIDIA GPU", "every NVIDIA GPU", "OpenCL device", "NVIDIA GPU or CPU")


class UnknownName(ValueError):
    """A name that is not in the catalogue; the message has the nearest ones."""


class BrokenRecipe(ValueError):
    """A recipe without the lines that CONTRIBUTING.md asks for."""


@dataclass(frozen=True)
class Recipe:
    """One workload by one technique: what its file's docstring and import statements say."""

    workload: str
    technique: str
    path: Path
    summary: str
    framework: str
    runs_on: str  # one of RUNS_ON
    install: str
    needs: str | None  # a program on PATH
    math: str
    notes: str  # what else the docstring says: of a tuned recipe, what made it faster
    imports: tuple[str, ...]  # modules of others, as the import statements name them

    @property
    def lane(self):
        return lane_of(self.technique)

    @property
    def module(self):
        return f"gpu_cookbook.recipes.{self.workload}.with_{self.technique}"

    @property
    def packages(self):
        """The top-level modules that must be installed."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.imports))


def lane_of(technique):
    return "tuned" if technique.endswith("_tuned") else "idiomatic"


def read(path):
    """The Recipe in a file; BrokenRecipe where its docstring lacks a line."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    summary, _, rest = (ast.get_docstring(tree) or "").partition("\n\n")
    lines, _, notes = rest.partition("\n\n")
    facts = dict(line.split(": ", 1) for line in lines.splitlines() if ": " in line)
    missing = [key for key in ("Framework", "Runs on", "Install") if key not in facts]
    if missing:
        raise BrokenRecipe(f"{path}: the docstring has no line '{missing[0]}: …' (see CONTRIBUTING.md)")
    if facts["Runs on"] not in RUNS_ON:
        raise BrokenRecipe(f"{path}: 'Runs on: {facts['Runs on']}' is none of: {', '.join(RUNS_ON)}")
    return Recipe(
        workload=path.parent.name,
        technique=path.stem.removeprefix("with_"),
        path=path,
        summary=" ".join(summary.split()),
        framework=facts["Framework"],
        runs_on=facts["Runs on"],
        install=facts["Install"],
        needs=facts.get("Needs"),
        math=facts.get("Math", ""),
        notes=notes,
        imports=tuple(_imports(tree)),
    )


def _imports(tree):
    for node in tree.body:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module]
        for name in names:
            if name.partition(".")[0] not in sys.stdlib_module_names:
                yield name


@cache
def workloads():
    """Workload -> the first line of its docstring."""
    return {
        file.parent.name: (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")[0]
        for file in sorted(FOLDER.glob("*/__init__.py"))
    }


@cache
def recipes():
    """Every recipe, NumPy's first in each workload, then by name."""
    found = [read(path) for workload in workloads() for path in (FOLDER / workload).glob("with_*.py")]
    return sorted(found, key=lambda r: (r.workload, r.technique != "numpy", r.technique))


def workload_module(name):
    """The workload's own module: SIZES, inputs, reference, …"""
    return importlib.import_module(f"gpu_cookbook.recipes.{name}")


def default_sizes(name):
    """The headline sizes of a workload that suit this machine: without a GPU the two smaller ones."""
    sizes = workload_module(name).SIZES
    return list(sizes if machine.gpus() else sizes[:2])


def choose(workload_names=(), technique_names=(), lane=None):
    """The recipes of these workloads, techniques and this lane; all of them where none is named. UnknownName for a
    wrong one."""
    techniques = sorted({recipe.technique for recipe in recipes()})
    for kind, names, known in (
        ("workload", workload_names, list(workloads())),
        ("technique", technique_names, techniques),
    ):
        for name in names:
            if name not in known:
                raise UnknownName(nearest(kind, name, known))
    chosen = [
        recipe
        for recipe in recipes()
        if (not workload_names or recipe.workload in workload_names)
        and (not technique_names or recipe.technique in technique_names)
        and (not lane or recipe.lane == lane)
    ]
    if not chosen:
        words = [f" for {', '.join(workload_names)}"] if workload_names else []
        words += [f" with {', '.join(technique_names)}"] if technique_names else []
        words += [f" in the {lane} lane"] if lane else []
        raise UnknownName(f"No recipe{''.join(words)}. 'gpu-cookbook list' shows what there is.")
    return chosen


def nearest(kind, name, known):
    """'Unknown workload …' with the names that look most like it, or all where none does."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return f"Unknown {kind} '{name}'. Did you mean {' or '.join(close)}?"
    return f"Unknown {kind} '{name}'. There are: {', '.join(known)}."
