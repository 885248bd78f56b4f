"""A result is one recipe, at one size, on one device: what was measured, and what is derived from it and from others.
Everything that measures, stores or shows results shares these types; nothing else knows their keys."""

import dataclasses
import enum
import math
import re
import time
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from statistics import fmean, quantiles, stdev
from typing import Any, Self, TypeVar

from gpu_cookbook import catalogue, machine
from gpu_cookbook.words import make_plain, plain

NOISY = 0.2  # noisy: the middle half of the samples spreads over more than this fraction of the median
# Half of a copy's traffic is reads; reading alone reached 1.09 of a copy's bandwidth on GPUs, and of a CPU's, 1.44 was
# stored. What a GPU's memory can do at all is its clock, twice in each, times its width: 1.12 of a copy's bandwidth on
# an H100 (2,619 MHz × 2 × 5,120 bits), and 1.16 on an H200 (3,201 MHz × 2 × 6,144 bits), which nothing reaches.
READ_LIMIT, READ_LIMIT_ON_GPU = 1.5, 1.15
# The measured arithmetic is less than a device's peak: short products in NumPy reached 0.7 of a core's, and 0.5 while
# the machine was busy. And Strassen's method saves an eighth of the multiplications each time that it is applied.
ARITHMETIC_LIMIT = 3
# Kernels that begin before the one before them has ended may take less than empty ones that do not.
EMPTY_LIMIT = 4
# A Math line with one of these means the products of tensor cores, unless it says that they are off.
TENSOR_CORES = re.compile(r"(TF32|float16)(?! off)")
# The first word of the Math line of a recipe that rounds the factors of its products: how many significant bits are
# left. TF32 is stored in the 32 bits of a float32, the others in 16.
FACTOR_BITS = {"TF32": 11, "float16": 11, "bfloat16": 8}
HALVES = ("float16", "bfloat16")


class Status(enum.StrEnum):
    """How the work on a result ended."""

    OK = "ok"
    FAILED = "failed"
    REFUSED = "refused"  # a number that cannot be true
    SKIPPED = "skipped"


ENOUGH_RUNS = 3  # in which both of a tie were measured, to tell them apart by their ratios
WRONG = (Status.FAILED, Status.REFUSED)


class Metric(enum.StrEnum):
    """One number of a result. docs/how-we-measure.md says how each is measured."""

    RESIDENT = "resident"
    PREPARED = "prepared"
    DEVICE = "device"
    TRANSFER = "transfer"
    PINNED = "pinned"
    FIRST = "first result"
    MEMORY = "memory"
    BANDWIDTH = "bandwidth"
    ERROR = "error"


# Repeated calls, with a spread.
TIMED = (Metric.RESIDENT, Metric.PREPARED, Metric.DEVICE, Metric.TRANSFER, Metric.PINNED)
AGAINST_NUMPY = (Metric.RESIDENT, Metric.TRANSFER, Metric.PINNED)  # those that have speedups
UNITS = {  # of metrics' values: a record's keys end in them
    **dict.fromkeys((*TIMED, Metric.FIRST), "s"),
    Metric.MEMORY: "bytes",
    Metric.BANDWIDTH: "gb_per_s",
    Metric.ERROR: "relative",
}
UNRANKED = (Metric.ERROR,)  # it says what a recipe's arithmetic is, not which recipe is better
KEYS = {metric: f"{metric}_s" for metric in TIMED} | {  # of a metric's value in a record
    Metric.FIRST: "first_result_s",
    Metric.MEMORY: "peak_device_memory_bytes",
    Metric.BANDWIDTH: "bandwidth_gb_per_s",
    Metric.ERROR: "error_relative",
}

Size = int | tuple[int, ...]
Key = tuple[str, str, Size, str]  # workload, technique, size and environment

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: the median of the samples, and how they spread. Every other part is None if it is not
    known; ``samples`` exist only in the process that measured them and in its parent."""

    median: float
    q1: float | None = None
    q3: float | None = None
    count: int | None = None
    ci99: tuple[float, float] | None = None  # of the median, as asv computes it
    samples: tuple[float, ...] = ()

    @classmethod
    def of(cls, samples: Sequence[float]) -> "Timing":
        """The median and the quartiles of seconds."""
        q1, median, q3 = quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else 3 * list(samples)
        return cls(median, q1, q3, len(samples), samples=tuple(samples))

    @property
    def quartiles(self) -> tuple[float, float] | None:
        return None if self.q1 is None or self.q3 is None else (self.q1, self.q3)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 99 % interval of the median; None if asv had too few samples for a finite one."""
        return self.ci99 if self.ci99 and all(map(math.isfinite, self.ci99)) else None

    def overlaps(self, other: "Timing") -> bool | None:
        """Whether the middle halves of the samples of both overlap; None if they are not known."""
        mine, others = self.quartiles, other.quartiles
        return mine[0] <= others[1] and others[0] <= mine[1] if mine and others else None

    @property
    def noisy(self) -> bool:
        """Whether the samples spread too widely. False if no spread is known."""
        return self.quartiles is not None and self.quartiles[1] - self.quartiles[0] > NOISY * self.median


@dataclass(frozen=True)
class FirstResult:
    """Seconds of a fresh process from its first import of a package (NumPy) to its first result, and the parts, if
    known. Python's own start does not count, nor do the tool's modules."""

    total: float
    imports: float | None = None
    setup: float | None = None  # context, engine, compiler, upload
    call: float | None = None
    download: float | None = None

    @property
    def parts(self) -> dict[str, float]:
        """The parts that are known, in order."""
        known = {"import": self.imports, "setup": self.setup, "call": self.call, "download": self.download}
        return {name: seconds for name, seconds in known.items() if seconds is not None}


@dataclass(frozen=True)
class Rates:
    """How well a call uses its device, in billions per second; from the device's own time if there is one."""

    operations: float
    bandwidth: float | None = None  # GB/s that must be moved; None if none must
    share: float | None = None  # of a copy's bandwidth, in percent; None if the data fit in the cache


@dataclass(frozen=True)
class Crossing:
    """The size from which a technique is faster than another: NumPy, unless something else is said."""

    size: int | None  # None: not even at the largest measured one
    measured_to: int
    everywhere: bool  # at every measured size

    @classmethod
    def of(cls, points: Iterable[tuple[int, float, float]], work: Callable[[int], float]) -> Self:
        """From (size, seconds, the other's seconds) at every measured size. ``work``: see catalogue.work()."""
        points = sorted(points)
        everywhere = all(seconds < other for _, seconds, other in points)
        return cls(crossing(points, work), points[-1][0], everywhere)


@dataclass(frozen=True)
class Probe:
    """What a device can do, measured beside a recipe; or why that failed. What is not known is None."""

    device: str | None = None
    copy_bandwidth: float | None = None  # GB/s
    cache_bytes: int | None = None
    cache_bandwidth: float | None = None  # GB/s read and written again and again, or only read if that is more
    arithmetic: float | None = None  # billions of float32 multiplications and additions per second
    empty_kernel: float | None = None  # seconds, with the queue kept full
    failed: str | None = None

    def __post_init__(self) -> None:
        make_plain(self)

    def better(self, other: "Probe") -> "Probe":
        """Of two probes of one device, the faster figures: only what else it does at the time makes it slower."""
        if self.failed or other.failed:
            return other if self.failed else self
        return replace(
            self,
            copy_bandwidth=_known(max, self.copy_bandwidth, other.copy_bandwidth),
            cache_bandwidth=_known(max, self.cache_bandwidth, other.cache_bandwidth),
            arithmetic=_known(max, self.arithmetic, other.arithmetic),
            empty_kernel=_known(min, self.empty_kernel, other.empty_kernel),
        )


def mode_of(math: str | None) -> str:
    """The first word of a Math line if it says that factors are rounded: TF32, … Otherwise nothing."""
    word = (math or "").replace(",", " ").partition(" ")[0]
    return word if word in FACTOR_BITS else ""


def _known(choose: Callable[[Iterable[float]], float], *values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return choose(known) if known else None


@dataclass(frozen=True)
class Origin:
    """Where a stored result comes from."""

    machine: str
    commit: str
    environment: str  # asv's name for it, which ends in ours unless that is the main one
    date: str
    order: tuple[int, int] = (0, 0)  # when the commit was made, and when this was measured: the later, the newer
    stale: bool = False  # the code of the recipe has changed since
    definition: str | None = None  # of its metrics: measure.VERSION at that time
    contributor: str | None = None  # who sent it, if it came in and the sender gave a name

    def __post_init__(self) -> None:
        make_plain(self)

    def __str__(self) -> str:
        return f"{self.machine}, commit {self.commit[:8]}, {self.date}"


@dataclass(frozen=True, order=True)
class Run:
    """One of the times that a result was measured."""

    started: str  # when the process that measured this and other results was started: what it shares with them
    instance: str | None = None  # tells machines of one kind apart, and says nothing else of them

    @classmethod
    def now(cls) -> "Run":
        return cls(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), machine.instance())


@dataclass(frozen=True, kw_only=True)
class Result:
    """What is not known is None, or missing from ``timings``."""

    workload: str
    technique: str
    framework: str
    lane: str
    size: Size
    status: Status
    reason: str | None = None
    environment: str = machine.MAIN
    math: str | None = None
    device: str | None = None
    driver: str | None = None
    cuda: str | None = None
    clock: str | None = None
    versions: str | None = None
    copy_bandwidth: float | None = None  # this and the next four: see Probe
    cache_bytes: int | None = None
    cache_bandwidth: float | None = None
    arithmetic: float | None = None
    empty_kernel: float | None = None
    timings: Mapping[Metric, Timing] = field(default_factory=dict)
    no_device_time: str | None = None  # why there is none
    doubts: Mapping[Metric, str] = field(default_factory=dict)  # why a metric may be wrong: it is not ranked
    first: FirstResult | None = None
    peak_memory: float | None = None  # bytes
    error: float | None = None  # the largest of an element, relative to the workload's error_scale()
    rates: Rates | None = None  # see judged()
    speedups: Mapping[Metric, float] = field(default_factory=dict)  # over NumPy, see completed()
    crossings: Mapping[Metric, Crossing] = field(default_factory=dict)
    took: float | None = None  # seconds to measure it; of a recipe's first result, with its imports and edge sizes
    origin: Origin | None = None
    runs: Mapping[Metric, Mapping[Run, float]] = field(default_factory=dict)  # each value that was measured

    def __post_init__(self) -> None:
        make_plain(self)
        if self.doubts:
            object.__setattr__(self, "doubts", {metric: plain(doubt) for metric, doubt in self.doubts.items()})

    @classmethod
    def of(cls, recipe: catalogue.Recipe, size: Size, status: Status, reason: str | None = None) -> "Result":
        """A result of a recipe, with nothing measured yet."""
        return cls(
            workload=recipe.workload,
            technique=recipe.technique,
            framework=recipe.framework,
            lane=recipe.lane,
            environment=recipe.environment,
            math=recipe.math or "IEEE",
            size=size,
            status=status,
            reason=reason,
        )

    @property
    def key(self) -> Key:
        return *self.work, self.environment

    @property
    def work(self) -> tuple[str, str, Size]:
        """What it has in common with the results of the same recipe and size in other environments."""
        return self.workload, self.technique, self.size

    @property
    def name(self) -> str:
        """The technique, and its environment if that is not the main one and not in its name."""
        return named(self.technique, self.environment)

    @property
    def mode(self) -> str:
        """The math mode of a recipe that rounds its factors: TF32, float16 or bfloat16. Nothing for all others."""
        return mode_of(self.math)

    @property
    def peers(self) -> str:
        """What it is ranked among: its lane, and its math mode if it has one. Fewer digits are faster, so that a rank
        among recipes which have them all would mean nothing."""
        return f"{self.lane}, {self.mode}" if self.mode else self.lane

    @property
    def ok(self) -> bool:
        return self.status == Status.OK

    @property
    def wrong(self) -> bool:
        return self.status in WRONG

    @property
    def values(self) -> dict[Metric, float]:
        """All that was measured; a bandwidth is derived."""
        known = {metric: self.value(metric) for metric in Metric if metric != Metric.BANDWIDTH}
        return {metric: value for metric, value in known.items() if value is not None}

    def again(self, run: Run, before: "Result | None" = None) -> "Result":
        """This result of a run, with the values of the runs ``before``. Doubtful values do not count."""
        runs = {metric: dict(values) for metric, values in before.runs.items()} if before else {}
        for metric, value in self.values.items():
            if metric not in self.doubts:
                runs.setdefault(metric, {})[run] = value
        return replace(self, runs=runs)

    @property
    def is_numpy(self) -> bool:
        """Whether it is NumPy's, with which the others are compared."""
        return self.technique == "numpy"

    def beside(self, probe: Probe) -> "Result":
        """The result with what its device could do at the time."""
        return replace(
            self,
            copy_bandwidth=probe.copy_bandwidth,
            cache_bytes=probe.cache_bytes,
            cache_bandwidth=probe.cache_bandwidth,
            arithmetic=probe.arithmetic,
            empty_kernel=probe.empty_kernel,
        )

    @property
    def stale(self) -> bool:
        return self.origin is not None and self.origin.stale

    @property
    def stored(self) -> Origin:
        """The origin of a stored result; one that was measured just now has none."""
        assert self.origin is not None
        return self.origin

    @property
    def label(self) -> str:
        """The size as people write it."""
        return catalogue.workload_module(self.workload).label(self.size)

    @property
    def place(self) -> str:
        """Where it ran: CPU, or the name of the device."""
        return "CPU" if self.device and "core" in self.device else self.device or ""

    @property
    def on_gpu(self) -> bool:
        return self.driver is not None  # OpenCL has devices that are CPUs

    def value(self, metric: Metric) -> float | None:
        """Seconds, bytes or GB/s; None if it is not known or the result went wrong."""
        if not self.ok:
            return None
        if metric in self.timings:
            return self.timings[metric].median
        if metric == Metric.FIRST:
            return self.first.total if self.first else None
        if metric == Metric.MEMORY:
            return self.peak_memory
        if metric == Metric.ERROR:
            return self.error
        return self.rates.bandwidth if metric == Metric.BANDWIDTH and self.rates else None

    def noisy(self, metric: Metric) -> bool:
        return metric in self.timings and self.timings[metric].noisy

    def doubt(self, metric: Metric) -> str | None:
        """Why the value may be wrong, in one line."""
        return self.doubts.get(self.timed_by(metric))

    def timed_by(self, metric: Metric) -> Metric:
        """The metric that ranks this one, less being better: a bandwidth is derived from a time."""
        if metric != Metric.BANDWIDTH:
            return metric
        return Metric.DEVICE if Metric.DEVICE in self.timings else Metric.RESIDENT

    def order(self, metric: Metric) -> float:
        """The key that sorts results by a metric, the best first; infinite if it is not known."""
        value = self.value(self.timed_by(metric))
        return math.inf if value is None else value

    @property
    def memory_bound(self) -> bool:
        """Whether memory, not arithmetic, takes the time: at most one operation per byte."""
        workload = catalogue.workload_module(self.workload)
        return workload.bytes_moved(self.size) >= workload.operations(self.size)


# ---- What follows from one result.


def judged(result: Result) -> Result:
    """The result with its rates; refused if its device cannot be that fast."""
    if not result.ok:
        return result
    for metric in (Metric.DEVICE, Metric.RESIDENT, Metric.PREPARED):
        if metric in result.timings and (fault := _impossible(result, metric, result.timings[metric].median)):
            return replace(result, status=Status.REFUSED, reason=f"{metric}: {fault}", timings={})
    if not result.timings.keys() & {Metric.DEVICE, Metric.RESIDENT}:
        return result
    workload = catalogue.workload_module(result.workload)
    best = result.timings[result.timed_by(Metric.BANDWIDTH)].median
    moved = workload.bytes_moved(result.size)
    rates = Rates(workload.operations(result.size) / best / 1e9)
    if not moved or result.mode in HALVES:  # the workload counts four bytes for each element of a factor
        return replace(result, rates=rates)
    bandwidth, share = moved / best / 1e9, None
    # Memory does not limit data that fit into the cache, so a percentage of the memory's bandwidth would mean nothing.
    if result.copy_bandwidth and beyond_cache(result, moved):
        share = 100 * bandwidth / result.copy_bandwidth
    return replace(result, rates=replace(rates, bandwidth=bandwidth, share=share))


def beyond_cache(result: Result, moved: float) -> bool:
    """Whether so many bytes do not fit into the cache of the result's device."""
    return result.cache_bytes is not None and moved > 2 * result.cache_bytes


def _impossible(result: Result, metric: Metric, seconds: float) -> str | None:
    """Why its device cannot be that fast, in one line; None if it can, or if what it can do is not known."""
    workload = catalogue.workload_module(result.workload)
    moved = workload.bytes_moved(result.size)
    if result.mode in HALVES:
        moved /= 2  # no array has fewer than two bytes for each element
    bandwidth = moved / seconds / 1e9
    more = READ_LIMIT
    if beyond_cache(result, moved):
        limit, what = result.copy_bandwidth, "a copy on it"
        if result.driver or result.empty_kernel:  # only a GPU has one
            more = READ_LIMIT_ON_GPU
    else:
        limit, what = result.cache_bandwidth, "its cache"
    if limit and bandwidth > more * limit:
        return f"{bandwidth:,.0f} GB/s is more than this device can do: {what} runs at {limit:,.0f} GB/s"
    recipe = catalogue.find(result.workload, result.technique)
    least = workload.shared_operations if recipe and recipe.makes_fewer_samples else workload.operations
    rate, limit = least(result.size) / seconds / 1e9, result.arithmetic
    if limit and rate > ARITHMETIC_LIMIT * limit and not TENSOR_CORES.search(result.math or ""):
        return (
            f"{rate:,.0f} Gop/s, at the least, is more than this device can do: it multiplies and adds at"
            f" {limit:,.0f} Gop/s"
        )
    empty = result.empty_kernel
    if metric == Metric.DEVICE and empty and seconds < empty / EMPTY_LIMIT:
        return (
            f"{seconds * 1e6:,.3g} µs is less than this device takes for anything: an empty kernel takes"
            f" {empty * 1e6:,.3g} µs"
        )
    return None


# ---- What follows from several.


def completed(results: Iterable[Result]) -> list[Result]:
    """The results with their speedups over NumPy in the same environment, and the size from which each technique is
    faster than NumPy. A doubtful time gives no speedup, nor does a stale one over a NumPy of another commit: then those
    that are known already stay. A recipe that rounds its factors is not compared with NumPy, which does not."""
    results = list(results)
    numpy = {
        (each.workload, each.environment, each.size): each
        for each in results
        if each.is_numpy and each.value(Metric.RESIDENT) is not None and not each.doubt(Metric.RESIDENT)
    }
    found = []
    for each in results:
        other = numpy.get((each.workload, each.environment, each.size))
        base = other.value(Metric.RESIDENT) if other and of_one_state(each, other) else None
        times = {metric: each.value(metric) for metric in AGAINST_NUMPY if not (each.mode or each.doubt(metric))}
        speedups = {metric: base / time for metric, time in times.items() if base and time}
        found.append(replace(each, speedups=speedups) if speedups else each)
    points: dict[tuple[str, str, str, Metric], list[tuple[int, float, float]]] = {}
    for each in found:
        if isinstance(each.size, int):
            for metric, speedup in each.speedups.items():
                if time := each.value(metric):
                    points.setdefault((*_series(each), metric), []).append((each.size, time, speedup * time))
    crossings = {key: Crossing.of(those, partial(catalogue.work, key[0])) for key, those in points.items()}
    return [
        each
        if each.is_numpy or not each.ok
        else replace(
            each,
            crossings={
                metric: crossings[*_series(each), metric]
                for metric in AGAINST_NUMPY
                if (*_series(each), metric) in crossings
            },
        )
        for each in found
    ]


def of_one_state(one: Result, other: Result) -> bool:
    """Whether the code of both is that of today, or of one commit."""
    commits = {each.origin.commit for each in (one, other) if each.origin}
    return len(commits) < 2 or not (one.stale or other.stale)


def _series(result: Result) -> tuple[str, str, str]:
    """What identifies the results of the same recipe at other sizes."""
    return result.workload, result.environment, result.technique


def proportional(points: Sequence[tuple[float, float]], work: float) -> float:
    """The time of this much work, from two points (work, time): a fixed cost, and a part in proportion to the work.
    More work never takes less time. Where the fixed cost would be less than 0, as where caches are left behind, time
    grows by a power of the work between the points, and in proportion to it below them; beyond them the line goes
    on."""
    (less, short), (more, long) = sorted(points)
    slope = (long - short) / (more - less)
    fixed = short - slope * less
    if work > more:
        return max(long, fixed + slope * work)
    if work < less and slope <= 0:
        return short
    if fixed > 0:
        return fixed + slope * work
    return short * work / less if work < less else short * (work / less) ** power(points)


def power(points: Sequence[tuple[float, float]]) -> float:
    """The power of the work by which time grows from one point (work, time) to the other."""
    (less, short), (more, long) = sorted(points)
    return math.log(long / short) / math.log(more / less)


def crossing(points: Sequence[tuple[int, float, float]], work: Callable[[int], float]) -> int | None:
    """The size from which a technique stays faster than another, of (size, seconds, the other's seconds) sorted by
    size; None if there is none. ``work``: of a size, see catalogue.work().

    Between two measured sizes, the times are those of proportional(). If the technique is faster at every size, the
    result is the smallest size.
    """
    lost = [i for i, (_, seconds, other) in enumerate(points) if seconds >= other]
    if not lost:
        return points[0][0]
    if lost[-1] == len(points) - 1:
        return None
    (size, seconds, other), (next_size, next_seconds, next_other) = points[lost[-1]], points[lost[-1] + 1]
    mine = (work(size), seconds), (work(next_size), next_seconds)
    others = (work(size), other), (work(next_size), next_other)

    def won(at: int) -> bool:
        return proportional(mine, work(at)) <= proportional(others, work(at))

    return size + bisect_left(range(size, next_size), True, key=won)


def tied(one: Result, other: Result, metric: Metric) -> bool:
    """Whether the samples do not tell which of them is better.

    If both were measured in at least three runs: whether 1 is in the 95 % interval of the mean ratio of their values in
    one run. What a run or a machine does to both cancels. Otherwise, whether the middle halves of their samples
    overlap."""
    ratios = _ratios(one, other, metric)
    if ratios:
        half = student(0.975, len(ratios) - 1) * stdev(ratios) / math.sqrt(len(ratios))
        return abs(fmean(ratios)) <= half
    # Not the intervals of the medians: after ten thousand calls in one process, they are narrower than the difference
    # to the next process; after three calls, they reach from 0 to several times the median.
    mine, others = (each.timings.get(each.timed_by(metric)) for each in (one, other))
    overlap = mine.overlaps(others) if mine and others else None
    return one.value(metric) == other.value(metric) if overlap is None else overlap


@cache
def student(share: float, freedom: float) -> float:
    """The quantile of Student's distribution."""
    from scipy.special import stdtrit  # imported here, since most commands do without

    return float(stdtrit(freedom, share))


def _ratios(one: Result, other: Result, metric: Metric) -> list[float]:
    """The logarithms of the ratios of their values in each run that has both; none if these are too few."""
    timed = one.timed_by(metric)
    mine, others = one.runs.get(timed, {}), other.runs.get(timed, {})
    ratios = [math.log(mine[run] / others[run]) for run in mine.keys() & others.keys()]
    return ratios if len(ratios) >= ENOUGH_RUNS else []


class Rank(enum.StrEnum):
    """The first of a lane and math mode at one size, or several that tie."""

    BEST = "best"
    TIE = "tie"


def _best(lane: Sequence[Result], metric: Metric) -> Result:
    """The first of a lane: that with the best value, unless another was better in the runs that both were measured in,
    on average."""
    best = min(lane, key=lambda each: each.order(metric))
    for each in sorted(lane, key=lambda each: each.order(metric)):
        if fmean(_ratios(each, best, metric) or (0,)) < 0:
            best = each
    return best


def ranks(results: Iterable[Result], metric: Metric) -> dict[str, Rank]:
    """{technique: its rank} among the results of one workload and size, ranked separately for each lane and math mode.
    Those with a doubtful value among them have no ranks, because that one may be the best; nor have those of which only
    some are stale."""
    if metric in UNRANKED:
        return {}
    results = list(results)
    lanes = grouped([each for each in results if each.value(metric) is not None], lambda each: each.peers)
    several = len({each.peers for each in results}) > 1
    found: dict[str, Rank] = {}
    for lane in lanes:
        if several and all(each.is_numpy for each in lane):
            continue  # NumPy is only there for comparison: alone in its lane, it is not ranked
        if any(each.doubt(metric) for each in lane) or len({each.stale for each in lane}) > 1:
            continue
        best = _best(lane, metric)
        first = [each.technique for each in lane if each is best or tied(each, best, metric)]
        found |= dict.fromkeys(first, Rank.TIE if len(first) > 1 else Rank.BEST)
    return found


def keyed(each: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """{key(item): the items that share it}, in the order in which the keys first appear."""
    groups: dict[K, list[T]] = {}
    for one in each:
        groups.setdefault(key(one), []).append(one)
    return groups


def grouped(each: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Lists of the items that share key(item), in the order in which the keys first appear."""
    return list(keyed(each, key).values())


def named(technique: str, environment: str) -> str:
    told = environment == machine.MAIN or technique.startswith(environment)
    return technique if told else f"{technique} ({environment})"


def of_one_environment(results: Iterable[Result]) -> list[Result]:
    """One result of each recipe and size: the main environment's if it was measured in several."""
    same = grouped(results, lambda each: each.work)
    return [min(those, key=lambda each: each.environment != machine.MAIN) for those in same]


def over_one_numpy(results: Iterable[Result]) -> list[Result]:
    """One result of each recipe and size, with its speedups over one NumPy, the main environment's. Each environment
    has a NumPy of its own, measured at another time: over that, the slower of two recipes may have the larger one."""
    one = of_one_environment(results)
    same = completed(replace(each, environment=machine.MAIN) for each in one)
    return [replace(each, speedups=other.speedups) for each, other in zip(one, same, strict=True)]


def of_lane(results: Iterable[Result], lane: str | None) -> list[Result]:
    """The results of this lane plus NumPy's, with which all are compared; every result if no lane is named."""
    return [each for each in results if lane in (None, each.lane) or each.is_numpy]


# ---- As plain data.


def record(result: Result) -> dict[str, Any]:
    """One flat row with the units in the names, for CSV and JSON; only what is known. No metric of a result that is
    wrong."""
    if result.status in WRONG:
        result = replace(result, timings={}, first=None, peak_memory=None, error=None, rates=None, doubts={})
    row: dict[str, Any] = {
        "workload": result.workload,
        "technique": result.technique,
        "framework": result.framework,
        "lane": result.lane,
        "environment": result.environment,
        "math": result.math,
        "device": result.device,
        "driver": result.driver,
        "cuda": result.cuda,
        "versions": result.versions,
        "size": result.size,
        "status": str(result.status),
        "reason": result.reason,
    }
    for metric in TIMED:
        if timing := result.timings.get(metric):
            spread = {"q1_s": timing.q1, "q3_s": timing.q3, "samples": timing.count}
            row |= {KEYS[metric]: timing.median} | {f"{metric}_{key}": value for key, value in spread.items()}
    if result.first:
        row |= {KEYS[Metric.FIRST]: result.first.total}
        row |= {f"first_{part}_s": seconds for part, seconds in result.first.parts.items()}
    optional = {
        "device_reason": result.no_device_time,
        KEYS[Metric.MEMORY]: result.peak_memory,
        KEYS[Metric.ERROR]: result.error,
        "device_copy_bandwidth_gb_per_s": result.copy_bandwidth,
        "device_cache_bytes": result.cache_bytes,
        "device_cache_bandwidth_gb_per_s": result.cache_bandwidth,
        "device_arithmetic_g_per_s": result.arithmetic,
        "device_empty_kernel_s": result.empty_kernel,
        "operations_g_per_s": result.rates and result.rates.operations,
        KEYS[Metric.BANDWIDTH]: result.rates and result.rates.bandwidth,
        "copy_bandwidth_percent": result.rates and result.rates.share,
    }
    row |= {key: value for key, value in optional.items() if value is not None}
    row |= {f"{metric.replace(' ', '_')}_doubt": doubt for metric, doubt in result.doubts.items()}
    row |= {f"speedup_{metric}_x": value for metric, value in result.speedups.items()}
    for metric, crossed in result.crossings.items():
        row |= {
            f"beats_numpy_from_size_{metric}": crossed.size,
            f"beats_numpy_measured_to_size_{metric}": crossed.measured_to,
            f"beats_numpy_at_every_size_{metric}": crossed.everywhere,
        }
    return row


def origin_record(result: Result | None) -> dict[str, Any]:
    """Where a stored result comes from."""
    origin = result.origin if result else None
    return {
        "machine": origin and origin.machine,
        "environment": result and result.environment,
        "asv_environment": origin and origin.environment,
        "commit": origin and origin.commit,
    }


def stored_record(result: Result) -> dict[str, Any]:
    """Everything about a stored result except its metrics, which metric_record() has."""
    return origin_record(result) | {
        "date": result.origin and result.origin.date,
        "contributor": result.origin and result.origin.contributor,
        "device": result.device,
        "driver": result.driver,
        "cuda": result.cuda,
        "clock": result.clock,
        "workload": result.workload,
        "technique": result.technique,
        "framework": result.framework,
        "lane": result.lane,
        "math": result.math,
        "size": result.size,
        "status": str(result.status),
        "reason": result.reason,
        "stale": result.stale,
        "versions": result.versions,
        "device_copy_bandwidth_gb_per_s": result.copy_bandwidth,
    }


def metric_record(result: Result | None, metric: Metric) -> dict[str, Any]:
    """The value of one metric, and its spread if it is timed."""
    row: dict[str, Any] = {f"value_{UNITS[metric]}": result.value(metric) if result else None}
    if metric in TIMED:
        timing = result.timings.get(metric) if result else None
        quartiles, interval = timing and timing.quartiles, timing and timing.interval
        row |= dict(zip(("q1_s", "q3_s"), quartiles or (None, None), strict=True))
        row |= dict(zip(("ci99_a_s", "ci99_b_s"), interval or (None, None), strict=True))
        row["samples"] = timing and timing.count
    row["doubt"] = result and result.doubt(metric)
    if metric == Metric.BANDWIDTH:
        row["copy_bandwidth_percent"] = result.rates.share if result and result.rates else None
    return row


def to_wire(result: Result) -> dict[str, Any]:
    """Plain data: a worker sends it through a pipe, at whose other end runner.MESSAGES has its type."""
    return dataclasses.asdict(result)
