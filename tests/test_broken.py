"""A recipe or a workload that cannot be used costs only itself: every command goes on with all others, and says why."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import HANG, MADE_UP, git

from gpu_cookbook import catalogue

NUMPY = (catalogue.FOLDER / "multiply" / "with_numpy.py").read_text(encoding="utf-8")
INCREMENT = (catalogue.FOLDER / "increment" / "__init__.py").read_text(encoding="utf-8")
RECIPES = {  # in multiply: what is in the file, and the end of what is said about it
    "syntax": ("def (\n" + NUMPY, "/with_syntax.py: line 1: invalid syntax"),
    "latin": (b"# \xb5s\n" + NUMPY.encode(), "/with_latin.py: byte 2 is not UTF-8: save the file in UTF-8"),
    "marked": ("\ufeff" + NUMPY, "/with_marked.py: begins with a byte order mark: save the file in UTF-8 without one"),
    "null": (b"\0", "/with_null.py: cannot be read as Python: source code string cannot contain null bytes"),
    "deep": ("x = " + "-" * 100_000 + "1", "/with_deep.py: cannot be read as Python: it is too deeply nested"),
    "empty": ("", "/with_empty.py: the docstring has no line 'Framework: …' (see CONTRIBUTING.md)"),
    "silent": (NUMPY.partition('"""\n\n')[2], "the docstring has no line 'Framework: …' (see CONTRIBUTING.md)"),
    "lineless": (NUMPY.replace("Install: ", "To install, "), "has no line 'Install: …' (see CONTRIBUTING.md)"),
    "unknown": (NUMPY.replace("Install: ", "\x1b[31m: "), "line '\\x1b[31m: …' must be one of: Framework, Runs on"),
    "nowhere": (NUMPY.replace("Runs on: CPU", "Runs on: Mars"), "'Runs on: Mars' must be one of: CPU, "),
    "conda": (NUMPY.replace("pip", "conda"), "'Install: conda install numpy' is not 'pip install' followed by"),
    "aimless": (NUMPY.replace("Follows: ", "See "), "/with_aimless.py: the docstring has no line 'Follows: …' (see CO"),
    "waitless": (NUMPY.replace("def wait(", "def wait_for("), "/with_waitless.py: does not define wait (see CONTRI"),
    "renamed": (NUMPY.replace("def multiply(", "def times("), "/with_renamed.py: does not define multiply (see CO"),
    "mainless": (
        NUMPY.partition("\nif __name__")[0],
        "/with_mainless.py: does not end with 'if __name__ == \"__main__\":' (see CONTRIBUTING.md)",
    ),
    "missing": (
        NUMPY.replace("\ndef", '\nK = (Path(__file__).parents[2] / "kernels" / "no.cu").read_text()\n\n\ndef', 1),
        "/no.cu: is not a file",
    ),
    "folder": (None, "/with_folder.py: is not a file"),
    "dangling": ("/nowhere", "/with_dangling.py: is not a file"),
    "unreadable": ("/proc/self/mem", "/with_unreadable.py: cannot be read: Input/output error"),  # not even by root
    **{name: (NUMPY, f"/{name}: a recipe's file is called with_TECHNIQUE.py (see C") for name in ("cupy.py", "_x.py")},
    **{
        name: (NUMPY, f"/with_{name}.py: a technique's name has only the letters a to z, digits and '_', begins")
        for name in ("", "2d", "UPPER", "a b", "a-b", "ü")
    },
}
WORKLOADS = {  # what is in __init__.py, and the end of what is said about it
    "half": ("def (\n" + INCREMENT, "/half/__init__.py: line 1: invalid syntax"),
    "lacking": (INCREMENT.replace("footprint", "feet"), "/lacking/__init__.py: does not define footprint"),
    "misspelt": (INCREMENT.replace("LARGE_SIZES", "LARGER_SIZES"), "/misspelt/__init__.py: defines LARGER_SIZES: is "),
    "marking": ("\ufeff" + INCREMENT, "/marking/__init__.py: begins with a byte order mark: save the file in UTF-8"),
    "linked": ("/nowhere", "/linked/__init__.py: is not a file"),
    "absent": (None, "/absent/__init__.py: is not a file"),
    "sizeless": (
        INCREMENT + "SIZES = ()",
        "/sizeless/__init__.py: SIZES is not a tuple of one size or more, each an int, or each a tuple of equally many"
        " ints, none negative",
    ),
    "single": (INCREMENT + "SIZES = 100", "/single/__init__.py: SIZES is not a tuple of one size or more, each an"),
    "listed": (INCREMENT + "SIZES = [1], [2]", "/listed/__init__.py: SIZES is not a tuple of one size or more, each"),
    "mixed": (INCREMENT + "SIZES = (1, 2), (3,)", "/mixed/__init__.py: SIZES is not a tuple of one size or more"),
    "negative": (INCREMENT + "SIZES = (-1,)", "/negative/__init__.py: SIZES is not a tuple of one size or more"),
    "bare": (INCREMENT + "SIZES = ((),)", "/bare/__init__.py: SIZES is not a tuple of one size or more"),
    "edged": (INCREMENT + "EDGE_SIZES = (0,)", "/edged/__init__.py: EDGE_SIZES is not a tuple of two sizes or more"),
    "raising": (INCREMENT + "raise SystemExit('\x1b[31mno')", "/raising/__init__.py: SystemExit: \\x1b[31mno"),
}
WHEN_RUN = (
    "raising",
    "sizeless",
    "single",
    "listed",
    "mixed",
    "negative",
    "bare",
    "edged",
)  # reading them does not tell
GOOD = ("multiply", "numpy"), ("increment", "numpy")
SUITE = """
import sys
sys.path.insert(0, ".")
from benchmarks import workloads
suites = {name: made for name, made in vars(workloads).items() if isinstance(made, type) and hasattr(made, "params")}
import json
print(json.dumps({name: made.params[0] for name, made in suites.items()}))
"""


@pytest.fixture(scope="module")
def broken(repository, tmp_path_factory):
    """A copy of the repository with all of these. Of the good recipes, it has few, so that a command takes seconds."""
    folder = tmp_path_factory.mktemp("broken")
    shutil.copytree(repository, folder, dirs_exist_ok=True)
    for name in ("recipes", "kernels"):  # as setup.cfg maps them, without an installation
        (folder / "gpu_cookbook" / name).symlink_to(folder / name)
    for path in (folder / "recipes").glob("*/with_*.py"):
        if (path.parent.name, path.stem.removeprefix("with_")) not in GOOD:
            path.unlink()
    for name, (content, _) in RECIPES.items():
        put(folder / "recipes" / "multiply" / (name if name.endswith(".py") else f"with_{name}.py"), content)
    for name, (content, _) in WORKLOADS.items():
        shutil.copytree(folder / "recipes" / "increment", folder / "recipes" / name)
        path = folder / "recipes" / name / "with_numpy.py"
        path.write_text(path.read_text(encoding="utf-8").replace("def increment(", f"def {name}("), encoding="utf-8")
        (folder / "recipes" / name / "__init__.py").unlink()
        if content is not None:
            put(folder / "recipes" / name / "__init__.py", content)
    put(folder / "recipes" / "random_subset_mean" / "with_broken.py", "def (")
    shutil.copy(catalogue.FOLDER / "random_subset_mean" / "with_numpy.py", folder / "recipes" / "random_subset_mean")
    with (folder / ".gitignore").open("a") as ignored:
        ignored.write("gpu_cookbook/recipes\ngpu_cookbook/kernels\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=All broken")
    return folder


def put(path, content):
    if content is None:
        path.mkdir()
        (path / "file").touch()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif content.startswith("/"):
        path.symlink_to(content)
    else:
        path.write_text(content, encoding="utf-8")


def run(folder, *command, code=0):
    """(standard output, standard error), neither with a traceback or with anything that a terminal obeys."""
    settings = os.environ | {"PYTHONPATH": str(folder), "HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=settings, capture_output=True, text=True, timeout=HANG
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr and "\x1b" not in done.stdout + done.stderr
    return done.stdout, done.stderr


def cookbook(folder, *arguments, code=0):
    return run(folder, "-c", MADE_UP, *arguments, code=code)


def reasons(rows):
    """{(workload, technique): reason} of rows that failed; all others are right."""
    assert {row["status"] for row in rows if (row["workload"], row["technique"]) in GOOD} == {"ok"}
    return {(row["workload"], row["technique"]): row["reason"] for row in rows if row["status"] == "failed"}


def are_all_there(found, workloads=tuple(WORKLOADS)):
    expected = {("multiply", name): end for name, (_, end) in RECIPES.items()}
    expected |= {(name, "numpy"): WORKLOADS[name][1] for name in workloads}
    assert found.keys() == expected.keys()
    for key, end in expected.items():
        assert end in found[key] and "\n" not in found[key], found[key]


def test_list_says_what_is_wrong(broken):
    rows = json.loads(cookbook(broken, "list", "--format", "json")[0])
    assert {(row["workload"], row["technique"]) for row in rows if row["runs_here"]} >= {*GOOD}
    found = {(row["workload"], row["technique"]): row["reason"] for row in rows if not row["runs_here"]}
    assert "line 1: invalid syntax" in found.pop(("random_subset_mean", "broken"))
    are_all_there(found, [name for name in WORKLOADS if name not in WHEN_RUN])
    table = "".join(cookbook(broken, "list")[0].split())  # however its lines are folded
    assert "multiply/with_unknown.py:thedocstring'sline'\\x1b[31m:…'mustbeoneof:" in table


def test_check_gives_each_a_failed_result_and_checks_the_others(broken):
    names = ("multiply", "increment", *WORKLOADS)
    out, err = cookbook(broken, "check", *names, "--format", "json", code=1)
    are_all_there(reasons(json.loads(out)))
    assert "14 ok" in err
    assert "failed at 0: " in cookbook(broken, "check", "raising", code=1)[0]


@pytest.mark.slow
def test_compare_measures_the_others_and_stores_them(broken):
    names = ("multiply", "increment", *WORKLOADS)
    out, _ = cookbook(broken, "compare", *names, "--format", "json", "-s", "1000", code=1)
    are_all_there(reasons(json.loads(out)))
    table, _ = cookbook(broken, "compare", "half", "-s", "1000", "--format", "csv", code=1)
    assert "half/__init__.py: line 1: invalid syntax" in table
    table, _ = cookbook(broken, "compare", "half", "-s", "1000", code=1)
    assert "Nothing was measured." in table
    cookbook(broken, "compare", *names, "--save", "--machine", "m", code=1)
    out, err = cookbook(broken, "tables", "--machine", "m", "--format", "json")
    rows = [row for table in json.loads(out) for row in table["rows"] if row["table"] == "measured"]
    assert {(row["workload"], row["technique"]) for row in rows} == {*GOOD}
    for _, end in (*RECIPES.values(), *WORKLOADS.values()):
        assert sum(end in line for line in err.splitlines()) in (1, 2)


@pytest.mark.slow
def test_results_stored_before_a_recipe_broke_are_shown(broken):
    cookbook(broken, "compare", "increment", "--save", "--machine", "before")
    (broken / "recipes" / "increment" / "with_numpy.py").rename(broken / "aside")
    try:
        for content in ("def (", b"\xff", "/nowhere", "/proc/self/mem", None):
            path = broken / "recipes" / "increment" / "with_numpy.py"
            put(path, content)
            out, _ = cookbook(broken, "tables", "--machine", "before", "--format", "json")
            rows = [row for table in json.loads(out) for row in table["rows"] if row["table"] == "measured"]
            assert rows and all(row["stale"] for row in rows)
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    finally:
        (broken / "aside").rename(broken / "recipes" / "increment" / "with_numpy.py")


@pytest.mark.slow
def test_scale_gives_a_failed_row(broken):
    out, _ = cookbook(broken, "scale", "--cores", "1", "-s", "500", "--format", "json", code=1)
    rows = {row["technique"]: row for table in json.loads(out) for row in table["rows"] if row["mode"] == "strong"}
    assert rows["numpy"]["status"] == "ok"
    assert rows["broken"]["status"] == "failed" and "line 1: invalid syntax" in rows["broken"]["reason"]
    alone, _ = cookbook(broken, "scale", "-t", "broken", "--cores", "1", "--format", "markdown", code=1)
    assert "with\\_broken.py: line 1: invalid syntax" in alone


@pytest.mark.parametrize("arguments", ["--cores 1", "--machine m"])
def test_scale_without_its_workload_says_so(arguments, broken):
    path = broken / "recipes" / "random_subset_mean" / "__init__.py"
    text = path.read_text()
    path.write_text(text + "def (")
    try:
        out, err = cookbook(broken, "scale", *arguments.split(), code=1)
    finally:
        path.write_text(text)
    assert out == "" and "__init__.py: line " in err and err.count("\n") == 1


def test_show_says_what_is_wrong_and_prints_the_others(broken):
    for technique in ("syntax", "latin", "unreadable"):
        end = RECIPES[technique][1]
        out, err = cookbook(broken, "show", "multiply", technique, code=2)
        assert out == "" and end in err and err.count("\n") == 1
    assert cookbook(broken, "show", "multiply", "numpy")[0] == NUMPY
    assert "There are: numpy, 2d, " in cookbook(broken, "show", "multiply", code=2)[1]
    assert "half/__init__.py: line 1: invalid syntax" in cookbook(broken, "show", "half", "numpy", code=2)[1]


def test_the_asv_suite_goes_on_without_them(broken):
    assert json.loads(run(broken, "-c", SUITE)[0]) == {
        # What can be read, under a technique's name: gpu-cookbook says what is wrong with it, and asv gets that as a
        # reason.
        "multiply": [
            *("numpy", "aimless", "conda", "empty", "lineless", "mainless", "missing", "nowhere", "renamed", "silent"),
            *("unknown", "waitless"),
        ],
        "increment": ["numpy"],
        "lacking": ["numpy"],
        "marking": ["numpy"],
        "misspelt": ["numpy"],
        **{name: ["numpy"] for name in WHEN_RUN if name not in ("raising", "single")},
        "random_subset_mean": ["numpy"],
    }
