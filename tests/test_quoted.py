"""The figures of a GPU that a recipe's docstring quotes are those that are stored of it."""

import ast
import re

import pytest
from cloning import require_clone

from gpu_cookbook import catalogue
from gpu_cookbook.results import Metric
from gpu_cookbook.store.asv_files import Store, select

MACHINES = {"H100": "nvidia-h100", "H200": "nvidia-h200"}
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
# A number that is not a part of a size, such as 4,096×4,096, 2**28 or 40,000²; and whose it is.
FIGURE = re.compile(
    r"(?<![\w×*.,])(?P<number>\d[\d,]*(?:\.\d+)?)(?![\d²×*]|[.,]\d)"
    r"(?: (?P<unit>GB/s|ms|µs|s)\b)?(?: \(with_(?P<technique>\w+)\.py| (?P<word>[a-z0-9-]+))?"
)
OTHERS = ("instead", "with", "for", "and")  # words after a number without a unit that has the last one's
# Runs are further apart than a figure's last digit. What is further off than this has another cause.
FACTOR = 1.1


def sentences(recipe):
    text = " ".join((ast.get_docstring(ast.parse(recipe.path.read_text(encoding="utf-8"))) or "").split())
    return [each for each in text.split(". ") if re.search(r"\bH[12]00\b", each)]


def quoted(sentence):
    """(number, unit, technique) of each figure: one without a unit has that of the last one, and one without a
    technique is the recipe's own, or that of its neighbour's call."""
    found = []
    for number, unit, technique, word in FIGURE.findall(sentence):
        if unit or (found and (technique or not word or word in OTHERS)):
            found.append((float(number.replace(",", "")), unit or found[-1][1], technique))
    return found


def spellings(workload, size):
    label = catalogue.workload_module(workload).label(size)
    power = f"2**{size.bit_length() - 1}" if isinstance(size, int) and not size & (size - 1) else label
    sides = "×".join(label.split("×")[:2]) if "×" in label else f"{label.rstrip('²')}×{label.rstrip('²')}"
    return {label, power, sides}


def metrics(recipe, sentence):
    """Of host arrays, where the recipe is about those."""
    if recipe.technique.endswith("transfer_tuned"):
        return (Metric.TRANSFER, Metric.PINNED)
    return (Metric.RESIDENT, Metric.PREPARED if "prepared" in sentence else Metric.DEVICE)


def stored(recipe, technique, sentence, results):
    """(seconds, unit) or (GB/s, unit) of this technique or, if none is named, of the recipe and of the idiomatic one of
    its framework; at the sizes that the sentence names, or else at the largest."""
    named = {technique} if technique else {recipe.technique, recipe.technique.removesuffix("_tuned")}
    module = catalogue.workload_module(recipe.workload)
    sizes = [size for size in module.SIZES if any(word in sentence for word in spellings(recipe.workload, size))]
    for each in results:
        if each.workload == recipe.workload and each.technique in named and each.size in (sizes or module.SIZES[-1:]):
            for metric in metrics(recipe, sentence):
                if seconds := each.value(metric):
                    yield seconds, None
                    yield module.bytes_moved(each.size) / seconds / 1e9, "GB/s"


@pytest.fixture(scope="module")
def results():
    require_clone()
    every, _ = Store().load()
    return {machine: [each for each in select(every, [machine])[0] if each.ok] for machine in MACHINES.values()}


def off(recipe, sentence, results):
    """The quoted figures that are not stored."""
    (machine,) = {MACHINES[name] for name in re.findall(r"\bH[12]00\b", sentence)}
    for number, unit, technique in quoted(sentence):
        value, kind = (number, unit) if unit == "GB/s" else (number * UNITS[unit], None)
        known = stored(recipe, technique, sentence, results[machine])
        if not any(of == kind and max(each / value, value / each) <= FACTOR for each, of in known):
            yield f"{number:g} {unit}"


QUOTING = {(recipe.workload, recipe.technique): recipe for recipe in catalogue.recipes() if sentences(recipe)}


def test_figures_are_found():
    assert quoted("On an H200, 4,096×4,096 take 21 ms, page-locked ones 6.5; 2**28 3 µs instead of 4 (with_x.py).") == [
        *((21, "ms", ""), (6.5, "ms", ""), (3, "µs", ""), (4, "µs", "x")),
    ]
    assert quoted("One of 200 in a graph takes 3.0 µs on an H100, with 60 lines, for 100,000²") == [(3, "µs", "")]
    assert len(QUOTING) > 30


@pytest.mark.parametrize("recipe", QUOTING.values(), ids=["-".join(key) for key in QUOTING])
def test_what_a_docstring_quotes_is_stored(recipe, results):
    assert {sentence: found for sentence in sentences(recipe) if (found := [*off(recipe, sentence, results)])} == {}


def test_another_figure_is_found_out(results):
    recipe = QUOTING["matmul", "cupy_tuned"]
    (sentence,) = sentences(recipe)
    number, _, _ = quoted(sentence)[0]
    assert [*off(recipe, sentence.replace(f"{number:.1f} ", f"{1.5 * number:.1f} "), results)] == [
        f"{1.5 * number:g} µs"
    ]
