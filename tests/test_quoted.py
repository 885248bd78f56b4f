"""The figures of a GPU that a recipe's docstring quotes are those that are stored of it."""

import re

import pytest
from cloning import require_clone

from gpu_cookbook import catalogue
from gpu_cookbook.results import Metric
from gpu_cookbook.store.asv_files import Store
from gpu_cookbook.store.selecting import select

MACHINES = {"H100": "nvidia-h100", "H200": "nvidia-h200"}
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
# A number that is not a part of a size, such as 4,096×4,096, 2**28 or 40,000²; and whose it is.
FIGURE = re.compile(
    r"(?<![\w×*.,])(?P<number>\d[\d,]*(?:\.\d+)?)(?![\d²×*]|[.,]\d)"
    r"(?: (?P<unit>GB/s|ms|µs|s)\b)?(?: \(with_(?P<technique>\w+)\.py| (?P<word>[a-z0-9-]+))?"
)
OTHERS = ("instead", "with", "for", "and")  # words after a number without a unit that has the last one's
FACTOR = 1.1  # two runs differ by as much at times: last digits are not tested


def sentences(recipe):
    """Those about a GPU of MACHINES, of what a docstring says below the lines that the tool reads."""
    return [each for each in " ".join(recipe.notes.split()).split(". ") if re.search(r"\bH[12]00\b", each)]


def quoted(sentence):
    """(number, unit, technique) of each figure: one without a unit has that of the last one, and one without a
    technique is the recipe's own or, if it is not the first, that of its neighbour's call."""
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


def stored(recipe, techniques, sentence, results):
    """(seconds, unit) or (GB/s, unit) of these techniques, at the sizes that the sentence names, or else at the
    largest."""
    module = catalogue.workload_module(recipe.workload)
    sizes = [size for size in module.SIZES if any(word in sentence for word in spellings(recipe.workload, size))]
    mine = [each for each in results if each.workload == recipe.workload and each.technique in techniques]
    for each in (one for one in mine if one.size in (sizes or module.SIZES[-1:])):
        for metric in metrics(recipe, sentence):
            if (seconds := each.value(metric)) and not each.doubt(metric):
                yield seconds, None
                yield module.bytes_moved(each.size) / seconds / 1e9, "GB/s"


@pytest.fixture(scope="module")
def results():
    require_clone()
    every, _ = Store().load()
    return {machine: [each for each in select(every, [machine])[0] if each.ok] for machine in MACHINES.values()}


def off(recipe, sentence, results):
    """The quoted figures that are not stored."""
    machines = {MACHINES[name] for name in re.findall(r"\bH[12]00\b", sentence)}
    assert len(machines) == 1, "a sentence is about one GPU, so that it is plain whose figures these are"
    (machine,) = machines
    for place, (number, unit, technique) in enumerate(quoted(sentence)):
        own = {recipe.technique} if place == 0 else {recipe.technique, recipe.technique.removesuffix("_tuned")}
        known = stored(recipe, {technique} if technique else own, sentence, results[machine])
        value, kind = (number, unit) if unit == "GB/s" else (number * UNITS[unit], None)
        if not any(of == kind and max(each / value, value / each) <= FACTOR for each, of in known):
            yield f"{number:g} {unit}"


QUOTING = {(recipe.workload, recipe.technique): recipe for recipe in catalogue.recipes() if sentences(recipe)}


def test_figures_are_found():
    assert quoted("On an H200, 4,096×4,096 take 21 ms, page-locked ones 6.5; 2**28 3 µs instead of 4 (with_x.py).") == [
        *((21, "ms", ""), (6.5, "ms", ""), (3, "µs", ""), (4, "µs", "x")),
    ]
    assert quoted("One of 200 in a graph takes 3.0 µs on an H100, with 60 lines, for 100,000²") == [(3, "µs", "")]
    assert sum(len(quoted(each)) for recipe in QUOTING.values() for each in sentences(recipe)) > 100


@pytest.mark.parametrize("recipe", QUOTING.values(), ids=["-".join(key) for key in QUOTING])
def test_what_a_docstring_quotes_is_stored(recipe, results):
    assert {sentence: found for sentence in sentences(recipe) if (found := [*off(recipe, sentence, results)])} == {}


def test_another_figure_is_found_out(results):
    recipe = QUOTING["matmul", "cupy_tuned"]
    sentence = "On an NVIDIA H200 a 200×200 product takes 400 µs, and cuBLAS 660 (with_cupy.py)"
    assert [*off(recipe, sentence, results)] == ["400 µs", "660 µs"]
