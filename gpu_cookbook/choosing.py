"""Which recipe to take, at any size: from results that are stored or were measured just now, to an Advice. Nothing is
measured and nothing is printed here."""

import bisect
import enum
import math
import statistics
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from gpu_cookbook import catalogue, machine, repeats, units
from gpu_cookbook.catalogue import Recipe
from gpu_cookbook.results import (
    TIMED,
    Metric,
    Result,
    Size,
    beyond_cache,
    grouped,
    mode_of,
    of_one_environment,
    power,
    proportional,
    ranks,
)
from gpu_cookbook.units import joined

CLOSE = 1.05  # times that differ by less are called equal, whatever is known of other runs
LANES = ("idiomatic", "tuned")


class Data(enum.StrEnum):
    """Where the arrays are before the work, and where its result is to be."""

    HOST = "host"
    PINNED = "pinned"  # on the host, in page-locked memory that the framework allocates
    DEVICE = "device"


WAYS = {
    Data.HOST: "from host arrays to a host result",
    Data.PINNED: "with the data in page-locked host arrays",
    Data.DEVICE: "with the data on the device",
}


class NoAdvice(ValueError):
    """Nothing can be advised; the message says what to do."""


@dataclass(frozen=True)
class Room:
    """The memory of a machine, in bytes; None: it is not known, or there is no GPU."""

    machine: str  # as a sentence names it
    host: int | None
    gpu: int | None  # of the smallest GPU


@dataclass(frozen=True)
class Question:
    workload: str
    size: Size
    data: Data

    def __str__(self) -> str:
        given = getattr(catalogue.workload_module(self.workload), "GIVEN", "which makes its own data")
        return f"{self.workload}, {self.label}, {WAYS[self.data] if self.has_arrays else given}"

    @property
    def label(self) -> str:
        """The size as people write it."""
        return catalogue.workload_module(self.workload).label(self.size)

    @property
    def has_arrays(self) -> bool:
        """Whether it matters where the arrays are."""
        return _has_arrays(self.workload)

    @property
    def on_device(self) -> bool:
        """Whether there are arrays, and on the device."""
        return self.data == Data.DEVICE and self.has_arrays

    def work(self, size: Size | None = None) -> float:
        """Of the size that is asked for, unless another is named."""
        return catalogue.work(self.workload, self.size if size is None else size)

    def metric(self, result: Result) -> Metric:
        """The time that answers this question. What runs on the CPU finds arrays of the host where they are, unless it
        hands them to an engine, or to OpenCL; and page-locked arrays are to it like any others."""
        there = result.place == "CPU" and result.framework not in catalogue.engines()
        if self.on_device or there or not self.has_arrays:
            return Metric.RESIDENT
        return Metric.PINNED if self.data == Data.PINNED and result.on_gpu else Metric.TRANSFER

    def concerns(self, result: Result) -> bool:
        return result.workload == self.workload and (not self.on_device or result.on_gpu)

    def is_for(self, recipe: Recipe) -> bool:
        """Whether a recipe, where it runs here, gives a time that answers this question."""
        if recipe.refuses(self.size):
            return False
        if self.data == Data.HOST or not self.has_arrays:
            return True
        on_cpu = recipe.runs_on == "CPU" or not machine.gpus()
        return not on_cpu if self.on_device else on_cpu or "pinned" in recipe.functions

    def seconds(self, result: Result) -> float | None:
        """None if that is not known, or doubtful."""
        metric = self.metric(result)
        return None if result.doubt(metric) else result.value(metric)


@dataclass(frozen=True)
class Estimate:
    """The time of a recipe at the size of a question."""

    seconds: float
    metric: Metric
    basis: tuple[Result, ...]  # one that was measured at this size, or the two from which the time is estimated
    at_most: bool = False  # it may take less
    apart: bool = False  # the way to the GPU and back was estimated apart, from any workload

    @property
    def result(self) -> Result:
        """The measured result, or the one whose time is nearer."""
        return min(self.basis, key=lambda each: abs(each.order(self.metric) - self.seconds))

    @property
    def technique(self) -> str:
        return self.basis[0].technique

    @property
    def recipe(self) -> Recipe:
        recipe = catalogue.find(self.basis[0].workload, self.technique)
        assert recipe  # see Knowledge
        return recipe

    @property
    def measured(self) -> bool:
        return len(self.basis) == 1

    @property
    def stale(self) -> bool:
        return any(each.stale for each in self.basis)

    @property
    def on_gpu(self) -> bool:
        return self.basis[0].on_gpu

    @property
    def way(self) -> float | None:
        """Which part of a time is the way to the GPU and back; None if there is no such way, or it was not measured."""
        work = self.result.value(Metric.RESIDENT)
        there = self.metric == Metric.RESIDENT or not self.on_gpu
        if there or not self.measured or not work or self.result.doubt(Metric.RESIDENT):
            return None
        return max(0.0, 1 - work / self.seconds)


@dataclass(frozen=True)
class Pick:
    """The first of a lane, those that tie with it, and the first that does not; each in the order of their times."""

    first: Estimate
    ties: tuple[Estimate, ...]
    runner_up: Estimate | None


@dataclass(frozen=True)
class Advice:
    question: Question
    picks: Mapping[str, Pick]  # of each lane from which there is one
    numpy: Estimate | None
    elsewhere: Mapping[str, Estimate]  # of each lane, the first on the CPU if the pick is on the GPU, and the reverse
    doubtful: Sequence[Result]  # at this size; each may be faster than the pick, and does not count
    rounding: Sequence[Estimate]  # recipes that round their factors and are faster than the pick
    hidden: Sequence[Estimate]  # recipes that may be faster than the pick: their other sizes do not tell
    alone: bool  # the time of no other recipe is known, whether it is advised or not

    @property
    def plain(self) -> Pick | None:
        return self.picks.get("idiomatic")

    @property
    def tuned(self) -> Pick | None:
        """Of the tuned lane, if that is faster."""
        tuned = self.picks.get("tuned")
        return tuned if tuned and not (self.plain and tuned.first.seconds >= self.plain.first.seconds) else None

    @property
    def shown(self) -> list[Pick]:
        return [pick for pick in (self.plain, self.tuned) if pick]


# ---- The time at any size.


@dataclass(frozen=True)
class Knowledge:
    """What is known of one machine, from one result of each recipe and size. Recipes that no longer exist, or cannot
    be read, do not count, nor do those of a workload that cannot be used."""

    results: Sequence[Result]
    room: Room | None = None

    @cached_property
    def _recipes(self) -> list[list[Result]]:
        """The results of each recipe, at sizes as today's workload has, sorted by size."""
        usable = catalogue.workloads()
        there = {(each.workload, each.technique) for each in catalogue.recipes() if each.workload in usable}
        mine = [each for each in of_one_environment(self.results) if (each.workload, each.technique) in there]
        # Of a time without its device, as when a line of runs.jsonl is lost, nobody knows whether a GPU took it.
        placed = [each for each in mine if each.device or not each.ok]
        of_today = [each for each in placed if catalogue.is_size(each.workload, each.size)]
        recipes = grouped(of_today, lambda each: (each.workload, each.technique))
        return [sorted(those, key=lambda each: each.size) for those in recipes]

    @cached_property
    def _shortest(self) -> dict[tuple[Hashable, str, Metric], float]:
        """The shortest time of each technique in each workload, and of each framework on either kind of device."""
        found: dict[tuple[Hashable, str, Metric], float] = {}
        for each in (one for mine in self._recipes for one in mine if one.ok):
            for metric in TIMED:
                if each.doubt(metric) or not (value := each.value(metric)):
                    continue
                for name in (each.technique, _kind(each)):
                    key = (name, each.workload, metric)
                    found[key] = min(value, found.get(key, value))
        return found

    @cached_property
    def _ways(self) -> dict[tuple[str, Metric, bool], list[tuple[float, float]]]:
        """How long arrays of the host take to the GPU and back, whatever is computed there: of each technique, (bytes,
        seconds), sorted. Those of reductions are apart, since nothing but a number comes back. Workloads with sizes of
        several numbers, whose times are not estimated, do not count."""
        found: dict[tuple[str, Metric, bool], dict[float, list[float]]] = {}
        for each in (one for mine in self._recipes for one in mine if one.ok and one.on_gpu):
            if not isinstance(each.size, int) or not _has_arrays(each.workload):
                continue
            for metric in (Metric.TRANSFER, Metric.PINNED):
                if not _known(metric, each) or not _known(Metric.RESIDENT, each):
                    continue
                whole, work = each.order(metric), each.order(Metric.RESIDENT)
                if whole > work * self._pair(metric, each):  # otherwise the difference may be noise
                    ways = found.setdefault((each.technique, metric, _returns(each.workload)), {})
                    ways.setdefault(_sent(each.workload, each.size), []).append(whole - work)
        return {
            key: sorted((sent, statistics.geometric_mean(times)) for sent, times in ways.items())
            for key, ways in found.items()
        }

    @cached_property
    def spreads(self) -> dict[repeats.Kind, repeats.Spread]:
        return repeats.spreads(self.results)

    def _pair(self, metric: Metric, result: Result) -> float:
        spread = self.spreads.get((metric, result.on_gpu))
        return max(CLOSE, spread.pair if spread else 1)

    def tolerance(self, *estimates: Estimate) -> float:
        """By what factor their times may differ from one run to the next."""
        return max(self._pair(each.metric, each.result) for each in estimates)

    def sizes(self, question: Question) -> list[Any]:
        """At which something was measured."""
        return sorted({each.size for mine in self._mine(question) for each in mine})

    def of_size(self, question: Question) -> list[Result]:
        """What was measured at this very size, whatever came of it."""
        return [
            each for mine in self._recipes for each in mine if question.concerns(each) and each.size == question.size
        ]

    def _mine(self, question: Question) -> Iterator[list[Result]]:
        """The results of each recipe that answer the question at their sizes."""
        for mine in self._recipes:
            known = [each for each in mine if question.concerns(each) and question.seconds(each)]
            # What went wrong does so at larger sizes, too; what is doubtful at this size is not known from others.
            wrong = any(
                not each.ok and question.work(each.size) <= question.work()
                for each in mine
                if each.workload == question.workload
            )
            here = [each for each in mine if each.size == question.size]
            recipe = catalogue.find(question.workload, mine[0].technique)
            takes = recipe and not recipe.refuses(question.size)
            if known and takes and not wrong and not any(each not in known for each in here):
                yield known

    def estimates(self, question: Question) -> list[Estimate]:
        """Of each recipe, the fastest first."""
        return self.told(question)[0]

    def told(self, question: Question) -> tuple[list[Estimate], list[Estimate]]:
        """The estimates, the fastest first; and those that only say what a recipe takes at most, and decide nothing."""
        found, hidden = list[Estimate](), list[Estimate]()
        for mine in self._mine(question):
            if each := self._estimate(mine, question):
                found.append(each)
            elif each := self._at_most(mine, question):
                hidden.append(each)
        shortest: dict[str, float] = {}
        for each in found:
            lane = each.basis[0].lane
            shortest[lane] = min(each.seconds, shortest.get(lane, each.seconds))
        # Faster than all others of its lane, whatever it takes.
        found += [each for each in hidden if each.seconds < shortest.get(each.basis[0].lane, 0)]
        return sorted(found, key=lambda each: each.seconds), [each for each in hidden if each not in found]

    def _estimate(self, mine: Sequence[Result], question: Question) -> Estimate | None:
        """None if other sizes do not tell, or if a size is more than one number: the time is not in proportion to
        both."""
        metric = question.metric(mine[0])
        for each in mine:
            if each.size == question.size:
                return Estimate(each.order(metric), metric, (each,))
        if len(mine) < 2 or not isinstance(question.size, int):
            return None
        return self._in_parts(mine, metric, question) or self._on_line(mine, metric, question)

    def _in_parts(self, mine: Sequence[Result], metric: Metric, question: Question) -> Estimate | None:
        """Beyond the largest size, with arrays of the host and a GPU: the work, and the way there and back, which takes
        as long as in any workload with as many bytes. None of all else, and if one of these is not known."""
        beyond = question.work() > question.work(mine[-1].size)
        if not beyond or metric == Metric.RESIDENT or not mine[-1].on_gpu or not _known(Metric.RESIDENT, *mine):
            return None
        ways = self._ways.get((mine[0].technique, metric, _returns(question.workload)), [])
        if len(ways) < 2:
            return None
        sent = _sent(question.workload, question.size)
        place = min(max(1, bisect.bisect(ways, sent, key=lambda each: each[0])), len(ways) - 1)
        (less, short), (more, long) = nearest = ways[place - 1 : place + 1]
        if sent <= more:
            way = short * (sent / less) ** max(0.0, power(nearest))
        elif long > ways[0][1] * self._pair(metric, mine[-1]):
            way = long * sent / more  # at the rate of the last: two workloads make no line
        else:
            return None  # the fixed cost hides what more bytes take
        basis = mine[-2], mine[-1]
        if work := self._on_line(mine, Metric.RESIDENT, question):
            return Estimate(work.seconds + way, metric, basis, apart=True)
        if not mine[-1].memory_bound:
            return None
        # Where the fixed cost of a call hides the work, that is little, compared with the way.
        seconds = mine[0].order(Metric.RESIDENT) + _least(mine[-1], question) + way
        return Estimate(seconds, metric, basis, apart=True)

    def _on_line(self, mine: Sequence[Result], metric: Metric, question: Question) -> Estimate | None:
        """From the two sizes around that of the question or, beyond all of them, the last two. None if these do not
        tell."""
        below = sum(question.work(each.size) < question.work() for each in mine)
        start = min(max(below - 1, 0), len(mine) - 2)
        less, more = basis = mine[start], mine[start + 1]
        if below == len(mine):
            # The host's part of a call on the GPU stays the same, and varies more than the GPU's own time.
            of = Metric.DEVICE if metric == Metric.RESIDENT and _known(Metric.DEVICE, *basis) else metric
            if more.order(of) < less.order(of) * self._pair(of, more):
                return None  # the fixed cost hides what larger sizes take
            seconds = more.order(metric) - more.order(of) + _along(basis, of, question)
            seconds = max(seconds, mine[0].order(metric) + _least(more, question))
        else:
            seconds = _along(basis, metric, question)
            if not below:
                least, most = self._elsewhere(less, metric), less.order(metric)
                fixed = proportional(_points(basis, metric, question), 0)
                same = (CLOSE - 1) * most  # two runs may differ by as much
                if fixed < same and least:
                    seconds -= fixed
                elif fixed < same and seconds < same:
                    return None  # a fixed cost of as much would not show in the times of larger sizes
                seconds = max(seconds, least)
                # At the measured size: of a product of a few elements, there are more bytes than operations.
                if question.work(less.size) > catalogue.workload_module(question.workload).bytes_moved(less.size):
                    # A small product runs at a lower rate. The line takes all of that for a fixed cost, and a power of
                    # the work takes none: their geometric mean is off by the least factor.
                    growth = max(0.0, power(_points(basis, metric, question)))
                    scaled = most * float((question.work() / question.work(less.size)) ** growth)
                    seconds = math.sqrt(seconds * max(least, scaled))
                seconds = min(seconds, most)
        return Estimate(seconds, metric, basis)

    def _at_most(self, mine: Sequence[Result], question: Question) -> Estimate | None:
        """Beyond the largest size, where a fixed cost hides what that takes: as if nothing of it were fixed. Far below
        the smallest, where no fixed cost shows: as if all of it were."""
        if len(mine) < 2 or not isinstance(question.size, int):
            return None
        metric, more = question.metric(mine[0]), mine[-1]
        if question.work() < question.work(mine[0].size):
            return Estimate(mine[0].order(metric), metric, (mine[0], mine[1]), at_most=True)
        seconds = more.order(metric) * question.work() / question.work(more.size)
        seconds = max(seconds, mine[0].order(metric) + _least(more, question))
        return Estimate(seconds, metric, (mine[-2], more), at_most=True)

    def _elsewhere(self, result: Result, metric: Metric) -> float:
        """The shortest time of the same technique in any other workload, or else of its framework: what it takes at the
        least, unless the work begins with something else than arrays. 0 if that is not known."""
        if hasattr(catalogue.workload_module(result.workload), "GIVEN"):
            return 0
        for name in (result.technique, _kind(result)):
            known = [
                value
                for (of, workload, timed), value in self._shortest.items()
                if (of, timed) == (name, metric) and workload != result.workload
            ]
            if known:
                return min(known)
        return 0


def _kind(result: Result) -> tuple[str, bool]:
    return result.framework, result.on_gpu


def _known(metric: Metric, *results: Result) -> bool:
    return all(each.value(metric) and not each.doubt(metric) for each in results)


def _along(basis: Sequence[Result], metric: Metric, question: Question) -> float:
    return proportional(_points(basis, metric, question), question.work())


def _points(basis: Sequence[Result], metric: Metric, question: Question) -> list[tuple[float, float]]:
    return [(question.work(each.size), each.order(metric)) for each in basis]


def _has_arrays(workload: str) -> bool:
    """Whether a workload is given arrays: not if it makes its own, or is GIVEN something else."""
    module = catalogue.workload_module(workload)
    return bool(module.bytes_moved(module.SIZES[0])) and not hasattr(module, "GIVEN")


@cache
def _arguments(workload: str) -> float:
    """The bytes of all arguments, as a part of those that are moved on the device: less than 1 where the result is an
    array, too, and more where not all of them are read."""
    module = catalogue.workload_module(workload)
    size = module.SIZES[0]
    return float(sum(getattr(each, "nbytes", 0) for each in module.inputs(size)) / module.bytes_moved(size))


def _returns(workload: str) -> bool:
    """Whether an array comes back: of a reduction, 8 bytes do."""
    return _arguments(workload) < 0.9


def _sent(workload: str, size: Size) -> float:
    """The bytes that go to the GPU and back, unless a recipe sends only what it reads."""
    return float(catalogue.workload_module(workload).bytes_moved(size)) * max(1, _arguments(workload))


def _least(result: Result, question: Question) -> float:
    """What the work of this size takes at the least on the device of the result, apart from the fixed cost: its
    arithmetic, and a copy of so many bytes if they do not fit into its cache. Nothing for recipes that round their
    factors: tensor cores do more, on fewer bytes."""
    if result.mode:
        return 0
    workload = catalogue.workload_module(question.workload)
    moved, operations = workload.bytes_moved(question.size), workload.operations(question.size)
    return max(
        moved / result.copy_bandwidth / 1e9 if result.copy_bandwidth and beyond_cache(result, moved) else 0,
        operations / result.arithmetic / 1e9 if result.arithmetic else 0,
    )


# ---- The advice.


def require_pinned(question: Question) -> None:
    """NoAdvice if page-locked arrays are asked for, and no recipe makes any: only those on the CPU would be left."""
    recipes = catalogue.of_workload(question.workload)
    if question.data == Data.PINNED and question.has_arrays and not any("pinned" in each.functions for each in recipes):
        raise NoAdvice(f"No recipe of {question.workload} makes page-locked arrays: ask with --data host.")


def advise(question: Question, known: Knowledge, useless: Container[str] = (), here: bool = True) -> Advice:
    """What to take. ``useless``: techniques that are no advice, for instance because they need what a machine does not
    have. ``here``: it is for this machine, not for a stored one. NoAdvice if too little is known."""
    require_pinned(question)
    times, bounds = known.told(question)
    every, hidden = ([each for each in some if each.technique not in useless] for some in (times, bounds))
    plain = [each for each in every if not each.basis[0].mode]
    lanes = {lane: [each for each in plain if each.basis[0].lane == lane] for lane in LANES}
    picks = {lane: _pick(mine, known) for lane, mine in lanes.items() if mine}
    only_numpy = bool(every) and all(each.technique == "numpy" for each in every)
    if not picks or only_numpy and not here:
        raise NoAdvice(_missing(question, known, only_numpy, here))
    first = min((pick.first for pick in picks.values()), key=lambda each: each.seconds)
    plainest = picks.get("idiomatic", picks.get("tuned"))
    return Advice(
        question,
        picks,
        numpy=next((each for each in plain if each.technique == "numpy"), None),
        elsewhere={
            lane: across[0]
            for lane, mine in lanes.items()
            if (across := [each for each in mine if plainest and each.on_gpu != plainest.first.on_gpu])
        },
        doubtful=[
            each
            for each in known.of_size(question)
            if question.metric(each) in each.doubts and not each.mode and each.technique not in useless
            if each.lane not in picks or each.order(question.metric(each)) < picks[each.lane].first.seconds
        ],
        rounding=[each for each in every if each.basis[0].mode and each.seconds < first.seconds],
        hidden=[
            each
            for each in hidden
            if not each.basis[0].mode
            if question.work() < question.work(each.basis[0].size)  # more work takes no less time
            or (lane := each.basis[0].lane) not in picks
            or each.basis[-1].order(each.metric) < picks[lane].first.seconds
        ],
        alone=len(times) + len(bounds) == 1,
    )


def _missing(question: Question, known: Knowledge, only_numpy: bool, here: bool) -> str:
    workload = catalogue.workload_module(question.workload)
    sizes = known.sizes(question)
    rule = "others are not estimated"
    if isinstance(question.size, int):
        rule = "an estimate takes two sizes" if len(sizes) == 1 else "the fixed cost of a call does not show in them"
    what = "time but NumPy's" if only_numpy else "time of it"
    mine = [each for each in known.results if question.concerns(each) and not (only_numpy and each.is_numpy)]
    timed = [each for each in mine if each.value(question.metric(each))]
    doubtful = timed and all(each.doubt(question.metric(each)) for each in timed)
    why = f"every stored {what} is doubtful" if doubtful else f"no {what} is known"
    if sizes and not only_numpy:
        are = "is" if len(sizes) == 1 else "are"
        why = f"only {joined([*map(workload.label, sizes)])} {are} known, and {rule}"
    measured = {each.technique for each in known.results if question.concerns(each)}
    recipes = [each for each in catalogue.of_workload(question.workload) if each.technique in measured]
    how = to_measure(question, recipes, here)
    if question.on_device and known.results and not any(each.on_gpu for each in known.results):
        how = "No result of that machine is from a GPU: ask with --data host."
    return f"{question}: {why}. {how}"


def to_measure(question: Question, recipes: Iterable[Recipe], here: bool) -> str:
    """What to add to the command or, if it is another machine or none of these recipes runs in this environment, which
    command to run. What runs in every environment does not count: with NumPy alone there is nothing to choose from."""
    here_now = machine.environment()
    theirs = [each.environment for each in recipes if each.environments]
    name = min(theirs, key=lambda each: each != here_now, default=here_now)
    asked = f"-s {catalogue.option_of(question.size)} --data {question.data}"
    command = machine.in_environment(name, f"gpu-cookbook choose {question.workload} {asked} --measure")
    if not here:
        return f"To measure it, on that machine: {command}"
    return "To measure it here: --measure." if name == here_now else f"To measure it here: {command}"


def _pick(estimates: Sequence[Estimate], known: Knowledge) -> Pick:
    """Of one lane. Two that were measured tie as they do in the tables; if one of them is estimated, they do where
    another run may turn their order round."""
    best = estimates[0]
    # As if all were of one commit: ranks() leaves a lane alone in which only some results are stale.
    rivals = [replace(_asked(each), origin=None) for each in estimates if each.measured]
    ranked = ranks(rivals, Metric.RESIDENT)

    def leads(other: Estimate) -> bool:
        if best.measured and other.measured:
            return other.technique in ranked
        return other.seconds <= best.seconds * known.tolerance(best, other)

    leading = [each for each in estimates if leads(each)]
    rest = [each for each in estimates if each not in leading]
    return Pick(leading[0], tuple(leading[1:]), rest[0] if rest else None)


def _asked(estimate: Estimate) -> Result:
    """A measured result whose resident time is the one that was asked for: two recipes may answer by two metrics."""
    result, metric = estimate.result, estimate.metric
    return replace(
        result,
        timings={Metric.RESIDENT: result.timings[metric]},
        runs={Metric.RESIDENT: result.runs.get(metric, {})},
        doubts={},
    )


# ---- This machine.


def alike(results: Iterable[Result], workload: str) -> str:
    """The name of the machine that is most like this one, of those with results of this workload: with the same GPU or,
    if this one has none, without one. NoAdvice if there is none."""
    machines = by_likeness((each for each in results if each.ok and each.workload == workload), workload)
    if machines and _same_device(machines[0]):
        return machines[0][0].stored.machine
    kind = f"with this GPU ({machine.gpus()[0].name})" if machine.gpus() else "without a GPU"
    names = ", ".join(sorted(mine[0].stored.machine for mine in machines))
    others = f" To ask for another machine: --machine, with one of {names}." if names else ""
    raise NoAdvice(
        f"Nothing of {workload} is stored of a machine {kind}. To measure the most promising recipes here, in about a"
        f" minute: --measure.{others}"
    )


def by_likeness(results: Iterable[Result], workload: str) -> list[list[Result]]:
    """The results of each machine, those of the one that is most like this one first: of the same device, then with
    results of this workload, then with the same processor, then with the most results."""

    def likeness(mine: list[Result]) -> tuple[bool, bool, bool, int]:
        there = any(each.ok and each.workload == workload for each in mine)
        return _same_device(mine), there, of_this_processor(mine), len(mine)

    return sorted(grouped(results, lambda each: each.stored.machine), key=likeness, reverse=True)


def _same_device(results: Iterable[Result]) -> bool:
    ok = [each for each in results if each.ok]
    return any(machine.is_gpu(each.device) for each in ok) if machine.gpus() else not any(each.on_gpu for each in ok)


def of_this_processor(results: Iterable[Result]) -> bool:
    return any(each.device == machine.processor() for each in results)


def useless_here(question: Question) -> set[str]:
    """The techniques that are no advice for this machine, since it lacks the GPU, its GPU the memory, or its processor
    an OpenCL driver. What only has to be installed is advice. NoAdvice if the data fit nowhere."""
    if question.on_device and not machine.gpus():
        raise NoAdvice("This machine has no GPU on which the data could be: ask with --data host.")
    gpu = min((gpu.memory_bytes for gpu in machine.gpus()), default=None)
    room = Room("this machine", machine.host_memory(), gpu)
    return useless_for_lack_of_memory(question, room) | {
        recipe.technique
        for recipe in catalogue.of_workload(question.workload)
        if machine.lacks_gpu(recipe)
        or (machine.missing(recipe) and not machine.install_command(recipe))
        or machine.obstacle(recipe) == machine.POCL_IS_OLDER
    }


def useless_for_lack_of_memory(question: Question, room: Room) -> set[str]:
    """The techniques whose arrays the GPU of a machine cannot hold. NoAdvice if the data fit nowhere."""
    needed = catalogue.workload_module(question.workload).footprint(question.size)
    where, there = (room.gpu, f"the GPU of {room.machine}") if question.on_device else (room.host, room.machine)
    if where is not None and needed > where:
        raise NoAdvice(
            f"{question.workload}, {question.label}: its arrays take {units.memory(needed)}, and {there} has"
            f" {units.memory(where)}. Choose a smaller size, and work in parts."
        )
    if room.gpu is None or needed <= room.gpu:
        return set()
    return {each.technique for each in catalogue.of_workload(question.workload) if each.runs_on != "CPU"}


def candidates(question: Question, others: Iterable[Knowledge], useless: Container[str]) -> dict[Recipe, float]:
    """The recipes that run here and answer the question, the most promising first, and about how many seconds each
    takes; where nobody knows, as many as NumPy. ``others``: what is known of other machines, the most similar first.
    Promising is what was fast there, compared with NumPy or else with the first; then what is plain. For each tuned
    recipe there are two idiomatic ones."""
    times: dict[str, float] = {}
    promise: dict[str, float] = {}
    for known in others:
        estimates = [each for each in known.estimates(question) if machine.gpus() or not each.on_gpu]
        base = min(estimates, key=lambda each: (each.technique != "numpy", each.seconds), default=None)
        for each in estimates:
            times.setdefault(each.technique, each.seconds)
            promise.setdefault(each.technique, each.seconds / base.seconds if base else 0)
    recipes = [
        recipe
        for recipe in catalogue.of_workload(question.workload)
        if not machine.obstacle(recipe)
        and not mode_of(recipe.math)
        and recipe.technique not in useless
        and question.is_for(recipe)
    ]
    engines = catalogue.engines()
    recipes.sort(
        key=lambda each: (promise.get(each.technique, math.inf), each.framework in engines, len(each.technique))
    )
    turns = {
        each: place // share
        for lane, share in (("idiomatic", 2), ("tuned", 1))
        for place, each in enumerate(each for each in recipes if each.lane == lane)
    }
    usual = times.get("numpy", 0)
    return {
        each: times.get(each.technique, usual) for each in sorted(recipes, key=lambda each: (turns[each], each.lane))
    }
