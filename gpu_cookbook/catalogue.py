"""The contents of recipes/, found by reading the files: no framework is imported, and nothing is registered."""

import ast
import difflib
import importlib
import math
import os
import re
import shlex
import symtable
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

import gpu_cookbook.recipes
from gpu_cookbook import machine
from gpu_cookbook.words import plain

FOLDER = Path(next(iter(gpu_cookbook.recipes.__path__)))
RUNS_ON = ("CPU", "NVIDIA GPU", "every NVIDIA GPU", "OpenCL device", "NVIDIA GPU or CPU")
LINES = ("Framework", "Runs on", "Install", "Needs", "Follows", "Engine", "Samples", "Environment", "Math", "Shapes")
REQUIRED = ("Framework", "Runs on", "Install")
WORKLOAD = (  # what every workload defines
    *("SIZES", "EDGE_SIZES", "TIME_LIMIT", "label", "inputs", "wrong_inputs", "reference", "tolerance", "error_scale"),
    *("bytes_moved", "operations", "footprint"),
)
OPTIONAL = {  # what a workload may define as well
    "AXES": "the only number of axes that its arrays may have",
    "GIVEN": "where the work begins, in words for choose, if upload() does more than copy; transfers are not measured",
    "MORE_SIZES": "sizes between the edge sizes, for plain inputs",
    "LARGE_SIZES": "sizes beyond them, likewise",
    "MANY_PIECES": "the size at which a round_trip() in pieces fills each of its buffers more than once",
    "special_inputs": "(description, arrays) of NaN, infinities and the like, at a size",
    "exact_inputs": "(description, arrays) that have only one right answer, at a size",
    "too_small": "why the work cannot be done at a size, or None",
    "shape": "the lengths of its array at a size that is neither a number nor a tuple of them",
}
# What a Shapes line says of a size. What each GPU takes, does not: there may be more of them.
MOST = re.compile(r"(?P<fewer>fewer than|at most) 2\*\*(?P<power>\d+) (elements|rows|samples)(?! for each GPU)")
NAME = re.compile("[a-z][a-z0-9_]{0,99}")  # of a technique; the schemas of stored files take 100 characters
WITHOUT_ARRAYS = "random_subset_mean"  # the workload with nothing to upload
MISSPELT = 0.92  # how alike two names are (difflib) if one is taken for the other, misspelt
MOST_SIMILAR = 3  # names that are suggested in place of an unknown one, as many as difflib finds
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # from parsing; the last two: too deeply nested


class UnknownName(ValueError):
    """A name that is not in the catalogue; the message suggests similar ones."""


class BrokenRecipe(ValueError):
    """A recipe or a workload that cannot be read, or that lacks what CONTRIBUTING.md requires."""


@dataclass(frozen=True)
class Recipe:
    """One workload done by one technique, as described by the docstring, the imports and the functions of its file.
    Of a broken one, only the name, the file and the ``fault`` are known; its framework is called like its technique."""

    workload: str
    technique: str
    path: Path
    summary: str
    framework: str
    runs_on: str  # one of RUNS_ON
    install: str
    needs: str | None = None  # a program on PATH
    follows: tuple[str, ...] = ()  # the addresses of the documentation that teaches this way
    engine: str | None = None  # if a recipe starts one: "Dask, futures"
    samples: str | None = None  # if a tuned recipe averages other random samples than the lane's shared ones: which
    environments: tuple[str, ...] = ()  # those in which it can run; empty: it can run in every one
    math: str = ""
    shapes: str | None = None  # if it does not take arrays of any shape: which ones
    notes: str = ""  # the rest of the docstring: for a tuned recipe, what made it faster
    imports: tuple[str, ...] = ()  # third-party modules, as the import statements name them
    is_script: bool = False  # ends with if __name__ == "__main__":
    kernels: tuple[str, ...] = ()  # names of files in kernels/ that it reads
    # {function of the module: names of its parameters}
    functions: dict[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    fault: str | None = None  # why it cannot be used

    @property
    def lane(self) -> str:
        return lane_of(self.technique)

    @property
    def module(self) -> str:
        return f"gpu_cookbook.recipes.{self.workload}.with_{self.technique}"

    @property
    def packages(self) -> tuple[str, ...]:
        """The top-level modules that must be installed."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.imports))

    @property
    def shares_samples(self) -> bool:
        """Whether it averages the random samples that the tuned lane shares."""
        return self.lane == "tuned" and not self.samples

    @property
    def makes_fewer_samples(self) -> bool:
        """Whether it makes only those random samples that are averaged. Only random_subset_mean has samples."""
        return self.shares_samples and hasattr(workload_module(self.workload), "shared_operations")

    @property
    def takes_address(self) -> bool:
        """Whether it can use an engine that is already running."""
        return "address" in self.functions.get("engine", ())

    def refuses(self, size: Any) -> str | None:
        """Why it does not take a size, as its Shapes line says; None if it does. Of a table, rows are the first of its
        numbers."""
        if not (limit := MOST.search(self.shapes or "")):
            return None
        workload = workload_module(self.workload)
        sides = workload.shape(size) if hasattr(workload, "shape") else (size if isinstance(size, int) else size[0],)
        if math.prod(sides) < 2 ** int(limit["power"]) + (limit["fewer"] == "at most"):
            return None
        return f"{workload.label(size)} are too many: it takes {limit[0]}"

    @property
    def environment(self) -> str:
        """The environment that it runs in: this process's if it can run there, otherwise the first of its own."""
        here = machine.environment()
        return here if not self.environments or here in self.environments else self.environments[0]


def lane_of(technique: str) -> str:
    return "tuned" if technique.endswith("_tuned") else "idiomatic"


def read(path: Path) -> Recipe:
    """The Recipe in a file. BrokenRecipe if that is not Python, or if its docstring lacks a line."""
    text = _text(path)
    try:
        tree = ast.parse(text, str(path))
    except UNREADABLE as error:
        raise BrokenRecipe(f"{path}: {unreadable(error)}") from None
    summary, _, rest = (ast.get_docstring(tree) or "").partition("\n\n")
    lines, _, notes = rest.partition("\n\n")
    pairs = [line.split(": ", 1) for line in lines.splitlines() if ": " in line]
    facts = dict(pairs)
    for key in facts:
        if key not in LINES:
            raise BrokenRecipe(f"{path}: the docstring's line '{key}: …' must be one of: {', '.join(LINES)}")
    missing = [key for key in REQUIRED if key not in facts]
    if missing:
        raise BrokenRecipe(f"{path}: the docstring has no line '{missing[0]}: …' (see CONTRIBUTING.md)")
    if facts["Runs on"] not in RUNS_ON:
        raise BrokenRecipe(f"{path}: 'Runs on: {facts['Runs on']}' must be one of: {', '.join(RUNS_ON)}")
    try:
        requirements(facts["Install"])
    except BrokenRecipe as error:
        raise BrokenRecipe(f"{path}: {error}") from None
    environments = tuple(word.strip() for word in facts.get("Environment", machine.MAIN).split(","))
    return Recipe(
        workload=path.parent.name,
        technique=path.stem.removeprefix("with_"),
        path=path,
        summary=" ".join(summary.split()),
        framework=facts["Framework"],
        runs_on=facts["Runs on"],
        install=facts["Install"],
        needs=facts.get("Needs"),
        follows=tuple(page for key, page in pairs if key == "Follows"),
        engine=facts.get("Engine"),
        samples=facts.get("Samples"),
        environments=() if environments == ("every",) else environments,
        math=facts.get("Math", ""),
        shapes=facts.get("Shapes"),
        notes=notes,
        imports=tuple(_imports(tree)),
        is_script=isinstance(end := tree.body[-1], ast.If) and ast.unparse(end.test) == "__name__ == '__main__'",
        kernels=tuple(dict.fromkeys(kernel_readings(tree).values())) if '"kernels"' in text else (),
        functions={
            node.name: tuple(argument.arg for argument in (*node.args.posonlyargs, *node.args.args))
            for node in tree.body
            if isinstance(node, ast.FunctionDef)
        },
    )


def _text(path: Path) -> str:
    """What is in a file of source code. BrokenRecipe if it cannot be read."""
    try:
        if not path.is_file():
            raise BrokenRecipe(f"{path}: is not a file")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BrokenRecipe(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BrokenRecipe(f"{path}: {unreadable(error)}") from None
    if text.startswith("\ufeff"):  # which Python skips, but a kernel's text would begin with it
        raise BrokenRecipe(f"{path}: begins with a byte order mark: save the file in UTF-8 without one")
    return text


def kernel_text(recipe: Path, name: str) -> str:
    """The text of a kernel, found as the recipe in this file finds it. BrokenRecipe if it cannot be read, or cannot be
    put into a Python string as it is."""
    path = recipe.parents[2] / "kernels" / name
    text = _text(path)
    if '"""' in text:
        raise BrokenRecipe(f'{recipe} reads {path}, which contains """ and so cannot be put into a Python string')
    return text


def unreadable(error: Exception) -> str:
    """Why a file cannot be read as Python, in one line."""
    match error:
        case UnicodeDecodeError():
            return f"byte {error.start} is not UTF-8: save the file in UTF-8"
        case SyntaxError(lineno=int(line)):
            return f"line {line}: {error.msg}"
        case SyntaxError():
            return f"cannot be read as Python: {error.msg}"
    return "cannot be read as Python: it is too deeply nested"


def requirements(install: str) -> list[Requirement]:
    """The requirements in an Install line: 'pip install ray "numpy<2.5"' → ray and numpy<2.5. BrokenRecipe if it is
    anything but pip install and requirements."""
    try:
        pip, verb, *words = shlex.split(install)
        found = [Requirement(word) for word in words]
    except (InvalidRequirement, ValueError) as error:
        raise BrokenRecipe(f"'Install: {install}' cannot be read: {error}") from error
    if (pip, verb) != ("pip", "install") or not found:
        raise BrokenRecipe(f"'Install: {install}' is not 'pip install' followed by requirements")
    return found


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        for name in names:
            if name.partition(".")[0] not in sys.stdlib_module_names:
                yield name


def kernel_readings(tree: ast.Module) -> dict[ast.Call, str]:
    """Every (… / "kernels" / "NAME").read_text(…) in a recipe, with the name."""
    found = {}
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.BinOp(
                        left=ast.BinOp(right=ast.Constant(value="kernels")), right=ast.Constant(value=str(name))
                    ),
                    attr="read_text",
                )
            ):
                found[node] = name
    return found


def _read_workload(path: Path) -> str:
    """The first line of a workload's docstring. BrokenRecipe if the file is not Python, or lacks a name."""
    text = _text(path)
    try:
        tree, table = ast.parse(text, str(path)), symtable.symtable(text, str(path), "exec")
    except UNREADABLE as error:
        raise BrokenRecipe(f"{path}: {unreadable(error)}") from None
    _require(path, {each.get_name() for each in table.get_symbols() if each.is_assigned() or each.is_imported()})
    return (ast.get_docstring(tree) or "").partition("\n")[0]


def _require(path: Path, names: Collection[str]) -> None:
    if missing := [name for name in WORKLOAD if name not in names]:
        raise BrokenRecipe(f"{path}: does not define {', '.join(missing)}")
    known = {*WORKLOAD, *OPTIONAL}
    for name in {*names} - known:  # a misspelt one would never be asked for
        meant = difflib.get_close_matches(name, known - {*names}, 1, MISSPELT)
        if meant and not name.startswith("_"):
            raise BrokenRecipe(f"{path}: defines {name}: is {meant[0]} meant?")


def _require_sizes(path: Path, workload: ModuleType) -> None:
    for name, least, words in (("SIZES", 1, "one size"), ("EDGE_SIZES", 2, "two sizes")):
        sizes = getattr(workload, name)
        sizes = sizes if isinstance(sizes, tuple) else ()
        kinds = {len(size) if isinstance(size, tuple) else "a number" for size in sizes}
        numbers = [number for size in sizes for number in (size if isinstance(size, tuple) else (size,))]
        fit = numbers and all(type(number) is int and number >= 0 for number in numbers)
        if not fit or len(kinds) > 1 or len(sizes) < least:
            each = "each an int, or each a tuple of equally many ints, none negative"
            raise BrokenRecipe(f"{path}: {name} is not a tuple of {words} or more, {each}")


@cache
def _folders() -> dict[str, tuple[str, str | None]]:
    """Workload -> the first line of its docstring, and what is wrong with its file, as far as reading it tells."""
    found: dict[str, tuple[str, str | None]] = {}
    for file in sorted(folder / "__init__.py" for folder in FOLDER.iterdir()):
        if os.path.lexists(file) or any(file.parent.glob("with_*.py")):
            try:
                found[file.parent.name] = _read_workload(file), None
            except BrokenRecipe as error:
                found[file.parent.name] = "", plain(str(error))
    return found


def _require_contract(recipe: Recipe) -> None:
    """BrokenRecipe if it lacks what other files that read() reads, such as the scripts of the site, need not have."""
    if not NAME.fullmatch(recipe.technique):
        raise BrokenRecipe(
            f"{recipe.path}: a technique's name has only the letters a to z, digits and '_', begins with a"
            " letter, and has at most 100 characters (see CONTRIBUTING.md)"
        )
    if recipe.lane == "idiomatic" and not recipe.follows:
        raise BrokenRecipe(f"{recipe.path}: the docstring has no line 'Follows: …' (see CONTRIBUTING.md)")
    names = [*(["upload"] if recipe.workload != WITHOUT_ARRAYS else []), recipe.workload, "wait", "download"]
    if missing := [name for name in names if name not in recipe.functions]:
        raise BrokenRecipe(f"{recipe.path}: does not define {', '.join(missing)} (see CONTRIBUTING.md)")
    if not recipe.is_script:
        raise BrokenRecipe(f"{recipe.path}: does not end with 'if __name__ == \"__main__\":' (see CONTRIBUTING.md)")


@cache
def _in(workload: str) -> list[Recipe]:
    """Every recipe of a workload, the broken ones too; NumPy's comes first, the others by name. Reading one workload
    takes a tenth of the time for all."""
    if workload not in _folders():
        return []
    found = []
    _, fault = _folders()[workload]
    for path in (FOLDER / workload).glob("[!.]*.py"):
        if path.name == "__init__.py":
            continue
        is_named = path.name.startswith("with_")
        try:
            if not is_named:
                raise BrokenRecipe(f"{path}: a recipe's file is called with_TECHNIQUE.py (see CONTRIBUTING.md)")
            recipe = replace(read(path), fault=fault)
            _require_contract(recipe)
            for name in recipe.kernels:
                kernel_text(path, name)
        except BrokenRecipe as error:
            technique = path.stem.removeprefix("with_") if is_named else path.name
            recipe = Recipe(workload, technique, path, "", technique, "", "", fault=plain(str(error)))
        found.append(recipe)
    return sorted(found, key=lambda r: (r.technique != "numpy", r.technique))


@cache
def _every() -> list[Recipe]:
    """Every recipe, the broken ones too, sorted by workload."""
    return [recipe for workload in _folders() for recipe in _in(workload)]


@cache
def recipes() -> list[Recipe]:
    """Every recipe that can be read, sorted by workload; NumPy's comes first, the others by name."""
    return [recipe for recipe in _every() if not recipe.fault]


def of_workload(name: str) -> list[Recipe]:
    """The recipes of a workload that can be read."""
    return [recipe for recipe in _in(name) if not recipe.fault]


@cache
def workload_fault(name: str) -> str | None:
    """Why a workload cannot be used, in one line, or None. Unlike the other functions here, this one runs its file."""
    _, fault = _folders()[name]
    if fault:
        return fault
    path = FOLDER / name / "__init__.py"
    try:
        module = importlib.import_module(f"gpu_cookbook.recipes.{name}")
        _require(path, vars(module))
        _require_sizes(path, module)
    except BrokenRecipe as error:
        return plain(str(error))
    except (Exception, SystemExit) as error:  # a module may raise anything
        return plain(f"{path}: {type(error).__name__}: {error}")
    return None


@cache
def workloads() -> dict[str, str]:
    """Workload -> the first line of its docstring, for those that can be used."""
    return {name: statement for name, (statement, _) in _folders().items() if not workload_fault(name)}


def faults() -> list[str]:
    """What is wrong with recipes and workloads that cannot be used, in one line each."""
    found = [*map(workload_fault, _folders()), *(recipe.fault for recipe in _every())]
    return list(dict.fromkeys(filter(None, found)))


def workload_module(name: str) -> ModuleType:
    """The workload's own module: SIZES, inputs, reference, … If it cannot be used, one with what it takes to say so of
    each of its recipes, at the only size 0."""
    if name in _folders() and workload_fault(name):
        module = ModuleType(f"gpu_cookbook.recipes.{name}")
        vars(module).update(SIZES=(0,), EDGE_SIZES=(0,), TIME_LIMIT=0, label=str)
        return module
    return importlib.import_module(f"gpu_cookbook.recipes.{name}")


def work(name: str, size: int | tuple[int, ...]) -> float:
    """The bytes or operations of the workload, whichever are more: the time of large arrays is proportional to that."""
    workload = workload_module(name)
    return float(max(workload.bytes_moved(size), workload.operations(size)))


def is_size(name: str, size: int | tuple[int, ...]) -> bool:
    """Whether a size has as many numbers as those of the workload."""
    first = workload_module(name).SIZES[0]
    if isinstance(size, int) or isinstance(first, int):
        return isinstance(size, int) and isinstance(first, int)
    return len(size) == len(first)


def option_of(size: int | tuple[int, ...]) -> str:
    """A size as the option --size takes it: 40000, or 1000000x1000."""
    return str(size) if isinstance(size, int) else "x".join(map(str, size))


def default_sizes(name: str) -> list[Any]:
    """The published sizes of a workload that suit this machine: without a GPU, the two smallest."""
    sizes = workload_module(name).SIZES
    return list(sizes if machine.gpus() else sizes[:2])


@cache
def environments() -> list[str]:
    """Every environment that a recipe names, the main one first."""
    named = {name for recipe in recipes() for name in recipe.environments}
    return sorted(named | {machine.MAIN}, key=lambda name: (name != machine.MAIN, name))


def require_environment() -> None:
    """UnknownName if this process is told to be in an environment that there is not."""
    if machine.environment() != machine.MAIN and machine.environment() not in environments():
        raise UnknownName(f"{machine.VARIABLE}: {nearest('environment', machine.environment(), environments())}")


@cache
def engines() -> frozenset[str]:
    """The frameworks that are parallel engines: recipes start them under their own name."""
    return frozenset(each.framework for each in recipes() if (each.engine or "").startswith(each.framework))


@cache
def find(workload: str, technique: str) -> Recipe | None:
    """The recipe of that name; None if there is none, if it was removed, or if it cannot be read."""
    return next((recipe for recipe in of_workload(workload) if recipe.technique == technique), None)


def choose(
    workload_names: Sequence[str] = (), technique_names: Sequence[str] = (), lane: str | None = None
) -> list[Recipe]:
    """The recipes of these workloads, these techniques and this lane, the broken ones too. A filter that is omitted
    selects everything. UnknownName if a name does not exist."""
    for name in workload_names:
        if name not in _folders():
            if any(name == each.technique for each in _every()):
                raise UnknownName(f"{name} is a technique, not a workload. There are: {', '.join(_folders())}.")
            raise UnknownName(nearest("workload", name, list(_folders())))
    mine = [recipe for name in _folders() if not workload_names or name in workload_names for recipe in _in(name)]
    theirs = sorted({each.technique for each in mine})
    for name in technique_names:
        if name not in theirs and name not in {each.technique for each in _every()}:
            if name in _folders():
                raise UnknownName(f"{name} is a workload, not a technique: it stands without --technique.")
            raise UnknownName(nearest("technique", name, theirs))
    require_environment()
    chosen = [
        recipe
        for recipe in mine
        if (not technique_names or recipe.technique in technique_names) and (not lane or recipe.lane == lane)
    ]
    if not chosen:
        raise no_recipe(workload_names, technique_names, lane)
    return chosen


def no_recipe(workload_names: Sequence[str], technique_names: Sequence[str], lane: str | None) -> UnknownName:
    """For names that exist, but not together."""
    words = [f" for {', '.join(workload_names)}"] if workload_names else []
    words += [f" with {', '.join(technique_names)}"] if technique_names else []
    words += [f" in the {lane} lane"] if lane else []
    return UnknownName(f"There is no recipe{''.join(words)}. 'gpu-cookbook list' shows all recipes.")


def nearest(kind: str, name: str, known: Sequence[str]) -> str:
    """'Unknown workload …' with the names that may be meant."""
    return f"Unknown {kind} '{name}'. {similar(name, known)}"


def similar(name: str, known: Sequence[str]) -> str:
    """The most similar names or, if there are none, the few that contain this one. All names if none may be meant."""
    lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), lower) or [each for each in lower if name.lower() in each]
    if name and 0 < len(close) <= MOST_SIMILAR:
        return f"Did you mean {' or '.join(lower[each] for each in close)}?"
    return f"There are: {', '.join(known)}."
