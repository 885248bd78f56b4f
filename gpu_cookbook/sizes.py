"""What the sizes mean that somebody has typed."""

import decimal
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from gpu_cookbook import catalogue
from gpu_cookbook.terminal import fail

LARGEST = 2**63 - 1  # size
SIZE = re.compile(
    r"(?P<sign>[+-]?)(?P<number>\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*|\d+(?:\.\d+)?[eE]\+?\d+)"
    r"(?:\s*(?:\*\*|\^)\s*(?P<power>\d+))?",
    re.ASCII,
)


def sizes_of(workload: str, words: Sequence[str] | None) -> list[Any]:
    """The sizes that the words name, or the published ones that suit this machine; sorted."""
    if not words:
        return list(catalogue.default_sizes(workload))
    known = catalogue.workload_module(workload).SIZES
    examples = ", ".join(map(catalogue.option_of, known))
    one = isinstance(known[0], int)
    try:
        sizes = set(map(_numbers, words))
    except ValueError as error:
        fail(
            f"{error}. Write {'a positive integer' if one else 'positive integers'} such as {examples}, 1_000_000,"
            " 1e6 or 2**28."
        )
    if not all(catalogue.is_size(workload, size) for size in sizes):
        fail(f"A size of {workload} is {'one number' if one else f'{len(known[0])} numbers'}, such as {examples}.")
    too_small = getattr(catalogue.workload_module(workload), "too_small", lambda size: None)
    for size in sorted(sizes):
        if why := too_small(size) or _too_many(workload, size):
            fail(f"'{catalogue.option_of(size)}' is no size of {workload}: {why}. For example {examples}.")
    return sorted(sizes)


def _numbers(word: str) -> Any:
    """The number, or the numbers between which there is an 'x' or, as the tables print it, a '×'."""
    numbers = [number.strip() for number in re.split("[x×]", word)]
    if numbers[1:] and not all(numbers):
        raise ValueError(f"'{word}' is not a valid size: a number is missing")
    return tuple(size_of(number, word) for number in numbers) if numbers[1:] else size_of(word)


def size_of(word: str, whole: str = "") -> int:
    """The size that a word means: 40000, 1_000_000, 1,000,000, 1e6, 2.5e6, 2**28 or 2^28. A ValueError says why it
    means none. ``whole``: what was typed, if the word is one of the numbers in it."""
    cause = "not written as an integer"
    if match := SIZE.fullmatch(word):
        with decimal.localcontext(decimal.Context(traps=[])):  # what is too large for this, too, is infinite or NaN
            size = Decimal(match["number"].replace(",", ""))
            if match["power"] and size:  # nothing to the power of nothing is not a number
                size **= Decimal(match["power"])
            if match["sign"] == "-" or size < 1:
                cause = "less than 1"
            elif not size <= LARGEST:
                cause = "more than 2**63 - 1, the largest signed 64-bit integer, with which the recipes count"
            elif size % 1:
                cause = "not an integer"
            else:
                return int(size)
    what = f"'{word}'" if whole else "it"
    raise ValueError(f"'{whole or word}' is not a valid size: {what} is {cause}")


def _too_many(workload: str, size: Any) -> str | None:
    """Why an array has too many elements to count, where a size is a side, or the sides of matrices; or None."""
    shape = getattr(catalogue.workload_module(workload), "shape", None)
    if shape and math.prod(sorted(shape(size))[-2:]) > LARGEST:
        return "its array has more than 2**63 - 1 elements, which is more than the recipes can count"
    return None
