"""What a recipe may import and touch is read from its syntax tree, before anything of it runs."""

import pytest
from test_wrong import RULES, recipe

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Status
from gpu_cookbook.run import rules, runner, scale

HEAD = '''"""Multiply two arrays in NumPy.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

from pathlib import Path

import numpy as np

'''


def fault_of(folder, text, head=HEAD):
    path = folder / "with_another.py"
    path.write_bytes(text if isinstance(text, bytes) else (head + text + "\n").encode())
    return rules.fault(catalogue.read(path))


@pytest.mark.parametrize("each", catalogue.recipes(), ids=lambda each: f"{each.workload}-{each.technique}")
def test_every_recipe_keeps_the_rules(each):
    assert rules.fault(each) is None


@pytest.mark.parametrize("action", ["check", "measure"])
@pytest.mark.parametrize("name", RULES)
def test_what_breaks_a_rule_is_refused_and_never_runs(name, action, monkeypatch):
    monkeypatch.setattr(runner, "Process", lambda *_: pytest.fail("it ran"))
    results = list(runner.run(recipe(name), action, [255, 256]))
    assert [each.status for each in results] == [Status.FAILED] * 2
    assert all(each.reason.startswith(RULES[name]) for each in results), results[0].reason


def test_scale_refuses_it_too(monkeypatch):
    monkeypatch.setattr(runner, "Process", lambda *_: pytest.fail("it ran"))
    (row,) = scale.measure(scale.Run(recipe("patches_clock"), 1), scale.Work(100))
    assert row.status == Status.FAILED and row.reason.startswith(RULES["patches_clock"])


def test_an_import_that_its_install_line_does_not_install_is_no_missing_package(tmp_path):
    """pip would install nothing."""
    path = tmp_path / "multiply" / "with_another.py"
    path.parent.mkdir()
    words = "imports numpi: its Install line does not install it. Mend the import, or name the package there"
    for install, named in (("numpy", True), ("nosuch numpy", False), ("numpi", False)):
        text = HEAD.replace("import numpy as np", "import numpi as np").replace("install numpy", f"install {install}")
        path.write_text(text, encoding="utf-8")
        each = catalogue.read(path)
        assert machine.obstacle(each) == (words if named else f"numpi not installed: pip install {install}")
        (result,) = runner.run(each, "check", [255])
        assert (result.status, result.reason) == (
            (Status.FAILED, f"line 10: {words}") if named else (Status.SKIPPED, machine.obstacle(each))
        )
        runs, skipped = scale.plan([each], [1], [], {}, {})
        assert (len(runs), len(skipped)) == ((1, 0) if named else (0, 1))


def test_a_part_of_a_shared_package_may_be_missing(tmp_path, monkeypatch):
    """cuda-core, cuda-tile and others install their parts of cuda."""
    (tmp_path / "shared" / "here").mkdir(parents=True)
    (tmp_path / "shared" / "here" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "multiply" / "with_another.py"
    path.parent.mkdir()
    install = "pip install shared-parts"
    lines = {"import shared.here": None, "import shared": None, "from shared.here import x": None}
    lines["import __main__.x"] = None  # which the rules refuse
    lines |= dict.fromkeys(
        ["import shared.there", "import shared.there.x as x", "from shared.there.x import y"],
        f"shared.there not installed: {install}",
    )
    for line, obstacle in lines.items():
        text = HEAD.replace("import numpy as np", line).replace("pip install numpy", install)
        path.write_text(text, encoding="utf-8")
        assert machine.obstacle(catalogue.read(path)) == obstacle


@pytest.mark.parametrize(
    "line",
    [
        "import time",
        "from time import perf_counter",
        "import sys",
        "import gpu_cookbook.run.measure",
        "from . import with_numpy",
        "from numpy import *",
        "import gc",
        "import atexit",
        "import signal",
        "import subprocess",
        "import psutil",
        "import __main__",
        "def f():\n    import time",
        "np.multiply = None",
        "np.random.default_rng = None",
        "np.typecodes['a'] = 1",
        "del np.add",
        "(np.q, a) = 1, 2",
        "for np.x in [1]:\n    pass",
        "with Path('.') as np.y:\n    pass",
        "np.__dict__['add'] = 1",
        "m = np",
        "m = np.random",
        "def f(m=np):\n    m.x = 1",
        "np.testing.sys.modules",
        "np.ctypeslib",
        "setattr(np, 'a', 1)",
        "getattr(np, 'a')",
        "vars(np)['a'] = 1",
        "globals()['a'] = 1",
        "eval('1')",
        "exec('1')",
        "compile('1', '', 'exec')",
        "__import__('os')",
        "__builtins__.print = 1",
        "open('x', 'w')",
        "Path('x').write_text('')",
        "Path('x').open('w')",
        "Path('x').unlink()",
        "Path('x').replace('y')",
        "Path('x').replace('y', **{})",
        "Path('x').rename('y')",
        "Path('x').rename(target='y')",
        "Path('x').rename(**{'target': 'y'})",
        "move = Path('x').rename",
        "id(np)",
        "hash('x')",
        "np.save('x', 1)",
        "np.ones(3).tofile('x')",
        "import os\nos._exit(0)",
        "import os\nos.write(1, b'')",
        "from os import kill",
        "import os\nwhere = os",
        "import ctypes\nctypes.CDLL(None)",
        "import ctypes\nctypes.pythonapi",
        "from pathlib import os",
        "import contextlib\ncontextlib.sys",
        "import threading\nthreading.settrace",
        "from unittest import mock\nmock.patch('time.perf_counter')",
        "from unittest.mock import patch\npatch('gpu_cookbook.run.expected.Expected')",
        "(lambda: 1).__globals__",
        "(lambda: 1).__closure__[0].cell_contents",
        "().__class__.__base__.__subclasses__()",
        "try:\n    pass\nexcept ValueError as error:\n    error.__traceback__.tb_frame.f_back",
        "match 1:\n    case object(__class__=c):\n        pass",
        "raise SystemExit(0)",
        "exit(0)",
        "import torch",
        "print(__name__)",
        "x = 1 if __name__ == '__main__' else 2",
        "try:\n    pass\nexcept:\n    pass",
        "try:\n    pass\nexcept (ValueError, BaseException):\n    pass",
        "with suppress(BaseException):\n    pass",
        "if __name__ == '__main__':\n    print('all right')",
    ],
)
def test_this_is_no_recipes_business(line, tmp_path):
    fault = fault_of(tmp_path, line)
    assert fault.startswith("line ") and fault.count(": ") >= 2 and "\n" not in fault


@pytest.mark.parametrize(
    ("call", "advice"),
    [("os.cpu_count()", "import os"), ("multiprocessing.cpu_count()", "import multiprocessing")],
)
def test_the_cores_of_the_machine_are_not_those_that_it_may_use(call, advice, tmp_path):
    assert fault_of(tmp_path, f"{advice}\n{call}").endswith(
        "len(os.sched_getaffinity(0)) counts the cores that it may use"
    )


@pytest.mark.parametrize(
    "text",
    [
        "a = [[1, 2]]\na[0][1] = 3",
        "def f(out):\n    out.parts = [1]",
        "import os\nos.environ['A'] = '1'",
        "print('1'.replace('1', '2'))",
        "def f(table):\n    return table.rename({'key': 'k'}).replace({1: 2})",
        "def f(table):\n    return table.rename(columns={'key': 'k'})",
        "from concurrent.futures import ThreadPoolExecutor",
        "from functools import lru_cache, partial",
        "np.testing.assert_array_equal(np.lib.stride_tricks.sliding_window_view(np.ones(3), 2), 1)",
        "try:\n    pass\nexcept BaseException:\n    raise",
        "try:\n    pass\nexcept (ValueError, BaseException):\n    raise",
        "if __name__ == '__main__':\n    assert np.ones(1) == 1",
        "KERNEL = (Path(__file__).parents[2] / 'kernels' / 'multiply.cu').read_text()",
    ],
)
def test_this_is(text, tmp_path):
    assert fault_of(tmp_path, text) is None


def test_a_framework_is_what_the_install_line_names_or_requires(tmp_path):
    dask = HEAD.replace("install numpy", "install dask[complete]")
    assert fault_of(tmp_path, "import distributed", dask) is None
    assert "its Install line does not install it" in fault_of(tmp_path, "import distributed")
    assert "a recipe changes nothing outside of itself" in fault_of(tmp_path, "import dask\ndask.x = 1", dask)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x = (\n", "line 1: '(' was never closed"),
        (b"\xff\xfe", "byte 0 is not UTF-8: save the file in UTF-8"),
        (b"\0", "source code string cannot contain null bytes"),
        (b"x = " + b"-" * 100_000 + b"1", "it is too deeply nested"),
    ],
)
def test_a_file_that_is_not_python_gives_a_reason(content, reason, tmp_path):
    with pytest.raises(catalogue.BrokenRecipe) as error:
        fault_of(tmp_path, content)
    assert str(error.value).endswith(reason)


def test_a_file_is_read_in_the_encoding_in_which_it_runs(tmp_path):
    assert fault_of(tmp_path, b"# coding: utf-7\n" + HEAD.encode()) == (
        "line 1: declares the encoding utf-7: a recipe is written in UTF-8"
    )
