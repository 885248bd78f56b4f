"""What was measured again tells how far the next machine may be, and which technique is better."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from cloning import require_clone
from test_cli import cookbook, invoked
from test_store import recipe, result, stored

from gpu_cookbook import repeats
from gpu_cookbook.catalogue import find
from gpu_cookbook.render import beside, tables
from gpu_cookbook.results import Metric, Origin, Rank, Result, Run, Status, Timing, grouped, ranks, tied
from gpu_cookbook.store import asv_files as store
from gpu_cookbook.store.selecting import select
from gpu_cookbook.store.verifying import FAR, FAR_ON_HOST, MANY

RESIDENT = Metric.RESIDENT


def run(number, instance=None):
    return Run(f"2026-11-22T00:00:{number:02}Z", instance)


def measured_in(runs, technique="numpy", size=40_000, metric=RESIDENT, device="AMD EPYC, 2 cores", **changes):
    """A result with these values, {run: seconds}; the samples spread by a tenth."""
    blank = Result.of(find("multiply", technique), size, Status.OK)
    newest = list(runs.values())[-1]
    timing = Timing.of([newest * (1 + 0.01 * (i - 5)) for i in range(11)])
    return replace(blank, device=device, timings={metric: timing}, runs={metric: runs}, **changes)


@pytest.mark.parametrize("machines", [3, 5])
def test_most_values_of_the_next_machine_lie_inside(machines):
    """With 7 % between machines, common to all values, and 3 % of each value's own: over many next machines."""
    random = np.random.default_rng(16)
    shares = []
    for _ in range(200):
        shared = random.normal(0, 0.07, machines + 1)
        own = random.normal(0, 0.03, (40, machines + 1))
        values = np.exp(np.linspace(-12, -2, 40)[:, None] + shared + own)
        results = [
            measured_in({run(k, f"{k:012x}"): row[k] for k in range(machines)}, size=size)
            for size, row in zip(range(1, 41), values, strict=True)
        ]
        spreads = repeats.spreads(results)
        inside = [
            low <= row[-1] <= high
            for each, row in zip(results, values, strict=True)
            for low, high in [repeats.interval(each, RESIDENT, spreads)]
        ]
        shares.append(np.mean(inside))
    # 200 machines: the standard error of their mean share is about 0.01.
    assert 0.92 <= np.mean(shares) <= 0.99


def test_the_interval_is_that_of_students_distribution():
    values = [1.0e-5, 1.1e-5, 1.3e-5]
    each = measured_in({run(k): value for k, value in enumerate(values)})
    low, high = repeats.interval(each, RESIDENT, repeats.spreads([each]))
    logs = np.log(values)
    # The quantile of Student's distribution at 0.975, with two degrees of freedom.
    half = 4.3026527297 * logs.std(ddof=1) * math.sqrt(1 + 1 / 3)
    assert (low, high) == pytest.approx((math.exp(logs.mean() - half), math.exp(logs.mean() + half)))


def test_machines_count_as_soon_as_there_are_two_and_runs_until_then():
    one = {run(k, "a" * 12): value for k, value in enumerate((1e-5, 1.01e-5, 1.02e-5))}
    spread = repeats.spreads([measured_in(one)])[RESIDENT, False]
    assert (spread.units, spread.freedom, spread.machines) == (3, pytest.approx(2), False)
    two = one | {run(9, "b" * 12): 1.2e-5}
    wider = repeats.spreads([measured_in(two)])[RESIDENT, False]
    assert (wider.units, wider.freedom, wider.machines) == (2, pytest.approx(1), True)
    assert wider.factor(2) > spread.factor(3) and spread.tells and not wider.tells
    assert repeats.interval(measured_in(two), RESIDENT, {(RESIDENT, False): wider}) is None


def test_each_further_machine_is_held_to_the_intervals_before_it():
    a, b, c = (letter * 12 for letter in "abc")
    earlier = {run(0, b): 1.0e-5, run(1, b): 1.02e-5, run(2, b): 1.01e-5, run(3, a): 1.04e-5}
    near, far = (measured_in(earlier | {run(9, c): value}, size=size) for size, value in ((1, 0.99e-5), (2, 9e-5)))
    alone = measured_in(earlier, size=3)
    other = measured_in({run(20, "d" * 12): 1e-5}, "torch")  # of a machine that shares no result with the others
    apart = repeats.newcomers([far, near, alone, other])[RESIDENT, False]
    first = (1.0 * 1.02 * 1.01) ** (1 / 3)
    both = math.sqrt(1.04 * first)
    assert apart.factors == pytest.approx([1.04 / first] * 3 + [9 / both, both / 0.99])
    # Of two machines, nothing is known about the third.
    assert len(apart.widths) == 3 and not apart.outside
    assert repeats.newcomers([measured_in({run(0, a): 1e-5, run(1, a): 2e-5})]) == {}


def test_machines_are_held_to_the_intervals_of_their_environment():
    a, b = "a" * 12, "b" * 12
    one = measured_in({run(k, a): 1e-5 + k * 1e-7 for k in range(3)} | {run(3, b): 1.01e-5})
    # Here it was b that came first.
    other = measured_in({run(4 + k, b): 2e-5 + k * 2e-6 for k in range(3)} | {run(7, a): 2.2e-5})
    origin = Origin("m", "1" * 40, "main", "2026-11-22")
    alone = repeats.newcomers([one])[RESIDENT, False]
    both = [replace(one, origin=origin), replace(other, origin=replace(origin, environment="cutile"))]
    apart = repeats.newcomers(both)[RESIDENT, False]
    assert not apart.outside and apart.widths == [alone.widths[0], apart.widths[1]]
    assert apart.widths[0] < apart.widths[1]


def test_a_machine_counts_whatever_commit_it_measured():
    a, b = "a" * 12, "b" * 12
    origin = Origin("m", "1" * 40, "main", "2026-11-22")
    before = replace(measured_in({run(k, a): 1e-5 + k * 1e-7 for k in range(3)}), origin=origin)
    after = replace(measured_in({run(3, b): 1.01e-5}), origin=replace(origin, commit="2" * 40))
    assert repeats.newcomers([before]) == {}
    (apart,) = repeats.newcomers(repeats.together([after], [before, after])).values()
    assert len(apart.widths) == 1 and not apart.outside


def of_commit(day, seconds, doubts=None, **origin):
    """A result of another commit for each day, measured on that day."""
    origin = Origin("m", str(day) * 40, "main", f"2026-11-2{day}", order=(day, day), **origin)
    return replace(measured_in({run(day): seconds}), origin=origin, doubts=doubts or {})


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ([of_commit(1, 1.0), of_commit(2, 1.4)], 1.4),  # two: the newest
        ([of_commit(1, 1.0), of_commit(2, 1.1), of_commit(3, 1.5)], 1.1),
        ([of_commit(1, 1.5), of_commit(2, 1.0), of_commit(3, 1.1)], 1.1),
        ([of_commit(1, 1.2), of_commit(2, 9.0), of_commit(3, 1.0), of_commit(4, 1.2)], 1.2),
        ([of_commit(1, 1.0, stale=True), of_commit(2, 1.1), of_commit(3, 1.5)], 1.5),
        ([of_commit(1, 1.0), of_commit(2, 1.1), of_commit(3, 1.5, stale=True)], 1.5),
        ([of_commit(1, 1.0), of_commit(2, 1.1, doubts={RESIDENT: "disturbed"}), of_commit(3, 1.5)], 1.0),
        ([of_commit(1, 1.0), of_commit(2, 1.1), of_commit(3, 9.0, doubts={RESIDENT: "disturbed"})], 1.1),
    ],
    ids=["two", "newest slow", "oldest slow", "of equals the newest", "stale", "newest stale", "doubtful", "all count"],
)
def test_from_three_runs_on_the_one_in_the_middle_is_shown(stored, shown):
    (found,) = repeats.together([stored[-1]], stored)
    assert found.value(RESIDENT) == shown
    assert found.stored.order == max(each.stored.order for each in stored if each.value(RESIDENT) == shown)
    assert len(found.runs[RESIDENT]) == len([each for each in stored if each.stale == stored[-1].stale])


def test_a_newest_result_that_is_not_ok_is_shown_whatever_was_before():
    before = [of_commit(day, 1.0) for day in (1, 2, 3)]
    wrong = replace(of_commit(4, 1.0), status=Status.REFUSED, timings={}, runs={})
    (found,) = repeats.together([wrong], [*before, wrong])
    assert found.status == Status.REFUSED and not found.values


def test_no_metric_may_be_far_from_the_median():
    def both(day, resident, transfer):
        each = of_commit(day, resident)
        timings, runs = each.timings | {Metric.TRANSFER: Timing(transfer)}, {Metric.TRANSFER: {run(day): transfer}}
        return replace(each, timings=timings, runs=each.runs | runs)

    stored = [both(1, 1.0, 9.0), both(2, 1.1, 3.0), both(3, 0.9, 2.0), both(4, 0.8, 3.1), both(5, 2.0, 3.0)]
    (found,) = repeats.together([stored[-1]], stored)
    assert (found.value(RESIDENT), found.value(Metric.TRANSFER)) == (1.1, 3.0)


def test_a_run_that_lacks_a_metric_does_not_stand_for_the_others():
    lacks, newest, slow = of_commit(1, 1.1), of_commit(3, 1.2), of_commit(2, 1.0)
    both = [replace(each, timings=each.timings | {Metric.DEVICE: each.timings[RESIDENT]}) for each in (slow, newest)]
    (found,) = repeats.together([both[1]], [lacks, *both])
    assert found.value(RESIDENT) == 1.2 and len(found.runs[RESIDENT]) == 3


ODD = ("multiply", "jax", 40_000)


def without_device(each):
    return {metric: values for metric, values in each.runs.items() if metric != Metric.DEVICE}


def test_stored_machines_of_one_kind_are_nearer_than_what_verify_calls_far():
    require_clone()
    found, _ = store.Store().load()
    several = 0
    for results in grouped(found, lambda each: each.stored.machine):
        newest, _ = select(results)
        # JAX's device times are the host's (CudaOfJax): this one was 2.6 times another machine's. All others are held.
        shown = [replace(each, runs=without_device(each)) if each.work == ODD else each for each in newest]
        for (metric, gpu), apart in repeats.newcomers(shown).items():
            several += 1
            far = [factor for factor in apart.factors if factor >= (FAR[metric] if gpu else FAR_ON_HOST)]
            few = len(apart.factors) * MANY / 2 if gpu and metric == RESIDENT else 0
            assert len(far) <= few, (results[0].stored.machine, metric, far)
    assert several > 1


def test_a_result_that_was_measured_more_often_lends_the_others_little():
    often = measured_in({run(k): 1e-5 * (1 + k / 100) for k in range(12)})
    twice = [measured_in({run(0): 1e-5, run(1): 1.1e-5}, size=size) for size in range(2, 42)]
    assert repeats.spreads(twice)[RESIDENT, False].freedom == pytest.approx(1)
    assert 1 < repeats.spreads([often, *twice])[RESIDENT, False].freedom < 2


@pytest.mark.parametrize(
    ("groups", "freedom"),
    [
        (["abc"] * 40, 2),  # all machines measured all results
        ([one + other for one, other in itertools.combinations("abcdef", 2)], 5),
        (["ab", "cd", "ef"], 3),  # the machines of different results share none
        (["ab"] * 40 + ["cd"], 1.05),
    ],
)
def test_so_many_degrees_of_freedom_do_machines_have(groups, freedom):
    results = [
        measured_in({run(k, letter * 12): 1e-5 * (1 + k / 10) for k, letter in enumerate(group)}, size=size)
        for size, group in enumerate(groups, 1)
    ]
    spread = repeats.spreads(results)[RESIDENT, False]
    assert spread.freedom == pytest.approx(freedom, rel=1e-3)
    assert spread.units == len(set("".join(groups)))


def test_what_lies_outside_of_the_interval_is_listed():
    a, b = "a" * 12, "b" * 12
    origin = Origin("box", "1" * 40, "main", "2026-11-22")
    earlier = {run(k, a): 1e-5 + k * 1e-7 for k in range(3)}
    results = [measured_in(earlier | {run(3, b): value}, size=size) for size, value in ((1, 1e-5), (2, 5e-5))]
    table, outside = beside.of_one_kind([[replace(each, origin=origin) for each in results], []])
    assert [entry.text for entry in table.rows[0]][:3] == ["box", "resident, CPU", "2"]
    assert table.rows[0][-1].text == "1 of 2" and "Of 2 values, 1 lie within it: 50 %." in table.notes[0].text
    (row,) = outside.rows
    assert [entry.text for entry in row][:5] == ["box", "resident, CPU", "multiply", "numpy, 2", "×4.95"]
    assert beside.of_one_kind([[measured_in(earlier)]]) == []


def test_the_better_over_the_runs_is_the_best_even_if_it_lost_the_last():
    one = measured_in({run(k): 1e-5 for k in range(10)})
    other = measured_in({run(k): 0.95e-5 if k < 9 else 1.005e-5 for k in range(10)}, "torch")
    assert one.value(RESIDENT) < other.value(RESIDENT)
    assert ranks([one, other], RESIDENT) == {"torch": Rank.BEST}


def test_kinds_are_apart_and_what_was_measured_once_says_nothing():
    gpu = measured_in({run(0): 1e-6, run(1): 1.1e-6}, "cupy", device="NVIDIA H200", driver="580")
    cpu = measured_in({run(0): 1e-6, run(1): 1.5e-6})
    once = measured_in({run(0): 1e-6}, size=2)
    spreads = repeats.spreads([gpu, cpu, once])
    assert spreads[RESIDENT, True].deviation < spreads[RESIDENT, False].deviation
    assert Metric.DEVICE not in {metric for metric, _ in spreads}
    assert repeats.spreads([once]) == {} and repeats.interval(once, RESIDENT, {}) is None


def test_what_a_run_does_to_both_does_not_make_a_tie():
    slow_and_fast = {run(0): 1.0e-5, run(1): 1.2e-5, run(2): 1.5e-5, run(3): 0.9e-5}
    one = measured_in(slow_and_fast)
    other = measured_in(
        {key: value * (1.03 + 0.002 * k) for k, (key, value) in enumerate(slow_and_fast.items())}, "torch"
    )
    assert not tied(one, other, RESIDENT)
    assert tied(replace(one, runs={}), replace(other, runs={}), RESIDENT), "their samples overlap"
    assert ranks([one, other], RESIDENT) == {"numpy": Rank.BEST}
    same = measured_in(
        {key: value * (1.03 if k % 2 else 0.97) for k, (key, value) in enumerate(slow_and_fast.items())}, "torch"
    )
    assert tied(one, same, RESIDENT)


@pytest.mark.slow
def test_each_run_is_stored_and_shown(clone):
    writer = store.Writer(store.Store(), "m")
    for number, median in enumerate((1e-5, 1.1e-5, 1.2e-5)):
        each = result("numpy", 40_000, median=median, doubts={Metric.TRANSFER: "busy"} if number == 0 else {})
        writer.add(recipe("numpy"), each, run(number, "a" * 12))
    found = stored()["multiply", "numpy", 40_000]
    assert list(found.runs[RESIDENT].values()) == pytest.approx([1e-5, 1.1e-5, 1.2e-5])
    assert len(found.runs[Metric.TRANSFER]) == 2, "a doubtful value counts"
    assert found.value(RESIDENT) == pytest.approx(1.2e-5)
    out, _ = cookbook("tables", "multiply", "--machine", "m")
    assert "Another run on this machine: 95 % of the CPU's values within resident ×1.74" in " ".join(out.split())
    out, _ = cookbook("tables", "multiply", "--machine", "m", "--format", "csv")
    assert "next_low" in out.splitlines()[0]


def test_the_interval_of_one_lane_is_that_of_all_results():
    times = {"numpy": (1e-5, 1.1e-5, 1e-5), "torch_cpu": (1e-5, 2e-5, 1e-5), "numba_tuned": (1e-5,)}
    every = [
        measured_in({run(k): seconds for k, seconds in enumerate(mine)}, technique) for technique, mine in times.items()
    ]

    def said(found):
        return [note.text for table in found for note in table.notes if note.text.startswith("Another run")]

    everything = said(tables.measured(every))
    assert len(everything) == 1
    for shown in (tables.measured, tables.in_brief):
        for lane in ("idiomatic", "tuned"):
            assert said(shown(every, lane)) == everything


def test_an_upgrade_is_no_repetition(clone):
    writer = store.Writer(store.Store(), "m")
    for number, version in enumerate(("1.0", "2.0", "2.0")):
        each = result("numpy", 40_000, median=1e-5 * (number + 1), versions=f"numpy {version}")
        writer.add(recipe("numpy"), each, run(number))
    assert [*stored()["multiply", "numpy", 40_000].runs[RESIDENT].values()] == pytest.approx([2e-5, 3e-5])


def test_a_run_is_completed_or_repeated_not_both(clone):
    _, err = invoked("compare", "multiply", "-t", "numpy", "--save", "--resume", "--repeat", "3", code=2)
    assert "repeat the others afterwards" in err


@pytest.mark.slow
def test_compare_measures_again_and_again(clone):
    cookbook("compare", "increment", "-t", "numpy", "--save", "--machine", "m", "--repeat", "3")
    found = stored()["increment", "numpy", 40_000]
    assert sum(map(len, found.runs.values())) >= 3 and len({r for v in found.runs.values() for r in v}) <= 3
    lines = (clone / "benchmarks/results/m/runs.jsonl").read_text().splitlines()
    assert len(lines) == 6
