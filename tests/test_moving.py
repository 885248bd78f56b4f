"""The scripts of docs/moving: each runs by itself, from an empty folder, and the page has it.

A script asserts what it says: the answer, or the error that its docstring quotes. What cannot run here is skipped as a
recipe would be: the docstrings have a recipe's lines.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run import runner

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "moving.md"
SCRIPTS = sorted((DOCS / "moving").glob("*.py"))
INCLUDE = re.compile(r"^```\{literalinclude\} moving/(\S+)\n((?::.*\n)*)```$", re.MULTILINE)


def run(script, folder, **settings):
    empty = folder / "empty"
    empty.mkdir()
    return subprocess.run(
        [sys.executable, "-I", script],
        cwd=empty,
        env=runner.environment(folder) | settings,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, id=script.stem, marks=[pytest.mark.skip(reason=reason)] if reason else [])
        for script in (*SCRIPTS, *sorted((DOCS / "transfers").glob("*.py")))
        for reason in [machine.obstacle(catalogue.read(script))]
    ],
)
def test_script(script, tmp_path):
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1, done.stdout


@pytest.mark.skipif(not machine.installed("numba"), reason="numba not installed")
def test_the_numba_kernel_in_the_simulator(tmp_path):
    done = run(DOCS / "moving" / "stencil_numba.py", tmp_path, NUMBA_ENABLE_CUDASIM="1")
    assert done.stdout == "Numba: 2,003 elements, all right\n", done.stderr


def kernel_of(name):
    tree = ast.parse((DOCS / "moving" / name).read_text(encoding="utf-8"))
    return next(
        node.value.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "KERNEL"
    )


def test_the_cuda_kernel_is_one_and_compiles():
    from cuda.core import Program, ProgramOptions

    text = kernel_of("stencil_pycuda.py")
    assert kernel_of("stencil_cupy.py") == text
    assert Program(text, "c++", ProgramOptions(arch="sm_90")).compile("cubin").code[:4] == b"\x7fELF"


def test_the_page_has_every_script():
    names = {script.name for script in SCRIPTS}
    included = {name for name, _ in INCLUDE.findall(PAGE.read_text(encoding="utf-8"))}
    assert included == names


@pytest.mark.parametrize("script", [s for s in SCRIPTS if s.stem.startswith("error_")], ids=lambda script: script.stem)
def test_an_error_is_on_the_page_once_and_then_mended(script):
    text = script.read_text(encoding="utf-8")
    assert text.index("# What goes wrong") < text.index("# The fix: ")
    if "\nNo error" not in text:  # else what is wrong is seen beside what is right
        assert "assert " in text[: text.index("# The fix: ")]  # or the error could have stayed away
    options = [found for name, found in INCLUDE.findall(PAGE.read_text(encoding="utf-8")) if name == script.name]
    assert [":language: text" in found for found in options] == [True, False]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_form(script):
    text = script.read_text(encoding="utf-8")
    assert "assert" in text
    assert text.strip().splitlines()[-1].lstrip().startswith("print(")
