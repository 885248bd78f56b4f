"""docs/pairs.py: which lines of two functions side by side are marked."""

from pathlib import Path

import pytest
from lines import loaded

PATH = Path(__file__).parents[1] / "docs" / "pairs.py"


@pytest.fixture(scope="module")
def pairs():
    return loaded(PATH)


def test_what_only_one_side_has_is_marked(pairs):
    one = ["def f(a):", "    check(a)", "", "    return a + 1"], ["def g(a):", "    return f(a)"]
    other = (["def f(a):", "    if a:", "        check(a)", "    return a.add(1)", "def g(a):", "    return f(a)"],)
    assert pairs.marks(one, other) == [[[4], []], [[2, 4]]]


def test_nothing_is_marked_where_nearly_everything_differs(pairs):
    one, other = ([f"{name} {n}" for n in range(9)] + ["same"] for name in ("a", "b"))
    assert pairs.marks([one], [other]) == [[[]], [[]]]
