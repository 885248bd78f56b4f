"""Results and rows that are made up: what the tests of charts draw."""

from dataclasses import replace

from gpu_cookbook import catalogue, scaling
from gpu_cookbook.results import FirstResult, Metric, Origin, Result, Status, Timing, judged

SIZES = catalogue.workload_module("multiply").SIZES
SMALL, LARGE = SIZES[0], SIZES[-1]
ORIGIN = Origin("box", "0123456789abcdef0123", "existing", "2026-11-21")
FRAMEWORKS = {"numpy": "NumPy", "dask": "Dask"}  # of techniques on the CPU; the others are CuPy's on a GPU


def exactly(seconds):
    """A timing whose samples are all the same."""
    return Timing(seconds, seconds, seconds)


def result(technique, size=LARGE, seconds=1.0, **changes):
    """A stored and judged result. ``seconds``: its resident time. Of ``changes``, a metric's name is its time."""
    times = {Metric.RESIDENT: seconds} | {metric: changes.pop(metric) for metric in Metric if metric in changes}
    gpu = technique not in FRAMEWORKS
    made = Result(
        workload="multiply",
        technique=technique,
        framework=FRAMEWORKS.get(technique, "CuPy"),
        lane=catalogue.lane_of(technique),
        size=size,
        status=Status.OK,
        math="IEEE",
        device="NVIDIA H200" if gpu else "Xeon, 16 cores",
        copy_bandwidth=4000.0 if gpu else 100.0,
        cache_bytes=1000 if gpu else 1_000_000,
        timings={metric: exactly(time) for metric, time in times.items()},
        origin=ORIGIN,
    )
    return judged(replace(made, **changes))


def timed(technique, size=SMALL, seconds=3e-6, device=1e-6, transfer=1e-5, **changes):
    """A result with a device time, too."""
    return result(technique, size, seconds, device=device, transfer=transfer, **changes)


def started(technique, seconds, parted=False):
    """A result with a first result, of four equal parts if it is parted."""
    parts = [seconds / 4] * 4 if parted else []
    return result(technique, SMALL, first=FirstResult(seconds, *parts))


def crossing():
    """NumPy, one that overtakes it between the two sizes, one that is always faster and one that never is."""
    times = {"numpy": (1e-5, 1e-1), "later": (1e-4, 1e-3), "always": (1e-6, 2e-3), "never": (1e-4, 1.0)}
    return [
        result(name, size, time) for name, two in times.items() for size, time in zip((SMALL, LARGE), two, strict=True)
    ]


def row(technique, workers=1, seconds=1.0, kind="GPU", **changes):
    """A stored row of strong scaling, to be completed."""
    made = scaling.Row(
        technique=technique,
        framework="Dask",
        lane=catalogue.lane_of(technique),
        engine="Dask",
        kind=kind,
        workers=workers,
        status=Status.OK,
        mode=scaling.STRONG,
        size=100_000,
        rows=100_000,
        columns=100_000,
        chunk=10_000,
        time=exactly(seconds),
        mean=11.0,
        start_s=1.0,
        origin=ORIGIN,
    )
    return replace(made, **changes)
