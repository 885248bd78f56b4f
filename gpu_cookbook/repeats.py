"""What follows from measuring the same results again, in other processes, at other times and on other machines of one
kind: how far the next machine of that kind may be from what is stored."""

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpu_cookbook.results import ENOUGH_RUNS, TIMED, Metric, Result, Run, grouped, student

SHARE = 0.95  # of the next machine's metrics, that are meant to lie inside of the intervals
FEWEST = 1.5  # degrees of freedom: with one, as two machines have, an interval would reach as far as 13 deviations
METRICS = (*TIMED, Metric.FIRST)
Kind = tuple[Metric, bool]  # a metric, on a GPU or not: what is pooled, since single results have too few runs


@dataclass(frozen=True)
class Spread:
    """How the logarithms of a kind of metric are spread over units: machines if several were measured, otherwise the
    runs of one."""

    deviation: float
    freedom: float  # degrees of freedom
    units: int
    machines: bool

    def factor(self, units: int) -> float:
        """By what a value of the next unit may be more, or less, than the mean of so many: a prediction interval for
        normally distributed logarithms."""
        return math.exp(student((1 + SHARE) / 2, self.freedom) * self.deviation * math.sqrt(1 + 1 / units))

    @property
    def tells(self) -> bool:
        """Whether the units are enough for an interval."""
        return self.freedom >= FEWEST

    @property
    def pair(self) -> float:
        """By what two values of one result, each of another unit, differ at most, in SHARE of the pairs: as often as
        that, another run may turn the order of two results round. What a unit does to both of them cancels, so that
        the values count, not the units."""
        return math.exp(statistics.NormalDist().inv_cdf((1 + SHARE) / 2) * self.deviation * math.sqrt(2))


def spreads(results: Iterable[Result]) -> dict[Kind, Spread]:
    """The spread of each kind of metric of which at least two units were measured, in results of one machine and
    environment."""
    results = [each for each in results if each.ok]
    every_runs = [runs for each in results for runs in each.runs.values()]
    machines = any(len({run.instance for run in runs} - {None}) > 1 for runs in every_runs)
    found = {}
    for metric in METRICS:
        for mine in grouped(results, lambda each: each.on_gpu):
            repeated = [runs for each in mine if len(runs := each.runs.get(metric, {})) > 1]  # a small part of them
            every = [means for runs in repeated if len(means := logarithms(runs, machines)) > 1]
            if every:
                squares = sum(_squares(means.values()) for means in every)
                freedom = sum(len(means) - 1 for means in every)
                units = {unit for means in every for unit in means}
                kind = (metric, mine[0].on_gpu)
                found[kind] = Spread(math.sqrt(squares / freedom), _freedom(every), len(units), machines)
    return found


def _squares(values: Collection[float]) -> float:
    """The squares of their distances from their mean, together: in floats, since statistics.pvariance() takes ten times
    as long to compute in fractions."""
    mean = statistics.fmean(values)
    return sum((value - mean) ** 2 for value in values)


def _freedom(every: Iterable[Collection[str | None]]) -> float:
    """The degrees of freedom of a spread that is pooled over results, of which each is known of these units.

    What a machine does to one metric it does to all of a kind, so that the units count, not the values: so many less
    one, if all of them measured every result. This is Satterthwaite's approximation: the variance of each result has
    the quadratic form I - 1/n over its n units, and the sum M of these forms has tr(M)² / tr(M²) of them."""
    shares: dict[tuple[str | None, str | None], float] = defaultdict(float)
    for units in every:
        for one, other in itertools.product(units, repeat=2):
            shares[one, other] += (one == other) - 1 / len(units)
    trace = sum(share for (one, other), share in shares.items() if one == other)
    return trace**2 / sum(share**2 for share in shares.values())


def together(newest: Iterable[Result], every: Iterable[Result]) -> list[Result]:
    """The newest results, each with the runs of the same recipe and size at other commits, if its code, its versions
    and its driver were the same there: they repeat it, too. From ENOUGH_RUNS runs on, it gives way to the one of these
    results whose times are nearest to the medians of all runs: one machine that is out of the ordinary does not count
    for all."""
    before = {
        (those[0].stored.machine, those[0].key): those
        for those in grouped((each for each in every if each.ok), lambda each: (each.stored.machine, each.key))
    }
    found = []
    for result in newest:
        alike = [
            each
            for each in before.get((result.stored.machine, result.key), ())
            if each is not result and not (each.stale or result.stale) and _under(each) == _under(result)
        ]
        runs: dict[Metric, dict[Run, float]] = {}
        for each in [*alike, result]:
            for metric, values in each.runs.items():
                runs.setdefault(metric, {}).update(values)
        found.append(replace(_middle(result, alike, runs), runs=runs))
    return found


def _middle(newest: Result, others: Sequence[Result], runs: Mapping[Metric, Mapping[Run, float]]) -> Result:
    """Of a result and those that it repeats, the one that is nearest to the medians of all runs in the metric that is
    farthest, and of equals the newest. None counts that lacks one of the newest one's metrics or has a doubtful value
    that the newest has not. A newest result that is not ok stays, and so does one of fewer runs than ENOUGH_RUNS."""
    medians = {
        metric: statistics.median(values.values())
        for metric, values in runs.items()
        if metric in TIMED and len(values) >= ENOUGH_RUNS
    }
    if not newest.ok or not medians:
        return newest
    fit = [
        each
        for each in others
        if each.values.keys() >= newest.values.keys() and each.doubts.keys() <= newest.doubts.keys()
    ]

    def distance(each: Result) -> float:
        return max(abs(math.log(each.values.get(metric, math.inf) / median)) for metric, median in medians.items())

    return min(sorted([*fit, newest], key=lambda each: each.stored.order, reverse=True), key=distance)


def _under(result: Result) -> tuple[str | None, ...]:
    return result.device, result.driver, result.versions


def logarithms(runs: Mapping[Run, float], machines: bool) -> dict[str | None, float]:
    """{unit: the mean logarithm of its values}; of machines, those that can be told apart."""
    units: dict[str | None, list[float]] = {}
    for run, value in runs.items():
        if not machines or run.instance:
            units.setdefault(run.instance if machines else run.started, []).append(math.log(value))
    return {unit: statistics.fmean(values) for unit, values in units.items()}


def interval(result: Result, metric: Metric, found: Mapping[Kind, Spread]) -> tuple[float, float] | None:
    """Within which the next unit's value is expected; None if it was not measured often enough to say."""
    spread = found.get((metric, result.on_gpu))
    means = logarithms(result.runs.get(metric, {}), spread.machines) if spread else {}
    if not spread or not spread.tells or not means:
        return None
    middle, factor = math.exp(statistics.fmean(means.values())), spread.factor(len(means))
    return middle / factor, middle * factor


@dataclass
class Apart:
    """How far machines are from those of the same kind that were measured before them, in one kind of metric."""

    factors: list[float] = field(default_factory=list)  # of each value to the mean of those before, or the reverse: ≥ 1
    widths: list[float] = field(default_factory=list)  # of the intervals known before: how far they reach either way
    # Those whose value lies outside of its interval, each with the factor and the width.
    outside: list[tuple[Result, float, float]] = field(default_factory=list)


def newcomers(results: Iterable[Result]) -> dict[Kind, Apart]:
    """What each machine but the first says about the intervals that were known before it was measured, in results that
    have the runs of every commit, see together(). Those of several environments are told apart, since only what was
    measured there tells what to expect there."""
    apart: dict[Kind, Apart] = {}
    ok = [each for each in results if each.ok]
    for mine in grouped(ok, lambda each: each.origin and each.origin.environment):
        began: dict[str, str] = {}
        every = {run for each in mine for runs in each.runs.values() for run in runs}
        for run in sorted(every, key=lambda run: run.started):
            if run.instance:
                began.setdefault(run.instance, run.started)
        for machine, start in [*began.items()][1:]:
            _hold(machine, mine, [_until(each, start) for each in mine], apart)
    return apart


def _hold(machine: str, results: Sequence[Result], before: Sequence[Result], apart: dict[Kind, Apart]) -> None:
    """Adds what a machine says about the intervals of the results before it was measured."""
    found = spreads(before)
    for each, earlier in zip(results, before, strict=True):
        for metric in METRICS:
            own = logarithms(each.runs.get(metric, {}), machines=True).get(machine)
            others = logarithms(earlier.runs.get(metric, {}), machines=True)
            if own is not None and others:
                mine = apart.setdefault((metric, each.on_gpu), Apart())
                factor = math.exp(own - statistics.fmean(others.values()))
                mine.factors.append(max(factor, 1 / factor))
                if known := interval(earlier, metric, found):
                    mine.widths.append(width := math.sqrt(known[1] / known[0]))
                    if not known[0] <= math.exp(own) <= known[1]:
                        mine.outside.append((each, factor, width))


def _until(result: Result, start: str) -> Result:
    """The result as it was before the runs that began then, or later."""
    runs = {
        metric: {run: value for run, value in values.items() if run.started < start}
        for metric, values in result.runs.items()
    }
    return replace(result, runs=runs)
