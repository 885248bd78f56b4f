"""The page of words names what is there: each name of a library on it can be found in that library."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "words.md").read_text(encoding="utf-8")
MODULES = {"cuda": "numba.cuda", "tl": "triton.language", "wp": "warp", "cl": "pyopencl", "torch": "torch"}
NAMES = sorted(
    set(re.findall(rf"\b((?:{'|'.join(MODULES)})(?:\.[A-Za-z_]\w*)+)", " ".join(re.findall("`[^`]+`", PAGE))))
)


def found(name):
    short, *rest = name.split(".")
    place = importlib.import_module(MODULES[short])
    if short == "wp" and f"def {rest[0]}(" in Path(place.__file__).with_suffix(".pyi").read_text(encoding="utf-8"):
        return rest[0]  # what only kernels have is declared, and no attribute
    for part in rest:
        place = getattr(place, part)
    return place


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_there(name):
    assert found(name) is not None


def test_there_are_names_of_each_library_and_a_wrong_one_is_found():
    assert {name.partition(".")[0] for name in NAMES} == set(MODULES) and len(NAMES) > 30
    with pytest.raises(AttributeError):
        found("tl.program_ids")
