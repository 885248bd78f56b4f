"""The page of words and the tables of the page of streams name what is there: each name of a library on them can be
found in that library."""

import importlib
import re
from pathlib import Path

import pytest

WORDS, STREAMS = (
    (Path(__file__).parents[1] / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in ("words", "streams")
)
ROWS = {line.split("|")[1].strip(): line for line in STREAMS.splitlines() if line.startswith("| ")}
MODULES = {"cuda": "numba.cuda", "tl": "triton.language", "wp": "warp", "cl": "pyopencl", "torch": "torch"}
NAMES = sorted(
    set(
        re.findall(
            rf"(?<![.\w])((?:{'|'.join(MODULES)})(?:\.[A-Za-z_]\w*)+)",
            " ".join(re.findall("`[^`]+`", "\n".join([WORDS, *ROWS.values()]))),
        )
    )
)
OBJECTS = {"one": "Stream", "other": "Stream", "event": "Event", "device": "Device"}  # in the table, and their classes
CLASSES = {
    "PyTorch, Triton": "torch.cuda",
    "cuda.core": "cuda.core",
    "Numba": "numba.cuda.cudadrv.driver",
    "Warp": "warp",
}  # and where these are, of the libraries that can be imported without a GPU


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


@pytest.mark.parametrize("framework", CLASSES)
def test_a_stream_and_an_event_have_the_methods_of_the_table(framework):
    module = importlib.import_module(CLASSES[framework])
    calls = re.findall(rf"\b({'|'.join(OBJECTS)})\.(\w+)\(", ROWS[framework])
    assert len(calls) >= 2
    assert [(what, name) for what, name in calls if not hasattr(getattr(module, OBJECTS[what]), name)] == []
