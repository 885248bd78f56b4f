"""How good the advice of ``gpu-cookbook choose`` is, on all stored results: ``python benchmarks/choosing.py``.

Whole sizes and whole runs are hidden from it, one after another, and then asked for: on each machine, of each workload,
lane and place of the data. What it picks is compared with what was best there. Nothing is measured. A regret is the
measured time of the pick, divided by that of the best.
"""

import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpu_cookbook import catalogue, choosing, script
from gpu_cookbook.choosing import Data, Estimate, Knowledge, Question
from gpu_cookbook.render import text
from gpu_cookbook.render.tables import Entry, Table
from gpu_cookbook.results import Metric, Result, Run, grouped
from gpu_cookbook.store import asv_files as store
from gpu_cookbook.store.selecting import select
from gpu_cookbook.terminal import complain, console

BETWEEN, BELOW, BEYOND, RUN = "a size in between", "the smallest size", "the largest size", "a run"
ALL = "the largest size, and all as large"
HIDDEN = {
    BETWEEN: "what remains is on both sides of it",
    BELOW: "an extrapolation downwards",
    BEYOND: "an extrapolation upwards",
    ALL: "the times of as many bytes in other workloads are hidden, too",
    RUN: "what remains was measured at other times, mostly on other machines of the kind",
}
SIZE = "any size"
TOGETHER = {
    BETWEEN: (BETWEEN,),
    BELOW: (BELOW,),
    BEYOND: (BEYOND,),
    SIZE: (BETWEEN, BELOW, BEYOND),
    ALL: (ALL,),
    RUN: (RUN,),
}
GOAL = 0.95


@dataclass(frozen=True)
class Case:
    """One question whose answer was hidden; ``pick`` is None if there was no advice."""

    machine: str
    question: Question
    lane: str
    hidden: str
    best: Result
    pick: Result | None
    regret: float
    within: float  # a regret up to which another run may have the opposite order
    error: float  # the estimated time, divided by the measured one

    @property
    def close(self) -> bool:
        return self.regret <= choosing.CLOSE

    @property
    def right(self) -> bool:
        return self.regret <= self.within

    def same_on_cpu(self, other: "Case | None") -> bool:
        """Whether both have the same pick and the same best, on the CPU: page-locked arrays are like others there."""
        if not (other and other.pick and self.pick) or self.pick.on_gpu or self.best.on_gpu:
            return False
        return (self.pick.technique, self.best.technique) == (other.pick.technique, other.best.technique)


def cases(results: Sequence[Result]) -> Iterator[Case]:
    for mine in grouped(results, lambda each: each.stored.machine):
        newest, _ = select(mine)
        whole = Knowledge(newest)
        for workload in catalogue.workloads():
            there = [each for each in whole.results if each.workload == workload]
            sizes = sorted({each.size for each in there if each.ok and isinstance(each.size, int)})
            for i, size in enumerate(sizes):
                rest = [each for each in whole.results if (each.workload, each.size) != (workload, size)]
                hidden = BELOW if not i else BEYOND if i == len(sizes) - 1 else BETWEEN
                yield from _of_size(whole, Knowledge(rest), whole, workload, size, hidden)
                if hidden == BEYOND:
                    most = catalogue.workload_module(workload).bytes_moved(size)
                    less = [each for each in rest if each.workload == workload or _bytes(each) < most]
                    yield from _of_size(whole, Knowledge(less), whole, workload, size, ALL)
        for run in sorted({run for each in mine for values in each.runs.values() for run in values}):
            yield from _of_run(mine, run, whole)


def _bytes(result: Result) -> float:
    """0 if the workload cannot be used, or has other sizes today: the result does not count anyway."""
    if result.workload not in catalogue.workloads() or not catalogue.is_size(result.workload, result.size):
        return 0
    return float(catalogue.workload_module(result.workload).bytes_moved(result.size))


def _of_run(results: Sequence[Result], run: Run, whole: Knowledge) -> Iterator[Case]:
    """What one run measured, against what was known without it."""
    measured = [only for each in results if (only := _within(each, run))]
    touched = {each.key for each in measured}
    others, _ = select([left for each in results if each.key in touched and (left := _without(each, run))])
    for workload, size in sorted({(each.workload, each.size) for each in measured}):
        yield from _of_size(Knowledge(measured), Knowledge(others), whole, workload, size, RUN)


def _within(result: Result, run: Run) -> Result | None:
    """The result with the values of this run only."""
    timings = {
        metric: replace(timing, median=result.runs[metric][run])
        for metric, timing in result.timings.items()
        if run in result.runs.get(metric, {})
    }
    return replace(result, timings=timings) if timings and result.ok else None


def _without(result: Result, run: Run) -> Result | None:
    """The result as the runs before and after this one left it; None if there are none."""
    timings, runs = {}, {}
    for metric, timing in result.timings.items():
        values = result.runs.get(metric, {})
        left = {other: value for other, value in values.items() if other != run}
        if left or not values:  # results from before the runs were stored have none
            runs[metric] = left
            last = timing.median if run not in values or run != max(values) else left[max(left)]
            timings[metric] = replace(timing, median=last)
    gone = result.timings and not timings
    return None if gone else replace(result, timings=timings, runs=runs)


def _of_size(
    truth: Knowledge, known: Knowledge, whole: Knowledge, workload: str, size: int, hidden: str
) -> Iterator[Case]:
    """One case for each place of the data and each lane in which there is something to choose from. ``whole``: says
    how far runs are apart."""
    from_host = dict[str, Case]()
    for data in Data:
        question = Question(workload, size, data)
        there = {each.technique for each in known.estimates(question) if each.measured}
        measured = [each for each in truth.estimates(question) if each.measured and not each.result.mode]
        pinned = any(each.metric == Metric.PINNED for each in measured)
        if data == Data.DEVICE and not question.has_arrays or data == Data.PINNED and not pinned:
            continue  # it is the same question as for the host
        for lane in choosing.LANES:
            rivals = {
                each.technique: each
                for each in measured
                if each.result.lane == lane and (hidden != RUN or each.technique in there)
            }
            if len(rivals) > 1:
                options = [each for each in known.results if each.workload != workload or each.technique in rivals]
                case = _case(question, lane, hidden, rivals, Knowledge(options), whole)
                if data == Data.HOST:
                    from_host[lane] = case
                if data != Data.PINNED or not case.same_on_cpu(from_host.get(lane)):
                    yield case


def _case(
    question: Question, lane: str, hidden: str, rivals: dict[str, Estimate], known: Knowledge, whole: Knowledge
) -> Case:
    best = min(rivals.values(), key=lambda each: each.seconds)
    made = (best.result.stored.machine, question, lane, hidden, best.result)
    try:
        first = choosing.advise(question, known).picks[lane].first
    except (choosing.NoAdvice, KeyError):
        return Case(*made, pick=None, regret=math.inf, within=math.nan, error=math.nan)
    mine = rivals[first.technique]
    regret, error = mine.seconds / best.seconds, first.seconds / mine.seconds
    return Case(*made, mine.result, regret, whole.tolerance(best, mine), error)


# ---- As tables.


def tables(results: Sequence[Result]) -> list[Table]:
    """How often the pick was right and what the others cost; and the others, one by one."""
    every = list(cases(results))
    return [_summary(every), _missed(every)]


def _summary(every: Sequence[Case]) -> Table:
    rows, records = [], []
    for hidden, lane in ((hidden, lane) for hidden in TOGETHER for lane in choosing.LANES):
        asked = [each for each in every if each.hidden in TOGETHER[hidden] and each.lane == lane]
        mine = [each for each in asked if each.pick]
        if not mine:
            continue
        regrets = sorted(each.regret for each in mine)
        near, right = (sum(map(of, mine)) / len(mine) for of in (lambda each: each.close, lambda each: each.right))
        errors = sorted(max(each.error, 1 / each.error) for each in mine)
        record = {
            "hidden": hidden,
            "lane": lane,
            "cases": len(mine),
            "no_advice": len(asked) - len(mine),
            "within_5_percent": near,
            "right": right,
            "median_regret": statistics.median(regrets),
            "regret_95": at(0.95, regrets),
            "worst_regret": regrets[-1],
            "median_error": statistics.median(errors),
        }
        records.append(record)
        numbers = (str(len(mine)), str(len(asked) - len(mine)), f"{100 * near:.0f} %", f"{100 * right:.1f} %")
        factors = (f"{record[name]:.2f}" for name in ("median_regret", "regret_95", "worst_regret", "median_error"))
        marks = ("", "", "", "right" if right >= GOAL else "bad")
        cells = [*(Entry(*pair) for pair in zip(numbers, marks, strict=True)), *map(Entry, factors)]
        rows.append((Entry(hidden), Entry(lane), *cells))
    by_machine = [
        f"{machine}: {'; '.join(_counted([each for each in every if each.machine == machine]))}"
        for machine in sorted({each.machine for each in every if each.pick})
    ]
    return Table(
        "How good the advice is, when what is asked for was hidden",
        ("hidden", "lane", "cases", "no advice", "within 5 %", "right", "regret", "95 %", "worst", "time off by"),
        "ll" + "r" * 8,
        rows,
        [
            Entry(_explained(records), "note"),
            Entry(f"Right, of the cases of each machine. {'. '.join(by_machine)}.", "note"),
        ],
        records,
    )


def _counted(mine: Sequence[Case]) -> Iterator[str]:
    """In how many of these cases the pick was right, for each kind of case that the goal is about."""
    for what in (SIZE, RUN):
        for lane in choosing.LANES:
            asked = [each for each in mine if each.hidden in TOGETHER[what] and each.lane == lane and each.pick]
            if asked:
                yield f"{what}, {lane}, {sum(each.right for each in asked)} of {len(asked)}"


def at(share: float, ordered: Sequence[float]) -> float:
    """The value up to which at least this share of them lie."""
    return ordered[math.ceil(share * len(ordered)) - 1]


def _explained(records: Sequence[Mapping[str, Any]]) -> str:
    rights = {(each["lane"], each["hidden"]): each["right"] for each in records}
    whats = " ".join(f"{what[0].upper()}{what[1:]}: {why}." for what, why in HIDDEN.items())
    reached = list[str]()
    for what in (SIZE, RUN):
        lanes = [lane for lane in choosing.LANES if rights.get((lane, what), 0) >= GOAL]
        reached.append(f"for {what}, {' and '.join(lanes) or 'none'}")
    return (
        "Each case is a machine, a workload, a lane, a place of the data, and a size or a run, which is hidden and then"
        f" asked for. {whats} No advice: only one other size was left. Right: within 5 % of the best, or within what"
        " two runs of one recipe differ by in 95 % of the pairs, where that is more. Regret: the measured time of the"
        " pick, divided by that of the best; the median, the value up to which 95 % lie, and the worst. Time off by:"
        " the factor between the time that was said and the measured one, in the median."
        f" The goal is to be right in {100 * GOAL:.0f} % of the cases of one lane, for any size and for a run. Lanes"
        f" that reach it: {'; '.join(reached)}."
    )


def _missed(every: Sequence[Case]) -> Table:
    missed = sorted((each for each in every if each.pick and not each.right), key=lambda each: -each.regret)
    rows, records = [], []
    for case in missed:
        question = case.question
        assert case.pick
        rows.append(
            (
                Entry(case.hidden),
                Entry(case.machine),
                Entry(str(question)),
                Entry(case.pick.technique, recipe=(question.workload, case.pick.technique)),
                Entry(case.best.technique, recipe=(question.workload, case.best.technique)),
                Entry(f"{case.regret:.2f}"),
                Entry(f"{case.within:.2f}"),
            )
        )
        records.append(
            {
                "hidden": case.hidden,
                "machine": case.machine,
                "workload": question.workload,
                "size": question.size,
                "data": question.data,
                "lane": case.lane,
                "pick": case.pick.technique,
                "best": case.best.technique,
                "regret": case.regret,
                "within": case.within,
            }
        )
    head = ("hidden", "machine", "asked for", "pick", "best", "regret", "between runs")
    return Table("The picks that were not right, the worst first", head, "lllllrr", rows, [], records)


def main() -> None:
    """Print the tables, as Markdown if the output is not a terminal."""
    results, complaints = store.Store().load()
    found, out = tables(results), console()
    if out.is_terminal:
        out.print(text.terminal(found, out.width), crop=False)
    else:
        sys.stdout.write(text.as_markdown(found))
    complain(complaints)


if __name__ == "__main__":
    script.run(main)
