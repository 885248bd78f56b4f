"""The asv suite times what it says, on data that are made once, and gives no figure of what is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

from gpu_cookbook import catalogue

ROOT = Path(__file__).parents[1]
WRONG = ROOT / "tests" / "wrong" / "multiply"
SUITE = """
import sys
from pathlib import Path
from gpu_cookbook import catalogue
sys.path.insert(0, {root!r})
from benchmarks import workloads
recipe = catalogue.read(Path({path!r}))
workloads.catalogue.choose = lambda *_: [recipe]
suite = workloads.multiply()
"""


def run(path, code):
    """(exit code, what it prints) of code with ``suite``, in which every technique is the recipe in ``path``."""
    text = SUITE.format(root=str(ROOT), path=str(path)) + code
    done = subprocess.run([sys.executable, "-P", "-c", text], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


def test_the_data_are_made_once_and_each_call_is_timed():
    code, said = run(
        catalogue.FOLDER / "multiply" / "with_numpy.py",
        """
for _ in range(3):
    suite.time_resident.setup("numpy", 1000 * 40)
    suite.time_resident("numpy", 1000 * 40)
calls = workloads._ready["calls"]
assert len(calls.turns) == 3 and calls.done == 2 and all(turn.calls for turn in calls.turns)
workloads._ready.clear()
suite.time_transfer.setup("numpy", 1000 * 40)
suite.time_transfer("numpy", 1000 * 40)
assert workloads._ready["calls"].on_host
""",
    )
    assert code == 0, said


@pytest.mark.parametrize("name", ["dropped_tail", "pyopencl_not_waited", "float64"])
def test_a_wrong_recipe_is_not_timed(name):
    code, said = run(WRONG / f"with_{name}.py", "suite.time_resident.setup('x', 40_000)")
    assert code == 1 and "RuntimeError: wrong at " in said


def test_a_wrong_result_of_a_timed_call_makes_it_fail():
    spoil = """
suite.time_resident.setup("numpy", 40_000)
workloads._ready["calls"].function = lambda a, b, out: out
workloads._ready["calls"].begin(poisoned=True)
suite.time_resident("numpy", 40_000)
"""
    code, said = run(catalogue.FOLDER / "multiply" / "with_numpy.py", spoil)
    assert code == 1 and "wrong: 40,000 of 40,000 elements are wrong" in said


def test_what_is_not_here_is_skipped_with_its_reason():
    code, said = run(
        catalogue.FOLDER / "multiply" / "with_numpy.py",
        """
def unknown(*_):
    raise catalogue.UnknownName("Unknown technique 'x'")
workloads.catalogue.choose = unknown
suite.time_resident.setup("x", 40_000)
""",
    )
    assert code == 1 and "NotImplementedError: Unknown technique 'x'" in said
