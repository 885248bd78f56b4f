"""How times, amounts and lists are written everywhere: three significant digits and a unit that suits them."""

import math
from collections.abc import Sequence


def seconds(value: float) -> str:
    """Three significant digits and a unit: 13.1 µs, 742 µs, 1.32 ms, 8.02 s."""
    unit, scale = unit_of(value)
    return f"{digits(value / scale)} {unit}"


def unit_of(value: float) -> tuple[str, float]:
    """The unit in which a time is written, and how many seconds that unit has."""
    return next((u, s) for u, s in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)) if value >= 0.9995 * s or u == "µs")


def digits(value: float) -> str:
    """Three significant digits, no exponent: 0.0123, 1.23, 12.3, 123, 1,230."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"


def prefixed(value: float) -> str:
    """At most three significant digits and a prefix: 12.3 G, 1 T."""
    prefixes = (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))
    unit, scale = next(((u, s) for u, s in prefixes if value >= 0.9995 * s), ("", 1))
    return f"{float(f'{value / scale:.3g}'):g} {unit}".strip()


def short(size: float) -> str:
    """4,000; 210,000; 1.2 M; 268 M; 1.07 G."""
    return f"{size:,.0f}" if size < 1e6 else prefixed(size)


def counted(number: int, what: str) -> str:
    """1 result, 1,024 results."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def joined(words: Sequence[str]) -> str:
    """As a sentence lists them: 'a, b and c'."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def rate(value: float) -> str:
    """Bytes per second: 3,350 GB/s, 0.512 GB/s."""
    return f"{digits(value / 1e9)} GB/s"


def memory(value: float) -> str:
    """Bytes, with a prefix: 640 B, 8.59 GB, 13.2 TB. What a typed size would need may be beyond all prefixes."""
    if value >= 999.5e18:
        return "more than 999 EB"
    return f"{prefixed(value)}B" if value >= 999.5 else f"{value:.0f} B"
