"""Results that nobody measured, for the tests of what is made of them."""

from gpu_cookbook import catalogue
from gpu_cookbook.results import Metric, Origin, Result, Status, Timing, judged

BOX = Origin("box", "0123456789abcdef0123", "existing", "2026-11-21")


def timing(seconds, half=0.01, **changes):
    """The middle half of the samples reaches ``half`` to both sides, and the interval of the median half as far."""
    parts = {"q1": seconds - half, "q3": seconds + half, "count": 10, "ci99": (seconds - half / 2, seconds + half / 2)}
    return Timing(seconds, **parts | changes)


def result(technique, size, seconds, half=0.01, **changes):
    """One of multiply that went well. ``seconds``: of its resident time; None for a result that has none."""
    resident = {} if seconds is None else {Metric.RESIDENT: timing(seconds, half)}
    parts = {
        "workload": "multiply",
        "technique": technique,
        "framework": technique,
        "lane": catalogue.lane_of(technique),
        "math": "IEEE",
        "device": "NVIDIA H200",
        "driver": "580.1",
        "cuda": "13.0",
        "clock": "1980 MHz",
        "versions": "Python 3.12.3, numpy 2.4.6",
        "copy_bandwidth": 4000.0,
        "size": size,
        "status": Status.OK,
    }
    return judged(Result(**parts | changes | {"timings": resident | changes.get("timings", {})}))


def without(technique, size, status, reason, **changes):
    """A result with no metric."""
    return result(technique, size, None, status=Status(status), reason=reason, **changes)
