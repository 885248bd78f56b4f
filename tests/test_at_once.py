"""tests/at_once.py: a part for the CPU's cores, and the rest for a recipe."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import at_once
import numpy as np
import pytest
from conftest import HANG

from gpu_cookbook.run import measure

SCRIPT = Path(__file__).with_name("at_once.py")


@pytest.fixture
def once(monkeypatch):
    monkeypatch.setattr(measure, "sample", lambda timed: [timed()])


def recipe(round_trip):
    return SimpleNamespace(pinned=lambda shape: np.empty(shape, np.float32), round_trip=round_trip)


def test_the_recipe_gets_what_the_cpu_does_not(once):
    sizes = []

    def round_trip(a, b, out):
        sizes.append(a.size)
        return np.multiply(a, b, out=out)

    found = list(at_once.times(recipe(round_trip), 1_003))
    assert [tenths for tenths, _ in found] == list(range(11))
    assert sizes == [size for tenths in range(10) for size in 2 * [1_003 - 1_003 * tenths // 10]]


@pytest.mark.parametrize("fault", ["nothing", "all of it"])
def test_a_wrong_part_is_told(once, fault):
    def round_trip(a, b, out):
        if fault == "all of it":
            out.base[:] = 1

    with pytest.raises(AssertionError, match="not equal"):
        list(at_once.times(recipe(round_trip), 1_003))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["unheard"], "unheard"),
        (["numpy"], "numpy has no pinned() or no round_trip()"),
        (["--elements", "0"], "--elements takes 1 or more"),
        (["--elements", "many"], "invalid int value: 'many'"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(words, reason):
    done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
