"""`gpu-cookbook choose`: what it advises, from results that are made up, and what it prints."""

import importlib
import math
import re
from dataclasses import replace
from pathlib import Path

import making
import pytest
from cloning import require_clone
from conftest import git, invoked
from drawing import LARGE, SMALL, result
from rich.console import Console
from scaling import keep, row

from benchmarks import choosing as evaluation
from gpu_cookbook import catalogue, choosing, cli, machine, repeats
from gpu_cookbook.choosing import Data, Knowledge, NoAdvice, Question
from gpu_cookbook.machine import Gpu
from gpu_cookbook.render import advice as shown
from gpu_cookbook.render import tables
from gpu_cookbook.results import Metric, Origin, Run, Status, Timing
from gpu_cookbook.run import compare
from gpu_cookbook.store.asv_files import Store, Writer

MIDDLE = 1_000_000
ON_GPU = {"driver": "580.1", "cuda": "13.0"}
DOUBTFUL = {"doubts": {Metric.RESIDENT: "other programs kept 3.0 of 16 cores busy"}}


def on_cpu(technique, size=LARGE, seconds=1.0, name="Xeon, 16 cores", **changes):
    return replace(result(technique, size, seconds, **changes), device=name)


def on_gpu(technique, size=LARGE, seconds=1.0, transfer=10.0, name="NVIDIA H200", **changes):
    """``device`` is a time, as in drawing.result."""
    return replace(result(technique, size, seconds, transfer=transfer, **ON_GPU | changes), device=name)


def asked(size=LARGE, data=Data.DEVICE, workload="multiply"):
    return Question(workload, size, data)


def advised(*results, size=LARGE, data=Data.DEVICE, useless=(), workload="multiply"):
    return choosing.advise(asked(size, data, workload), Knowledge(results), useless)


def names(pick):
    return [pick.first.technique, *(each.technique for each in pick.ties)]


def printed(found, *results, here=False, width=80, room=None):
    out = Console(width=width, color_system=None)
    with out.capture() as captured:
        out.print(shown.advice(found, Knowledge(results, room), here, width))
    text = captured.get()
    assert max(map(len, text.splitlines())) <= width
    return " ".join(text.split())


# ---- Where the data are.


def test_the_data_decide_which_time_counts():
    results = [on_gpu("cupy", seconds=1e-3, transfer=0.6), on_cpu("torch_cpu", seconds=0.04, transfer=0.06)]
    device, host = advised(*results), advised(*results, data=Data.HOST)
    assert (device.plain.first.technique, device.plain.first.seconds) == ("cupy", 1e-3)
    assert not device.plain.runner_up  # what runs on the CPU does not find its data on the device
    assert (host.plain.first.technique, host.plain.first.seconds) == ("torch_cpu", 0.04)
    assert host.plain.runner_up.seconds == 0.6 and host.elsewhere["idiomatic"].technique == "cupy"


def test_page_locked_arrays_are_for_recipes_that_make_them_and_like_any_others_to_a_cpu():
    results = [
        on_gpu("cupy", seconds=1e-3, transfer=0.6, pinned=0.03),
        on_gpu("triton", seconds=1e-3, transfer=0.02),
        on_cpu("torch_cpu", seconds=0.04, transfer=0.06),
        on_cpu("dask", seconds=0.05, transfer=0.7, framework="Dask"),
    ]
    found = Knowledge(results).estimates(asked(data=Data.PINNED))
    assert [(each.technique, each.seconds) for each in found] == [("cupy", 0.03), ("torch_cpu", 0.04), ("dask", 0.7)]
    doubtful = replace(results[0], doubts={Metric.PINNED: "other programs kept 3.0 of 16 cores busy"})
    assert names(advised(doubtful, *results[1:], data=Data.PINNED).plain) == ["torch_cpu"]
    assert advised(*results, data=Data.HOST).plain.first.technique == "triton"


def test_page_locked_arrays_are_no_reason_to_stay_on_the_cpu():
    table = [replace(on_cpu("polars"), workload="group_mean"), replace(on_gpu("cudf"), workload="group_mean")]
    with pytest.raises(NoAdvice, match="No recipe of group_mean makes page-locked arrays"):
        choosing.advise(asked((1_000_000, 1_000), Data.PINNED, "group_mean"), Knowledge(table))


def test_arrays_have_to_be_handed_to_an_engine_and_to_opencl():
    engine = on_cpu("dask", seconds=0.05, transfer=0.7, framework="Dask")
    opencl = on_cpu("pyopencl", seconds=0.05, transfer=0.5, name="pthread-Xeon")
    found = advised(engine, opencl, on_cpu("numpy", seconds=0.3, transfer=0.4), data=Data.HOST)
    times = [found.plain.first, found.plain.runner_up]
    assert [(each.technique, each.seconds) for each in times] == [("numpy", 0.3), ("pyopencl", 0.5)]


def test_numpy_alone_is_no_advice_for_another_machine():
    known = Knowledge([on_cpu("numpy", seconds=0.3, transfer=0.4)])
    question = asked(LARGE, Data.HOST)
    with pytest.raises(NoAdvice, match=r"no time but NumPy's is known\. To measure it, on that machine: .*--measure"):
        choosing.advise(question, known, here=False)
    assert choosing.advise(question, known).plain.first.technique == "numpy"
    with pytest.raises(NoAdvice, match="no time of it is known|an estimate takes two sizes") as raised:
        choosing.advise(question, Knowledge([on_cpu("dask", seconds=0.3, transfer=0.4)]), useless=["dask"])
    assert "NumPy's" not in str(raised.value)


def test_doubtful_times_are_known_as_such():
    doubts = {Metric.RESIDENT: "other programs kept 3.0 of 16 cores busy"}
    disturbed = [on_gpu("cupy", size, doubts=doubts) for size in (SMALL, LARGE)]
    for size in (SMALL, MIDDLE, LARGE):
        with pytest.raises(NoAdvice, match=r": every stored time of it is doubtful\. To measure it here"):
            advised(*disturbed, size=size)
    with pytest.raises(NoAdvice, match=": no time of it is known"):
        advised(replace(on_gpu("cupy"), workload="increment", doubts=doubts))
    results = [on_cpu("numpy"), replace(on_cpu("torch_cpu"), doubts=doubts)]
    with pytest.raises(NoAdvice, match=r": every stored time but NumPy's is doubtful\. To measure it, on that machine"):
        choosing.advise(asked(LARGE, Data.HOST), Knowledge(results), here=False)


def test_without_arrays_it_does_not_matter_where_they_are():
    results = [
        replace(each, workload="random_subset_mean", size=20_000)
        for each in (on_gpu("cupy", seconds=2.0), on_cpu("numba_cpu", seconds=1.0))
    ]
    for data in Data:
        question = asked(20_000, data, "random_subset_mean")
        found = choosing.advise(question, Knowledge(results))
        assert found.plain.first.technique == "numba_cpu"
        assert str(question) == "random_subset_mean, 20,000², which makes its own data"


def test_of_a_file_in_memory_all_start_from_there():
    results = [
        replace(each, workload="read_parquet", size=10**6)
        for each in (on_gpu("cudf", seconds=1.0), on_cpu("polars", seconds=2.0))
    ]
    for data in Data:
        question = asked(10**6, data, "read_parquet")
        assert choosing.advise(question, Knowledge(results)).plain.first.technique == "cudf"
        assert str(question) == "read_parquet, 1,000,000 rows, with the file in the host's memory"


# ---- The time at any size.


def test_a_time_in_between_is_a_fixed_cost_and_a_part_in_proportion():
    points = [(100, 11.0), (1_100, 21.0)]
    assert choosing.proportional(points, 600) == pytest.approx(16)
    assert choosing.proportional(points, 0) == pytest.approx(10)
    assert choosing.proportional(points, 2_100) == pytest.approx(31)


def test_less_work_takes_no_time_that_is_negative_and_more_work_no_less():
    growing, falling = [(100, 1.0), (200, 4.0)], [(100, 4.0), (200, 1.0)]
    assert choosing.proportional(growing, 150) == pytest.approx(1.5**2)
    assert choosing.proportional(growing, 50) == pytest.approx(0.5)
    assert choosing.proportional(falling, 50) == 4.0
    assert choosing.proportional(falling, 10_000) == 1.0


def test_the_two_sizes_around_the_question_count():
    results = [on_gpu("cupy", size, seconds) for size, seconds in ((SMALL, 1e-3), (MIDDLE, 2e-3), (LARGE, 1.0))]
    (estimate,) = Knowledge(results).estimates(asked(500_000))
    assert [each.size for each in estimate.basis] == [SMALL, MIDDLE] and not estimate.measured
    assert estimate.seconds == pytest.approx(1e-3 + 1e-3 * (500_000 - SMALL) / (MIDDLE - SMALL))
    (estimate,) = Knowledge(results).estimates(asked(2 * LARGE))
    assert [each.size for each in estimate.basis] == [MIDDLE, LARGE]
    (measured,) = Knowledge(results).estimates(asked(MIDDLE))
    assert measured.measured and measured.seconds == 2e-3


def test_what_fits_into_the_cache_does_not_tell_how_fast_the_memory_is():
    """Copies run at 4,000 GB/s; in the cache, the work seems to be faster."""
    results = [on_gpu("cupy", size, seconds, cache_bytes=10**8) for size, seconds in ((SMALL, 1e-5), (MIDDLE, 1.1e-5))]
    (estimate,) = Knowledge(results).estimates(asked(LARGE))
    assert estimate.seconds == pytest.approx(1e-5 + 12 * LARGE / 4e12)


def test_a_product_is_no_faster_than_the_arithmetic_of_its_device():
    points = ((200, 1e-5), (1_000, 2e-5))
    results = [on_gpu("cupy", size, seconds, workload="matmul", arithmetic=50_000.0) for size, seconds in points]
    (estimate,) = Knowledge(results).estimates(asked(10_000, workload="matmul"))
    assert estimate.seconds == pytest.approx(1e-5 + 2e12 / 50e12)
    rounding = [replace(each, math="TF32 on tensor cores") for each in results]
    (faster,) = Knowledge(rounding).estimates(asked(10_000, workload="matmul"))
    assert faster.seconds < estimate.seconds


def test_the_fixed_cost_says_nothing_of_larger_sizes():
    overhead = [on_gpu("dask_cuda", size, seconds) for size, seconds in ((MIDDLE, 1e-2), (LARGE, 1.01e-2))]
    cupy = [on_gpu("cupy", size, seconds) for size, seconds in ((MIDDLE, 1e-4), (LARGE, 1e-2))]
    assert [each.technique for each in Knowledge(overhead + cupy).estimates(asked(4 * LARGE))] == ["cupy"]
    slower = [on_gpu("cupy", size, seconds) for size, seconds in ((MIDDLE, 1e-2), (LARGE, 1e-1))]
    first, second = Knowledge(overhead + slower).estimates(asked(4 * LARGE))
    assert (first.technique, second.technique) == ("dask_cuda", "cupy")
    assert first.seconds == pytest.approx(4 * 1.01e-2)  # as if none of it were fixed
    assert (first.at_most, second.at_most) == (True, False)
    inside = Knowledge(overhead + cupy).estimates(asked(LARGE // 2))
    assert {each.technique for each in inside} == {"cupy", "dask_cuda"}


def test_beyond_the_largest_size_the_gpu_s_own_time_grows():
    results = [
        on_gpu("cupy", size, device + overhead, device=device)
        for size, device, overhead in ((MIDDLE, 1e-3, 5e-4), (LARGE, 2e-3, 3e-4))
    ]
    (estimate,) = Knowledge(results).estimates(asked(2 * LARGE - MIDDLE))
    assert estimate.seconds == pytest.approx(3e-3 + 3e-4)


def test_beyond_the_largest_size_the_way_of_a_product_grows_with_its_bytes():
    """Twice the side: 8 times the operations, 4 times the bytes."""

    def product(technique, work, way):
        return [
            replace(
                on_gpu(technique, size, work * times**3, transfer=work * times**3 + way * times**2), workload="matmul"
            )
            for size, times in ((1_000, 1), (2_000, 2))
        ]

    every = [*product("cupy", 1e-3, 9e-3), *product("warp", 3e-3, 4e-3)]
    found = Knowledge(every).estimates(asked(8_000, Data.HOST, "matmul"))
    assert [each.technique for each in found] == ["cupy", "warp"]  # and at 2,000, the other way round
    assert [each.seconds for each in found] == pytest.approx([0.512 + 0.576, 1.536 + 0.256])
    near = Knowledge(every).estimates(asked(2_000, Data.HOST, "matmul"))
    assert [each.technique for each in near] == ["warp", "cupy"]
    resident = Knowledge(every).estimates(asked(8_000, Data.DEVICE, "matmul"))
    assert [each.seconds for each in resident] == pytest.approx([0.512, 1.536])


def test_beyond_the_largest_size_the_way_is_that_of_another_workload_with_as_many_bytes():
    """Large arrays take longer, byte by byte, than small ones."""
    small = [on_gpu("cupy", size, 1e-5, transfer=1e-5 + size * 1e-9) for size in (SMALL, MIDDLE)]
    large = [(2 * MIDDLE, 2e-5, 0.01), (30 * MIDDLE, 1e-4, 0.5)]
    increment = [replace(on_gpu("cupy", n, work, transfer=work + way), workload="increment") for n, work, way in large]
    (estimate,) = Knowledge([*small, *increment]).estimates(asked(20 * MIDDLE, Data.HOST))  # 12 bytes each, not 8
    least = 12 * 20 * MIDDLE / 4e12  # of the work, whose fixed cost hides what it takes
    assert estimate.seconds == pytest.approx(1e-5 + least + 0.5)
    text = printed(advised(*small, *increment, size=20 * MIDDLE, data=Data.HOST), *small)
    assert "On the GPU, the way there and back is estimated apart, from what the technique" in text
    reduction = [replace(each, workload="norm") for each in increment]  # from which nothing but a number comes back
    assert all(each.at_most for each in Knowledge([*small, *reduction]).told(asked(20 * MIDDLE, Data.DEVICE))[1])
    (estimate,) = Knowledge([*small, *reduction]).estimates(asked(20 * MIDDLE, Data.HOST))
    assert estimate.seconds == pytest.approx(20 * MIDDLE * 1e-9, rel=0.01)
    (beyond,) = Knowledge([*small, *increment]).estimates(asked(200 * MIDDLE, Data.HOST))
    assert beyond.seconds == pytest.approx(1e-5 + 10 * least + 10 * 0.5)  # at the rate of the last
    unknown = [on_gpu("cupy", size, 1e-5, transfer=1e-5) for size in (SMALL, MIDDLE)]  # it takes no time of its own
    falling = [replace(increment[0], timings=increment[1].timings), increment[1]]
    for known in (increment, falling):  # asked for fewer bytes than any that are known
        (fewer,) = Knowledge([*unknown, *known]).estimates(asked(MIDDLE + 1, Data.HOST))
        assert 1e-5 < fewer.seconds < 0.51
    (inside,) = Knowledge([*small, *increment]).estimates(asked(MIDDLE // 2, Data.HOST))
    assert inside.seconds == pytest.approx(1e-5 + MIDDLE // 2 * 1e-9)
    assert "apart" not in printed(advised(*small, *increment, size=MIDDLE // 2, data=Data.HOST), *small)


def test_where_a_fixed_cost_hides_the_operations_of_a_product_its_way_does_not_tell():
    def product(sizes):
        return [replace(on_gpu("cupy", n, 1e-5, transfer=1e-5 + 1e-9 * n**2), workload="matmul") for n in sizes]

    (estimate,) = Knowledge(product((200, 1_000))).estimates(asked(40_000, Data.HOST, "matmul"))
    assert not estimate.apart and estimate.seconds > 1e-9 * 40_000**2


def test_results_of_a_workload_that_cannot_be_used_do_not_count(monkeypatch):
    usable = {name: each for name, each in catalogue.workloads().items() if name != "increment"}
    monkeypatch.setattr(catalogue, "workloads", lambda: usable)
    results = [on_gpu("cupy", size, 1e-5, transfer=1e-5 + size * 1e-9) for size in (SMALL, MIDDLE)]
    broken = [replace(each, workload="increment") for each in results]
    assert not Knowledge(broken).estimates(asked(SMALL, Data.HOST, "increment"))
    assert len(Knowledge([*results, *broken]).estimates(asked(LARGE, Data.HOST))) == 1


def test_below_the_smallest_size_a_call_takes_what_any_takes():
    own = [on_cpu("numpy", size, seconds) for size, seconds in ((MIDDLE, 1e-3), (LARGE, 1.0))]
    other = replace(on_cpu("numpy", SMALL, 5e-6), workload="increment")
    (known,) = Knowledge([*own, other]).estimates(asked(10, Data.HOST))
    assert known.seconds == 5e-6
    slow = replace(other, timings=on_cpu("numpy", SMALL, 2.0).timings)  # whatever it was that took so long
    (known,) = Knowledge([*own, slow]).estimates(asked(10, Data.HOST))
    assert known.seconds == 1e-3


def test_far_below_the_smallest_size_a_fixed_cost_may_be_all_that_is_left():
    """Of 100 ns and of 1 ms for 10 elements, these times say the same."""
    hidden = [on_cpu("numba_cpu", size, seconds) for size, seconds in ((MIDDLE, 1e-3), (LARGE, 1.0))]
    (near,) = Knowledge(hidden).estimates(asked(MIDDLE // 10, Data.HOST))
    assert near.seconds == pytest.approx(1e-4)
    with pytest.raises(
        NoAdvice, match=r"only 1,000,000 and 268,435,456 are known, and the fixed cost of a call does not .*--measure"
    ):
        advised(*hidden, size=10, data=Data.HOST)
    shows = [on_cpu("numpy", size, seconds) for size, seconds in ((MIDDLE, 6e-4), (LARGE, 0.1))]
    found = advised(*hidden, *shows, size=10, data=Data.HOST)
    assert names(found.plain) == ["numpy"] and not found.plain.runner_up
    slower = [on_cpu("numpy", size, seconds) for size, seconds in ((MIDDLE, 6e-3), (LARGE, 0.1))]
    found = advised(*hidden, *slower, size=10, data=Data.HOST)
    assert (found.plain.first.technique, found.plain.first.seconds) == ("numba_cpu", 1e-3)
    said = printed(found, *hidden, *slower)
    assert "numba_cpu is the most that it takes: as if all of what 1,000,000 take were a fixed cost." in said


def test_small_products_run_at_a_lower_rate_and_not_all_of_that_is_a_fixed_cost():
    """8 times the work takes 4 times as long: a line has 4/7 ms of fixed cost, and the power of the work is 2/3."""
    own = [
        replace(on_cpu("numpy", size, seconds), workload="matmul") for size, seconds in ((1_000, 1e-3), (2_000, 4e-3))
    ]
    (known,) = Knowledge(own).estimates(asked(125, Data.HOST, "matmul"))
    line, power = (4 + 3 / 512) / 7 * 1e-3, 1e-3 / 64
    assert known.seconds == pytest.approx((line * power) ** 0.5)
    other = replace(on_cpu("numpy", SMALL, 1e-4), workload="increment")
    (known,) = Knowledge([*own, other]).estimates(asked(125, Data.HOST, "matmul"))
    assert known.seconds == pytest.approx((line * 1e-4) ** 0.5)
    (same,) = Knowledge(own).estimates(asked(999, Data.HOST, "matmul"))
    assert 0.99e-3 < same.seconds < 1e-3


def test_a_smaller_product_takes_no_longer():
    """Of fewer than 6×6×6, there are more bytes than operations."""
    own = [replace(on_cpu("numpy", size, seconds), workload="matmul") for size, seconds in ((200, 5e-5), (1_000, 3e-3))]
    times = [Knowledge(own).estimates(asked(size, Data.HOST, "matmul"))[0].seconds for size in (1, 5, 6, 7, 16, 199)]
    assert times == sorted(times)


def test_where_the_work_begins_with_a_file_no_other_workload_says_what_a_call_takes():
    own = [on_cpu("numpy", size, seconds) for size, seconds in ((MIDDLE, 1e-3), (10 * MIDDLE, 2e-3))]
    other = [replace(on_cpu("numpy", SMALL, 1e-2), workload="increment")]
    read = [replace(each, workload="read_parquet") for each in own]
    (known,) = Knowledge([*read, *other]).estimates(asked(10, Data.HOST, "read_parquet"))
    assert known.seconds == pytest.approx(8 / 9 * 1e-3, rel=1e-3)


def test_below_the_smallest_size_page_locked_arrays_take_what_they_take_elsewhere():
    own = [on_gpu("cupy", size, 1e-3, pinned=seconds) for size, seconds in ((MIDDLE, 1e-3), (LARGE, 1.0))]
    other = replace(on_gpu("cupy", SMALL, 1e-6, pinned=5e-6), workload="increment")
    (known,) = Knowledge([*own, other]).estimates(asked(10, Data.PINNED))
    assert known.seconds == 5e-6


def test_one_size_is_no_estimate():
    with pytest.raises(NoAdvice, match=r"only 268,435,456 is known, and an estimate takes two sizes.*--measure"):
        advised(on_gpu("cupy"), size=2 * LARGE)
    with pytest.raises(NoAdvice, match=r"no time of it is known.*--measure"):
        advised(replace(on_gpu("cupy"), workload="increment"))
    with pytest.raises(
        NoAdvice, match=r"no time of it is known\. No result of that machine is from a GPU: .*--data host"
    ):
        advised(on_cpu("numpy"))
    for data in Data:
        with pytest.raises(NoAdvice) as raised:
            choosing.advise(asked(7, data), Knowledge([]), here=False)
        command = f"gpu-cookbook choose multiply -s 7 --data {data} --measure"
        assert str(raised.value).startswith(f"{asked(7, data)}: no time of it is known.")
        assert str(raised.value).endswith(f"To measure it, on that machine: {command}")


@pytest.mark.parametrize("status", [Status.FAILED, Status.REFUSED, Status.SKIPPED])
def test_what_went_wrong_at_a_size_is_not_advised_beyond_it(status):
    wrong = making.without("cupy", LARGE, status, "needs more memory", **ON_GPU)
    results = [on_gpu("cupy", SMALL, 1e-5), on_gpu("cupy", MIDDLE, 1e-4), wrong]
    results += [on_gpu("numba", size, 10 * size * 1e-9) for size in (SMALL, MIDDLE, LARGE)]
    for size in (LARGE, LARGE + 1):
        assert [each.technique for each in Knowledge(results).estimates(asked(size))] == ["numba"]
    assert Knowledge(results).estimates(asked(MIDDLE // 2))[0].technique == "cupy"


def test_a_fixed_cost_within_the_noise_of_the_smallest_size_is_none():
    """NumPy's line begins at 4 ms, which is 1 % of what 4,000² took: less than two runs differ by."""
    own = [
        replace(on_cpu("numpy", size, seconds), workload="random_subset_mean")
        for size, seconds in ((4_000, 0.4), (20_000, 9.904))
    ]
    other = replace(on_cpu("numpy", SMALL, 5e-6), workload="multiply")
    (known,) = Knowledge([*own, other]).estimates(asked(1, Data.HOST, "random_subset_mean"))
    assert known.seconds == 5e-6
    with pytest.raises(NoAdvice, match="the fixed cost of a call does not show"):
        choosing.advise(asked(1, Data.HOST, "random_subset_mean"), Knowledge(own))


def test_a_technique_of_one_workload_takes_at_least_what_its_framework_does_elsewhere():
    own = [
        replace(on_gpu("cutile_tuned", size, seconds), workload="random_subset_mean", framework="cuTile")
        for size, seconds in ((4_000, 1e-4), (20_000, 1e-3))
    ]
    others = [
        replace(on_gpu("cutile", SMALL, 2e-5), workload="multiply", framework="cuTile"),
        replace(on_cpu("cutile", SMALL, 1e-6), workload="multiply", framework="cuTile"),
        replace(on_gpu("cupy", SMALL, 1e-5), workload="multiply"),
    ]
    (known,) = Knowledge([*own, *others]).estimates(asked(1, Data.HOST, "random_subset_mean"))
    assert 2e-5 < known.seconds < 1e-4


def test_what_may_be_faster_is_named_where_its_other_sizes_do_not_tell():
    """Of 10 rows, NumPy takes between nothing and what a million take."""
    read = [
        replace(on_cpu(technique, size, seconds), workload="read_parquet")
        for technique, size, seconds in (
            *(("numpy", MIDDLE, 8e-3), ("numpy", 10 * MIDDLE, 8e-2), ("pandas", MIDDLE, 8e-3)),
            *(("pandas", 10 * MIDDLE, 5e-2), ("polars", MIDDLE, 9e-3), ("polars", 10 * MIDDLE, 9e-3)),
        )
    ]
    found = choosing.advise(asked(10, Data.HOST, "read_parquet"), Knowledge(read))
    assert found.plain.first.technique == "pandas"
    assert "do not tell what they take at this one: numpy." in printed(found, *read)
    found = choosing.advise(asked(100 * MIDDLE, Data.HOST, "read_parquet"), Knowledge(read))
    assert found.plain.first.technique == "polars" and not found.hidden
    beyond = [each for each in read if each.technique != "polars"]
    slow = [replace(on_cpu("polars", each.size, 0.6), workload="read_parquet") for each in beyond[:2]]
    for size, hidden in ((10 * MIDDLE + 1, []), (200 * MIDDLE, ["polars"])):
        found = choosing.advise(asked(size, Data.HOST, "read_parquet"), Knowledge([*beyond, *slow]))
        assert [each.technique for each in found.hidden] == hidden


@pytest.mark.parametrize(
    ("workload", "technique", "most"),
    [
        ("increment", "warp", 2**31 - 1),
        ("multiply", "warp_tuned", 2**31 - 1),
        ("random_subset_mean", "warp", 2**16),  # a side
        ("read_parquet", "polars", 2**32 - 1),
        ("read_parquet", "cudf", 2**31 - 1),
    ],
)
def test_what_a_recipe_refuses_is_not_advised(workload, technique, most, here):
    known = Knowledge([replace(on_gpu(technique, size, size / 1e9), workload=workload) for size in (10_000, 60_000)])
    assert [known.estimates(asked(size, workload=workload)) != [] for size in (most, most + 1)] == [True, False]
    recipe = catalogue.find(workload, technique)
    assert re.search(r" are too many: it takes (fewer than|at most) 2\*\*3\d", recipe.refuses(most + 1))
    here("NVIDIA H200")
    assert [asked(size, workload=workload).is_for(recipe) for size in (most, most + 1)] == [True, False]


def test_what_a_recipe_takes_of_a_table_is_counted_in_rows():
    polars, dask = (catalogue.find("group_mean", technique) for technique in ("polars", "dask_cuda"))
    assert polars.refuses((2**32, 1)) and not polars.refuses((2**32 - 1, 2**31))
    assert not dask.refuses((2**32, 1))  # its limit is one of each GPU
    assert not any(recipe.refuses(2**40) for recipe in catalogue.of_workload("matmul"))


def test_a_size_of_two_numbers_is_not_estimated():
    """The time by key is in proportion to neither the rows nor the keys."""
    sizes = (10**6, 10**3), (10**8, 10**7)
    there = [replace(on_cpu("pandas"), workload="group_mean", size=size) for size in sizes]
    found = choosing.advise(Question("group_mean", sizes[0], Data.HOST), Knowledge(there))
    assert found.plain.first.technique == "pandas" and found.plain.first.measured
    with pytest.raises(NoAdvice, match=r"of 10,000,000 keys are known, and others are not estimated\..* -s 1000000x9 "):
        choosing.advise(Question("group_mean", (10**6, 9), Data.HOST), Knowledge(there), here=False)


def test_one_recipe_that_was_measured_hides_no_others():
    results = [
        on_gpu("numba", 5_000_000, 38e-6),
        *(on_gpu("cupy", size, 10e-6 + 3.6e-12 * size, device=1e-6 + 3.6e-12 * size) for size in (MIDDLE, LARGE)),
        *(on_gpu("triton", size, 1e-3 + 1e-9 * size) for size in (SMALL, LARGE)),
    ]
    found = advised(*results, size=5_000_000)
    pick = found.plain
    assert (pick.first.technique, pick.first.measured) == ("cupy", False)
    assert (pick.runner_up.technique, pick.runner_up.measured) == ("numba", True)
    text = printed(found, *results)
    assert "Take cupy, CuPy on the GPU: ≈28 µs." in text and "≈ is estimated from 1,000,000 and 268,435,456:" in text


def test_the_sign_of_an_estimate_is_explained_wherever_it_stands():
    results = [on_gpu("numba", MIDDLE, 2e-3), *(on_gpu("cupy", size, 2e-8 * size) for size in (SMALL, LARGE))]
    text = printed(advised(*results, size=MIDDLE), *results)
    assert "Take numba, Numba on the GPU: 2.00 ms." in text and "The runner-up, cupy, takes 10 times as long" in text
    assert "≈ is estimated from 40,000 and 268,435,456:" in text


def test_estimates_from_different_sizes_are_not_said_to_be_from_the_same():
    results = [on_gpu("cupy", size, 1e-9 * size) for size in (SMALL, LARGE)]
    results += [on_gpu("numba", size, 3e-9 * size) for size in (MIDDLE, LARGE)]
    text = printed(advised(*results, size=500_000), *results)
    assert "≈ is estimated from each recipe's own two nearest sizes: a fixed cost" in text
    assert "Some of that is an extrapolation" in text


def test_what_was_measured_ties_with_an_estimate_that_is_as_short():
    estimated = [on_gpu("cupy", size, 1e-9 * size) for size in (SMALL, LARGE)]
    for factor, tied in ((1.04, ["cupy", "numba"]), (0.97, ["numba", "cupy"]), (1.1, ["cupy"])):
        found = advised(*estimated, on_gpu("numba", MIDDLE, factor * 1e-9 * MIDDLE), size=MIDDLE)
        assert names(found.plain) == tied


# ---- Lanes, ties, doubts.


def test_lanes_are_not_ranked_together():
    found = advised(on_gpu("cupy", seconds=2.0), on_gpu("cupy_tuned", seconds=1.0))
    assert (names(found.plain), names(found.tuned)) == (["cupy"], ["cupy_tuned"])
    text = printed(found, on_gpu("cupy"))
    assert "Take cupy, CuPy on the GPU: 2.00 s." in text
    assert "Tuned for speed, cupy_tuned takes 1.00 s: it is 2.00 times as fast." in text
    assert "gpu-cookbook show multiply cupy_tuned" in text


def test_a_tuned_recipe_that_is_no_faster_is_not_shown():
    results = [on_gpu("cupy", seconds=1.0), on_gpu("cupy_tuned", seconds=2.0)]
    found = advised(*results)
    assert found.tuned is None
    text = printed(found, *results)
    assert "No recipe that is tuned for speed takes less." in text and "cupy_tuned" not in text


@pytest.mark.parametrize("seconds", [0.998, 0.97])
def test_a_tuned_recipe_that_is_hardly_faster_is_not_said_to_take_no_less(seconds):
    both = on_gpu("torch"), on_gpu("cupy_tuned", seconds=seconds)
    found = advised(*both)
    end = "about as long" if seconds > 0.99 else "it is 1.03 times as fast"
    assert f"Tuned for speed, cupy_tuned takes {1_000 * seconds:.0f} ms: {end}." in printed(found, *both)
    assert "No recipe that is tuned" not in printed(found, *both)


def test_of_what_ties_that_is_named_which_costs_nothing_to_take():
    def told(first, second, **facts):
        both = [
            making.result(name, LARGE, seconds, 0.01, origin=making.BOX, **facts)
            for name, seconds in ((first, 1.0), (second, 1.005))
        ]
        return printed(advised(*both), *both)

    words = "numpy ties with it: another run may have another order. With NumPy, there is nothing to change."
    assert words in told("joblib", "numpy")
    assert "cutile belongs to the environment cutile, and cupy to this one." in told("cutile", "cupy", **ON_GPU)


def test_what_the_samples_do_not_tell_apart_ties():
    origin = {"origin": making.BOX}
    results = [
        making.result("cupy", LARGE, 1.000, 0.01, **ON_GPU | origin),
        making.result("triton", LARGE, 1.005, 0.01, **ON_GPU | origin),
        making.result("numba", LARGE, 1.500, 0.01, **ON_GPU | origin),
    ]
    found = advised(*results)
    assert names(found.plain) == ["cupy", "triton"] and found.plain.runner_up.technique == "numba"
    text = printed(found, *results)
    assert "triton ties with it" in text and "The next, numba, takes 1.50 times as long" in text
    assert "=1.00 s" in text


def test_ties_of_two_metrics_are_decided_by_their_own_samples():
    cpu = making.result("torch_cpu", LARGE, 1.0, 0.1, device="Xeon, 16 cores", driver=None, origin=making.BOX)
    timings = {Metric.TRANSFER: making.timing(1.05, 0.1)}
    gpu = making.result("cupy", LARGE, 0.01, 0.001, timings=timings, origin=making.BOX)
    assert names(advised(cpu, gpu, data=Data.HOST).plain) == ["torch_cpu", "cupy"]


def runs(*values):
    return {Metric.RESIDENT: {Run(f"2026-11-2{day}T00:00:00Z"): value for day, value in enumerate(values)}}


def test_estimates_tie_if_another_run_may_turn_them_round():
    def known(spread):
        first = [
            on_gpu("cupy", size, size * 1.0e-9, runs=runs(size * 1e-9, size * 1e-9 * spread)) for size in (SMALL, LARGE)
        ]
        return [*first, *(on_gpu("numba", size, size * 1.2e-9) for size in (SMALL, LARGE))]

    assert names(advised(*known(1.0), size=MIDDLE).plain) == ["cupy"]
    assert names(advised(*known(1.5), size=MIDDLE).plain) == ["cupy", "numba"]


def test_a_pair_of_runs_is_further_apart_than_a_run_is_from_the_mean():
    spread = repeats.Spread(0.1, 2, 3, machines=False)
    assert spread.pair == pytest.approx(2.71828 ** (1.96 * 0.1 * 2**0.5), rel=1e-4)


def test_doubtful_times_never_decide():
    doubtful = on_gpu("cupy", seconds=0.1, **DOUBTFUL)
    found = advised(doubtful, on_gpu("numba", seconds=1.0), on_gpu("triton", seconds=2.0))
    assert names(found.plain) == ["numba"]
    assert "Not counted, as their times are doubtful: cupy." in printed(found, doubtful, on_gpu("numba"))
    slow = on_gpu("cupy", seconds=9.0, **DOUBTFUL)
    assert advised(slow, on_gpu("numba", seconds=1.0)).doubtful == []  # it would not be taken anyway
    sizes = [on_gpu("cupy", size, 1e-9 * size, **DOUBTFUL) for size in (SMALL, LARGE)]
    with pytest.raises(NoAdvice):
        advised(*sizes, size=MIDDLE)


def test_stale_times_count_and_are_marked():
    old = replace(making.BOX, stale=True)
    results = [on_gpu("cupy", seconds=1.0, origin=old), on_gpu("numba", seconds=2.0)]
    found = advised(*results)
    assert names(found.plain) == ["cupy"] and found.plain.first.stale
    text = printed(found, *results)
    assert "Take cupy, CuPy on the GPU: †1.00 s." in text and "† is stale: the code of the recipe" in text
    assert "†" not in printed(advised(on_gpu("cupy")), on_gpu("cupy"))


def test_recipes_that_round_their_factors_are_left_out():
    def product(technique, seconds, **changes):
        return replace(on_gpu(technique, seconds=seconds, **changes), workload="matmul", size=4_096)

    plain, rounding = product("triton", 2.0), product("triton_tf32", 1.0, math="TF32 on tensor cores")
    found = choosing.advise(asked(4_096, workload="matmul"), Knowledge([plain, rounding]))
    assert names(found.plain) == ["triton"]
    assert "round the factors to fewer digits: triton_tf32 (TF32, 1.00 s)" in printed(found, plain)
    slow = product("triton_tf32", 3.0, math="TF32 on tensor cores")
    assert not choosing.advise(asked(4_096, workload="matmul"), Knowledge([plain, slow])).rounding


def test_what_was_removed_is_not_advised():
    gone = on_gpu("gone", seconds=0.1)
    assert names(advised(gone, on_gpu("cupy")).plain) == ["cupy"]


# ---- What is said.


def test_a_tuned_recipe_on_the_other_device_is_named_if_it_takes_less_than_the_idiomatic_one():
    cpu, slow = on_cpu("numpy", seconds=0.3), on_gpu("cupy", seconds=0.1, transfer=0.9)
    for seconds, said in ((0.6, True), (1.2, False)):
        results = [cpu, slow, on_gpu("cupy_transfer_tuned", seconds=0.1, transfer=seconds)]
        text = printed(advised(*results, data=Data.HOST), *results)
        assert "cupy, takes 3.00 times as long" in text
        assert ("cupy_transfer_tuned, which is tuned for the GPU, 2.00 times." in text) == said


@pytest.mark.parametrize(
    ("recipes", "named"),
    [
        (("numba",), ""),
        (("numba", "torch_tuned"), "torch_tuned"),
        (("numba", "numba_cpu_tuned"), "numba_cpu_tuned"),  # on the other kind of device
        (("numba", "numba_cpu_tuned", "torch_tuned"), "torch_tuned, numba_cpu_tuned"),
    ],
)
def test_recipes_that_make_fewer_samples_than_others_are_named(recipes, named):
    about = {"workload": "random_subset_mean", "size": 20_000}
    made = {
        "numba": on_gpu("numba", seconds=1, **about),
        "numba_cpu_tuned": on_cpu("numba_cpu_tuned", seconds=2, **about),
        "torch_tuned": on_gpu("torch_tuned", seconds=0.5, **about),
    }
    results = [made[name] for name in recipes]
    text = printed(choosing.advise(asked(20_000, workload="random_subset_mean"), Knowledge(results)), *results)
    said = re.findall(r"Of random_subset_mean's samples, these make only the quarter that is averaged: (.*?)\. ", text)
    assert said == [named] * bool(named)


def test_the_first_page_names_them_too(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "docs"))
    choices, shown = importlib.import_module("choices"), []
    origin = Origin("box", "c0ffee", "env", "2026-11-23")
    about = {"workload": "random_subset_mean", "origin": origin, "size": 20_000}
    results = [on_gpu("numba", seconds=1, **about), on_gpu("torch_tuned", seconds=0.5, **about)]
    choices.choices([results], lambda table: shown.append(table) or "")
    notes = [[note.text for note in table.notes[1:]] for table in shown]  # small, medium and large, twice
    assert notes == 2 * [[], tables.fewer_samples([("random_subset_mean", "torch_tuned")]), []]


def test_the_first_page_compares_with_the_main_environments_numpy(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "docs"))
    choices, shown = importlib.import_module("choices"), []
    about = {"origin": Origin("box", "c0ffee", "env", "2026-11-23"), "size": 1_000_000}
    apart = replace(on_cpu("numpy", seconds=9, **about), environment="cutile")
    results = [apart, on_cpu("numpy", seconds=2, **about), on_gpu("cupy", seconds=0.1, **about)]
    choices.choices([results], lambda table: shown.append(table) or "")
    (row,) = [row for table in shown for row in table.rows if row[0].text == "multiply" and row[1].text == "cupy"]
    assert row[4].text == "20.0"


def test_the_reason_is_in_numbers():
    results = [
        on_cpu("torch_cpu", seconds=0.04),
        on_cpu("numpy", seconds=0.3),
        on_gpu("cupy", seconds=0.1, transfer=0.4),
    ]
    text = printed(advised(*results, data=Data.HOST), *results)
    assert "Take torch_cpu, PyTorch on the CPU: 40.0 ms." in text
    assert "The runner-up, numpy, takes 7.50 times as long; the first on the GPU, cupy, 10.0 times." in text
    assert "Of cupy's time, 75 % is the way to the GPU and back." in text
    assert "gpu-cookbook show multiply torch_cpu pip install torch numpy" in text
    assert "Stored results of box, 2026-11-21: NVIDIA H200, Xeon, 16 cores." in text


def test_where_no_cpu_was_measured_it_does_not_say_that_a_gpu_pays():
    gpu, cpu = on_gpu("cupy", seconds=0.1, transfer=0.4), on_cpu("numpy", seconds=0.9)
    words = "this does not tell whether a GPU pays"
    assert words in printed(advised(gpu, data=Data.HOST), gpu)
    assert words not in printed(advised(gpu, cpu, data=Data.HOST), gpu, cpu)
    assert words not in printed(advised(gpu), gpu), "the data are on the GPU"


def test_the_way_is_said_of_recipes_on_the_gpu_only():
    for data, seconds, told in (
        (Data.PINNED, 0.2, "Of cupy's time, 50 % is the way to the GPU and back."),
        (Data.HOST, 100.0, "Of cupy's time, more than 99 % is the way to the GPU and back."),
        (Data.HOST, 0.1001, "Of cupy's time, less than 1 % is the way to the GPU and back."),
    ):
        gpu = on_gpu("cupy", seconds=0.1, transfer=seconds, pinned=seconds)
        assert told in printed(advised(gpu, data=data), gpu)
    engine = on_cpu("dask", seconds=0.05, transfer=0.7, framework="Dask")
    assert "the way" not in printed(advised(engine, data=Data.HOST), engine)


def test_where_page_locked_arrays_come_from():
    gpu, cpu = on_gpu("cupy", seconds=0.1, pinned=0.2), on_cpu("torch_cpu", seconds=0.1)
    text = printed(advised(gpu, data=Data.PINNED), gpu)
    assert "multiply, 268,435,456, with the data in page-locked host arrays" in text
    assert "Its pinned(shape) makes page-locked arrays: one for each input, and one for out." in text
    norm = [replace(gpu, workload="norm")]
    found = choosing.advise(asked(data=Data.PINNED, workload="norm"), Knowledge(norm))
    assert "page-locked arrays: one for each input." in printed(found, *norm)
    text = printed(advised(gpu, cpu, data=Data.PINNED), gpu, cpu)
    like = "To torch_cpu, on the CPU, page-locked arrays are like any others; "
    assert f"{like}cupy makes them by its pinned(shape)." in text
    assert f"{like}no time on a GPU is known." in printed(advised(cpu, data=Data.PINNED), cpu)
    assert "page-locked" not in printed(advised(gpu, cpu, data=Data.HOST), gpu, cpu)


def test_the_only_one_that_was_measured_is_no_choice():
    alone, other = on_gpu("cupy", seconds=0.5), on_gpu("numba", seconds=0.7)
    text = printed(advised(alone), alone)
    of = "Of what keeps its data on the device, "
    said = f"{of}only cupy, CuPy on the GPU, was measured on box at this size, so that nothing is known of others."
    assert f"{said} It takes 500 ms." in text and "Take" not in text and "*" not in text
    assert said in printed(advised(alone, on_cpu("numpy")), alone, on_cpu("numpy"))
    assert "Only cupy, CuPy on the GPU, was measured on box" in printed(advised(alone, data=Data.HOST), alone)
    now = replace(alone, origin=None)
    assert "was measured here at this size" in printed(advised(now), now, here=True)
    doubtful = replace(other, **DOUBTFUL)
    said = f"{of}no time but that of cupy, CuPy on the GPU, is known on box. It takes 500 ms."
    assert said in printed(advised(alone, doubtful), alone, doubtful)
    for useless in ((), ("numba",)):
        assert "Take cupy, CuPy on the GPU: 500 ms." in printed(advised(alone, other, useless=useless), alone, other)


def test_without_reasons_there_is_one_blank_line():
    results = [on_gpu("cupy", size, size * 1e-9) for size in (SMALL, LARGE)]
    out = Console(width=200, color_system=None)
    with out.capture() as captured:
        out.print(shown.advice(advised(*results, size=MIDDLE), Knowledge(results), False, 200))
    assert re.search(r"It takes [^\n]*\n\nTo copy cupy", captured.get())


def test_how_to_measure_it_is_said_once_and_last(here):
    here("NVIDIA H200")
    results = [on_cpu("numpy", size, size * 1e-9, name="EPYC, 2 cores") for size in (SMALL, MIDDLE)]
    text = printed(advised(*results, size=100_000, data=Data.HOST), *results, here=True)
    told = "The processor of this machine is another one: Xeon, 16 cores. To measure it here: --measure."
    assert text.endswith(told) and text.count("--measure") == 1 and "≈ is estimated from" in text


def test_what_only_another_environment_can_measure_is_measured_there(here, monkeypatch):
    here("NVIDIA H200")
    sizes = [(1_000_000, 1_000), (10_000_000, 1_000)]
    results = [replace(on_gpu("cudf"), size=size, workload="group_mean") for size in sizes]
    numpy = replace(on_cpu("numpy"), size=sizes[0], workload="group_mean")
    question = Question("group_mean", (1_000_000, 9), Data.HOST)
    command = "gpu-cookbook choose group_mean -s 1000000x9 --data host --measure"
    for known in (results, [*results, numpy]):
        with pytest.raises(NoAdvice, match=f"To measure it here: {machine.VARIABLE}=rapids {command}$"):
            choosing.advise(question, Knowledge(known))
    found = advised(*results, size=sizes[0], data=Data.HOST, workload="group_mean")
    said = f"is another one: Xeon, 16 cores. To measure it here: {machine.VARIABLE}=rapids gpu-cookbook choose group"
    assert said in printed(found, *results, here=True)
    polars = replace(on_cpu("polars"), size=sizes[0], workload="group_mean")
    with pytest.raises(NoAdvice, match="To measure it here: --measure"):
        choosing.advise(question, Knowledge([*results, polars]))
    monkeypatch.setenv(machine.VARIABLE, "rapids")
    with pytest.raises(NoAdvice, match="To measure it here: --measure"):
        choosing.advise(question, Knowledge(results))


def test_the_signs_of_ranks_are_explained():
    best, tie = "* is the best in its lane.", "= is tied with the best of its lane."
    equal = [on_gpu("cupy"), on_gpu("numba")]
    for results, signs in (
        (equal[:1], []),
        (equal, [tie]),
        ([equal[0], on_gpu("numba", seconds=2.0)], [best]),
        ([*equal, on_gpu("cupy_tuned", seconds=0.5)], [best, tie]),
    ):
        text = printed(advised(*results), *results)
        assert [each for each in (best, tie) if each in text] == signs


def test_how_near_a_copy_it_comes():
    result = on_gpu("cupy", seconds=12 * LARGE / 4e12 * 2)
    told = "cupy moves 50 % of the bytes that a copy on the same device moves in that time."
    assert told in printed(advised(result), result)


@pytest.mark.parametrize(("value", "text"), [(1_234_567, "1,200,000"), (129, "130"), (5.55, "5.5"), (0.0561, "0.056")])
def test_two_digits_of_any_number(value, text):
    assert shown._rough(value) == text


def test_an_estimate_has_two_digits_and_says_what_it_is():
    results = [on_gpu("cupy", size, size * 1.2345e-9) for size in (SMALL, MIDDLE, LARGE)]
    between = printed(advised(*results, size=10_000_000), *results, here=True)
    assert "no time but that of cupy, CuPy on the GPU, is known on box. It takes ≈12 ms." in between
    assert "≈ is estimated from 1,000,000 and 268,435,456" in between and "extrapolation" not in between
    assert "To measure it here: --measure." in between
    beyond = printed(advised(*results, size=2 * LARGE), *results)
    assert "That is an extrapolation" in beyond and "--measure" not in beyond


def test_what_a_stored_machine_cannot_hold_is_no_advice():
    results = [on_gpu("cupy", size, size * 1e-9, transfer=size * 1e-8) for size in (SMALL, LARGE)]
    question = asked(2**40)
    caution = "This takes 13.2 TB. Whether that fits into the memory of that machine's GPU is not known."
    for room in (None, choosing.Room("box", 2**40, None)):
        for size, here, told in ((2**40, False, True), (2**40, True, False), (LARGE, False, False)):
            text = printed(advised(*results, size=size), *results, here=here, room=room)
            assert (caution in text) == ("Whether that fits" in text) == told
    on_host = advised(*results, size=2**40, data=Data.HOST)
    for room, unknown in ((None, "machine and of the machine's GPU"), (choosing.Room("box", None, 2**50), "machine")):
        text = printed(on_host, *results, room=room)
        assert f"Whether that fits into the memory of that {unknown} is not known." in text
    assert "not known" not in printed(advised(*results, size=2**40), *results, room=choosing.Room("box", 1, 2**50))
    with pytest.raises(NoAdvice, match=r"take 13\.2 TB, and the GPU of box has 1\.1 TB. Choose a smaller size"):
        choosing.useless_for_lack_of_memory(question, choosing.Room("box", None, 2**40))
    assert not choosing.useless_for_lack_of_memory(question, choosing.Room("box", 2**40, None))
    with pytest.raises(NoAdvice, match=r"take 13\.2 TB, and box has 1\.1 TB"):
        choosing.useless_for_lack_of_memory(asked(2**40, Data.HOST), choosing.Room("box", 2**40, 2**50))
    useless = choosing.useless_for_lack_of_memory(asked(2**40, Data.HOST), choosing.Room("box", 2**50, 2**40))
    assert "cupy" in useless and "numpy" not in useless


@pytest.mark.parametrize("width", [60, 80, 160])
def test_nothing_is_wider_than_the_terminal(width):
    long = ("dask_cuda_chunks_tuned", "joblib_threads_cuda_tuned", "dask_cuda_random_state")
    results = [
        replace(on_gpu(name, seconds=1.0 + i), workload="random_subset_mean", size=20_000)
        for i, name in enumerate(long)
    ]
    found = choosing.advise(asked(20_000, workload="random_subset_mean"), Knowledge(results))
    printed(found, *results, width=width)


# ---- This machine.


@pytest.fixture
def here(monkeypatch):
    """A machine with these GPUs, on which everything is installed that can run on it."""

    def of(*gpus, memory=80e9):
        found = tuple(Gpu(i, name, int(memory), (9, 0)) for i, name in enumerate(gpus))
        monkeypatch.setattr(machine, "gpus", lambda: found)
        monkeypatch.setattr(machine, "processor", lambda: "Xeon, 16 cores")
        monkeypatch.setattr(machine, "missing", lambda recipe: None)

    return of


def at(name, *results):
    return [replace(each, origin=Origin(name, "0123456789abcdef0123", "existing", "2026-11-21")) for each in results]


STORED = [
    *at("h200", on_gpu("cupy"), on_gpu("numba"), on_cpu("numpy")),
    *at("h100", on_gpu("cupy", name="NVIDIA H100"), on_cpu("numpy")),
    *at("laptop", on_cpu("numpy", name="Core, 8 cores"), on_cpu("dask", name="Core, 8 cores")),
    *at("server", on_cpu("numpy")),
]


@pytest.mark.parametrize(("gpus", "name"), [(["NVIDIA H200"], "h200"), (["NVIDIA H100"], "h100"), ([], "server")])
def test_the_machine_that_is_most_like_this_one(here, gpus, name):
    here(*gpus)
    assert choosing.alike(STORED, "multiply") == name


def test_a_machine_on_which_the_workload_was_measured_goes_first(here):
    here("NVIDIA H200")
    norm = [replace(each, workload="norm") for each in at("small", on_gpu("cupy"))]
    assert choosing.alike([*STORED, *norm], "norm") == "small"
    assert choosing.alike([*STORED, *norm], "multiply") == "h200"


def test_where_a_workload_was_not_measured_on_a_machine_like_this_one_others_are_named(here):
    here()
    stored = [*STORED, *(replace(each, workload="norm") for each in at("h100", on_gpu("cupy", name="NVIDIA H100")))]
    with pytest.raises(NoAdvice, match=r"Nothing of norm is stored of a machine without a GPU.*with one of h100\.$"):
        choosing.alike(stored, "norm")


def test_a_name_that_contains_that_of_another_gpu_is_another_gpu(here):
    here("NVIDIA L4")
    assert machine.is_gpu("NVIDIA L4") and machine.is_gpu("4 × NVIDIA L4")
    assert not machine.is_gpu("NVIDIA L40S") and not machine.is_gpu("2 × NVIDIA L40S") and not machine.is_gpu(None)
    with pytest.raises(NoAdvice, match=r"with this GPU \(NVIDIA L4\)"):
        choosing.alike(at("l40s", on_gpu("cupy", name="NVIDIA L40S")), "multiply")


def test_without_a_machine_like_this_one_there_is_still_a_way(here):
    here("NVIDIA RTX 4090")
    with pytest.raises(
        NoAdvice,
        match=r"a machine with this GPU \(NVIDIA RTX 4090\).*--measure.*one of h100, h200, laptop, server",
    ):
        choosing.alike(STORED, "multiply")
    here()
    with pytest.raises(NoAdvice, match=r"a machine without a GPU.*--measure\.$"):
        choosing.alike([], "multiply")


def test_a_machine_without_a_gpu_gets_no_recipe_that_needs_one(here, monkeypatch):
    here()
    monkeypatch.setattr(machine, "lacks_opencl", lambda: machine.POCL_IS_OLDER)
    assert "pyopencl" in choosing.useless_here(asked(data=Data.HOST))
    monkeypatch.setattr(machine, "lacks_opencl", lambda: "no OpenCL driver found: pip install it")
    useless = choosing.useless_here(asked(data=Data.HOST))
    assert "cupy" in useless and not {"numpy", "torch", "torch_cpu", "pyopencl"} & useless
    results = [on_gpu("cupy", transfer=1e-3), on_cpu("numpy", seconds=1.0)]
    assert names(advised(*results, data=Data.HOST, useless=useless).plain) == ["numpy"]
    with pytest.raises(NoAdvice, match="has no GPU on which the data could be: ask with --data host"):
        choosing.useless_here(asked(data=Data.DEVICE))


def test_what_only_has_to_be_installed_is_advised(here, monkeypatch):
    here("NVIDIA H200")
    monkeypatch.setattr(machine, "missing", lambda recipe: "cupy not installed: pip install …")
    assert "cupy" not in choosing.useless_here(asked())
    text = printed(advised(on_gpu("cupy")), on_gpu("cupy"), here=True)
    assert 'pip install "cupy-cuda13x[ctk]" It is not installed here yet.' in text
    monkeypatch.setattr(machine, "install_command", lambda recipe: "")
    assert "cupy" in choosing.useless_here(asked())


def test_a_recipe_of_another_environment_says_which(here):
    here("NVIDIA H200")
    result = on_gpu("cutile")
    text = printed(advised(result), result, here=True)
    assert "It does not run here yet: belongs to the environment cutile: make compare ENVIRONMENT=cutile." in text
    assert "here" not in printed(advised(result), result)


def test_another_processor_is_named(here):
    here()
    other = on_cpu("numpy", name="Core, 8 cores")
    found = advised(other, data=Data.HOST)
    assert "The processor of this machine is another one: Xeon, 16 cores." in printed(found, other, here=True)
    same = on_cpu("numpy")
    assert "another one" not in printed(advised(same, data=Data.HOST), same, here=True)


def test_data_that_do_not_fit_are_refused_with_both_numbers(here, monkeypatch):
    monkeypatch.setattr(choosing.machine, "host_memory", lambda: int(100e9))
    here("NVIDIA H200", memory=2e9)
    with pytest.raises(NoAdvice, match=r"take 3\.22 GB, and the GPU of this machine has 2 GB"):
        choosing.useless_here(asked(data=Data.DEVICE))
    useless = choosing.useless_here(asked(data=Data.HOST))  # they fit into the host's memory
    assert {"cupy", "torch"} <= useless and "torch_cpu" not in useless
    with pytest.raises(NoAdvice, match=r"take 120 GB, and this machine has 100 GB"):
        choosing.useless_here(asked(10**10, Data.HOST))


# ---- What is measured.


def test_the_most_promising_are_measured(here):
    here()
    stored = Knowledge(
        [on_cpu("numpy", seconds=1.0), on_cpu("torch_cpu", seconds=0.1), on_cpu("dask", seconds=2.0, transfer=2.0)]
    )
    found = choosing.candidates(asked(data=Data.HOST), [stored], choosing.useless_here(asked(data=Data.HOST)))
    order = [
        each.technique
        for each in found
        if each.lane == "idiomatic" and each.technique in ("numpy", "torch_cpu", "dask")
    ]
    assert order == ["torch_cpu", "numpy", "dask"]
    (torch_cpu,) = catalogue.choose(["multiply"], ["torch_cpu"])
    assert found[torch_cpu] == 0.1
    assert all(not machine.lacks_gpu(each) for each in found)
    assert {each.lane for each in [*found][:3]} == {"idiomatic", "tuned"}


def test_only_recipes_on_the_gpu_are_measured_where_the_data_are_there(here):
    here("NVIDIA RTX 4090")
    found = choosing.candidates(asked(), [Knowledge([on_gpu("cupy", seconds=2.0), on_gpu("numba", seconds=1.0)])], ())
    order = [each.technique for each in found]
    assert order.index("numba") < order.index("cupy") and "numpy" not in order
    assert not any(each.math.startswith(("TF32", "bfloat16")) for each in found)


def test_of_recipes_on_the_gpu_those_that_make_page_locked_arrays_are_measured(here):
    every = {each.technique for each in catalogue.of_workload("multiply")}
    here("NVIDIA RTX 4090")
    found = {each.technique for each in choosing.candidates(asked(data=Data.PINNED), [], ())}
    assert {"cupy", "torch_transfer_tuned", "torch_cpu", "numpy", "dask"} <= found
    assert not {"cupy_raw", "triton", "jax", "dask_cuda"} & found and {"cupy_raw", "triton", "jax"} <= every
    here()
    alike = [choosing.candidates(asked(data=data), [], ()) for data in (Data.HOST, Data.PINNED)]
    assert alike[0] == alike[1]  # what can run on the CPU does so here


def test_what_is_measured_ends_in_a_minute(here):
    here()
    recipes = [each for each in catalogue.of_workload("multiply") if each.runs_on == "CPU"]
    quick = compare.within_a_minute(dict.fromkeys(recipes, 0.0), MIDDLE)
    assert quick == recipes[: len(quick)] and len(quick) > 1
    choice = compare.Choice(quick, {"multiply": [MIDDLE]})
    assert choice.seconds() <= 60 < replace(choice, recipes=recipes[: len(quick) + 1]).seconds()
    slow = dict.fromkeys(recipes, 100.0) | {recipes[-1]: 0.1}
    assert compare.within_a_minute(slow, MIDDLE) == [recipes[-1]]


# ---- How good the advice is.

CURVES = {"cupy": 1e-9, "numba": 2e-9, "triton": 1.1e-9}  # seconds of each element
CALL = 5e-5  # of each call: of less, the times of a million elements would not tell
SIZES = (SMALL, MIDDLE, LARGE)


def straight(origin=making.BOX, **changes):
    """Results that lie on what the estimate assumes."""
    return [
        on_gpu(name, size, CALL + work, transfer=1e-4 + work, pinned=5e-5 + work, origin=origin, **changes)
        for name, slope in CURVES.items()
        for size in SIZES
        for work in (slope * size,)
    ]


def test_where_times_are_as_assumed_every_hidden_size_is_found():
    found = list(evaluation.cases(straight()))
    assert {(each.hidden, each.question.size, each.question.data) for each in found} == {
        (hidden, size, data)
        for hidden, size in (
            *zip((evaluation.BELOW, evaluation.BETWEEN, evaluation.BEYOND), SIZES, strict=True),
            (evaluation.ALL, LARGE),
        )
        for data in Data
    }
    assert all(each.pick.technique == each.best.technique == "cupy" and each.regret == 1 for each in found)
    assert [each.error for each in found] == pytest.approx([1] * len(found), rel=1e-3)


def test_without_times_from_page_locked_arrays_only_the_others_are_asked_for():
    every = [replace(each, timings={Metric.TRANSFER: each.timings[Metric.TRANSFER]}) for each in straight()]
    assert {each.question.data for each in evaluation.cases(every)} == {Data.HOST}


def test_the_same_answer_on_the_cpu_counts_once():
    on_cpu = [
        replace(
            each,
            technique=name,
            framework="NumPy",
            device="AMD EPYC, 2 cores",
            driver=None,
            timings={Metric.RESIDENT: Timing(less * each.timings[Metric.RESIDENT].median)},
        )
        for each in straight()
        if each.technique == "cupy"
        for name, less in (("numpy", 0.01), ("numba_cpu", 0.005))
    ]
    found = list(evaluation.cases([*straight(), *on_cpu]))
    assert {each.pick.technique for each in found if each.question.data != Data.DEVICE} == {"numba_cpu"}
    assert {each.question.data for each in found} == {Data.HOST, Data.DEVICE}
    on_gpu_from_pinned = [
        replace(each, timings=each.timings | {Metric.PINNED: Timing(each.timings[Metric.RESIDENT].median / 1000)})
        for each in straight()
    ]
    answered = list(evaluation.cases([*on_gpu_from_pinned, *on_cpu]))
    assert {each.best.technique for each in answered if each.question.data == Data.PINNED} == {"cupy"}
    summary, _ = evaluation.tables([*straight(), *on_cpu])
    asked_for = [each for each in found if each.hidden in evaluation.TOGETHER[evaluation.SIZE]]
    told = f"any size, idiomatic, {sum(each.right for each in asked_for)} of {len(asked_for)}"
    assert summary.notes[-1].text == f"Right, of the cases of each machine. box: {told}."


def test_a_wrong_pick_is_counted_with_what_it_costs():
    slow = [replace(each) for each in straight() if (each.technique, each.size) != ("cupy", MIDDLE)]
    usual = 1e-4 + 1e-9 * MIDDLE
    slow.append(on_gpu("cupy", MIDDLE, 2 * (CALL + 1.1e-9 * MIDDLE), transfer=usual, origin=making.BOX))
    (case,) = (
        each for each in evaluation.cases(slow) if (each.question.size, each.question.data) == (MIDDLE, Data.DEVICE)
    )
    assert (case.pick.technique, case.best.technique) == ("cupy", "triton")
    assert case.regret == pytest.approx(2) and not (case.right or case.close)
    summary, missed = evaluation.tables(slow)
    row = next(each for each in summary.records if each["hidden"] == evaluation.BETWEEN)
    assert (row["cases"], row["right"], row["worst_regret"]) == (3, pytest.approx(2 / 3), pytest.approx(2))
    assert [each["pick"] for each in missed.records if each["hidden"] == evaluation.BETWEEN] == ["cupy"]


def test_a_run_is_hidden_with_all_that_it_measured():
    first, last = Run("2026-11-22T00:00:00Z"), Run("2026-11-23T00:00:00Z")

    def measured(name, before, after):
        times = {metric: {first: before, last: after} for metric in (Metric.RESIDENT, Metric.TRANSFER)}
        return on_gpu(name, LARGE, after, transfer=after, origin=making.BOX, runs=times)

    found = [
        each
        for each in evaluation.cases([measured("cupy", 1.0, 3.0), measured("numba", 2.0, 2.0)])
        if each.hidden == evaluation.RUN and each.question.data == Data.DEVICE
    ]
    # Each of the two runs has the order that the other has not.
    assert [(each.pick.technique, each.best.technique, each.regret) for each in found] == [
        ("numba", "cupy", 2.0),
        ("cupy", "numba", 1.5),
    ]
    assert all(each.within > 1.5 for each in found)  # as far as these runs are apart


@pytest.mark.parametrize(
    ("rights", "lanes"),
    [
        (
            {("idiomatic", "any size"): 0.95, ("idiomatic", "a run"): 1.0, ("tuned", "any size"): 1.0},
            "for any size, idiomatic and tuned; for a run, idiomatic",
        ),
        ({("idiomatic", "any size"): 0.94, ("idiomatic", "a run"): 0.95}, "for any size, none; for a run, idiomatic"),
        ({}, "for any size, none; for a run, none"),
    ],
)
def test_a_lane_reaches_the_goal_for_sizes_and_for_runs(rights, lanes):
    records = [{"lane": lane, "hidden": hidden, "right": right} for (lane, hidden), right in rights.items()]
    assert evaluation._explained(records).endswith(f"Lanes that reach it: {lanes}.")


def test_one_size_that_is_left_gives_no_advice():
    two = [each for each in straight() if each.size != MIDDLE]
    found = list(evaluation.cases(two))
    assert found and all(each.pick is None and each.regret == math.inf for each in found)
    summary, missed = evaluation.tables(two)
    assert not summary.rows and not missed.rows


def test_runs_of_other_commits_count_where_nothing_else_differs():
    def stored(day, commit, seconds, **changes):
        origin = Origin("box", commit * 20, "existing", "2026-11-22", order=(day, day), **changes.pop("origin", {}))
        run = {Metric.RESIDENT: {Run(f"2026-11-2{day}T00:00:00Z"): seconds}}
        return on_gpu("cupy", seconds=seconds, origin=origin, runs=run, **changes)

    newest = stored(3, "cc", 1.2)
    alike, upgraded = stored(2, "bb", 1.1), stored(1, "aa", 1.0, versions="numpy 1.0")
    old = stored(1, "aa", 1.0, origin={"stale": True})
    for others, values in (([alike], [1.1, 1.2]), ([upgraded], [1.2]), ([old], [1.2]), ([alike, old], [1.1, 1.2])):
        (found,) = repeats.together([newest], [*others, newest])
        assert sorted(found.runs[Metric.RESIDENT].values()) == values
        assert found.value(Metric.RESIDENT) == 1.2


# ---- The command.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["multply", "-s", "7"], "Unknown workload 'multply'. Did you mean multiply?"),
        (["multiply"], "Missing option '--size'"),
        (["multiply", "-s", "0"], "'0' is not a valid size: it is less than 1"),
        (["multiply", "-s", "2**64"], "'2**64' is not a valid size: it is more than 2**63 - 1, the largest"),
        (["multiply", "-s", "7", "--data", "disk"], "'disk' is not one of 'host', 'pinned', 'device'"),
        (["multiply", "-s", "7", "--machine", "m", "--measure"], "--measure measures this machine: omit --machine."),
        (["training", "-s", "6000x64", "--data", "pinned"], "No recipe of training makes page-locked arrays: ask with"),
        (["multiply", "-s", "2**50"], "its arrays take 13.5 PB, and this machine has"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_says_what_to_do(arguments, message):
    out, err = invoked("choose", *arguments, code=2)
    assert message in " ".join(err.replace("│", " ").split())
    assert out == ""


def test_a_machine_that_is_not_stored(clone):
    _, err = invoked("choose", "multiply", "-s", "7", "--machine", "m", code=2)
    assert err.startswith("There are no results for machine 'm'. Nothing is stored yet.")
    _, err = invoked("choose", "multiply", "-s", "7", code=2)
    assert err.startswith("Nothing of multiply is stored of a machine ") and "--measure" in err


def test_a_machine_with_results_of_scaling_only(clone):
    keep(clone / "benchmarks/results", "gpus-x4", [row()], git(clone, "rev-parse", "HEAD"))
    for command in (("choose", "multiply", "-s", "7"), ("tables", "multiply"), ("tables",)):
        _, err = invoked(*command, "--machine", "gpus-x4", code=2)
        there = "takes results of compare, and of gpus-x4 there is only what gpu-cookbook scale measured. To see it: "
        assert err.startswith(f"{command[0]} {there}gpu-cookbook scale --machine gpus-x4.")
        assert f"gpu-cookbook {' '.join(['compare', *command[1:2]])} --save --machine gpus-x4" in err


def test_a_command_to_copy_is_one_line_on_every_terminal(clone, monkeypatch):
    monkeypatch.setattr(cli, "console", lambda: Console(highlight=False, width=30))
    recipe = catalogue.find("multiply", "pycuda_elementwise")
    Writer(Store(), "m").add(recipe, on_gpu(recipe.technique, transfer=1.0))
    out, _ = invoked("choose", "multiply", "-s", str(LARGE), "--machine", "m")
    assert f"\n    gpu-cookbook show multiply pycuda_elementwise\n    {recipe.install}\n" in out


def test_a_machine_with_results_of_other_work_and_rows_of_scaling(clone):
    writer = Writer(Store(), "gpus-x4")
    writer.add(catalogue.find("multiply", "numpy"), on_cpu("numpy", transfer=1.0))
    keep(clone / "benchmarks/results", "gpus-x4", [row()], git(clone, "rev-parse", "HEAD"))
    to_see = "To see what scale has measured there: gpu-cookbook scale --machine gpus-x4\n"
    for command in (("choose", "random_subset_mean", "-s", "100000"), ("tables", "random_subset_mean")):
        assert invoked(*command, "--machine", "gpus-x4", code=2)[1].endswith(to_see)
    for command in (("choose", "norm", "-s", "7"), ("tables", "norm")):
        assert "scale" not in invoked(*command, "--machine", "gpus-x4", code=2)[1]


@pytest.mark.parametrize("line", ["", '{"commit": "12", "ver'])
def test_where_no_device_is_known_any_more_it_says_so(line, clone, here):
    """Of results in asv's file only, nobody knows what took these times."""
    here()
    writer = Writer(Store(), "m")
    for size in (SMALL, MIDDLE):
        writer.add(catalogue.find("multiply", "numpy"), on_cpu("numpy", size, size * 1e-9, transfer=size * 2e-9))
    assert "No time but that of numpy" in invoked("choose", "multiply", "-s", "7e5")[0]
    (clone / "benchmarks/results/m/runs.jsonl").write_text(line)
    for size in ("40000", "7e5"):
        _, err = invoked("choose", "multiply", "-s", size, code=2)
        assert re.search(r"no time of it is known\. To measure it here: --measure\.$", err.strip())
        assert ("m/runs.jsonl, line 1: is not JSON, or is cut off" in err) == bool(line)
    _, err = invoked("choose", "norm", "-s", "7e5", code=2)
    assert ("m/runs.jsonl, line 1: is not JSON" in err) == bool(line) and "Nothing of norm is stored" in err


def test_without_a_clone_there_is_still_a_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, err = invoked("choose", "multiply", "-s", "7", code=2)
    assert "run this command inside a clone" in err and "--measure" in err


@pytest.mark.slow
def test_the_stored_machines_give_advice():
    require_clone()
    out, err = invoked("choose", "multiply", "-s", "5_000_000", "--machine", "nvidia-h200", "--data", "device")
    assert err == "" and "multiply, 5,000,000, with the data on the device" in out
    assert "Take " in out and "gpu-cookbook show multiply " in out and "pip install " in out
    assert "Stored results of nvidia-h200" in out
    out, err = invoked("choose", "matmul", "-s", "4096", "--machine", "nvidia-h200", "--data", "pinned")
    assert err == "" and "with the data in page-locked host arrays" in out and "pinned(shape)" in out


@pytest.fixture
def undisturbed(monkeypatch):
    """Two recipes are measured, and what else this machine does at the time raises no doubt. tests/test_recipes.py
    checks them."""
    monkeypatch.setattr(compare, "check", lambda recipes, finished: compare.Outcome())
    measure = compare.Comparison.measure

    def sure(self, *arguments, **options):
        outcome = measure(self, *arguments, **options)
        outcome.results = [replace(each, doubts={}) for each in outcome.results]
        return outcome

    monkeypatch.setattr(compare.Comparison, "measure", sure)
    monkeypatch.setattr(compare, "within_a_minute", lambda recipes, size: [*recipes][:2])


@pytest.mark.slow
def test_the_most_promising_are_measured_here(undisturbed):
    out, err = invoked("choose", "increment", "-s", "3000", "--measure")
    assert "increment, 3,000, from host arrays to a host result" in out and "Measured just now: " in out
    assert "≈" not in out and "gpu-cookbook show increment " in out
    assert "doubtful" not in err


def test_what_could_not_be_measured_is_said_with_the_reason(undisturbed, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where nothing is stored

    def failed(self, *arguments, **options):
        return compare.Outcome([making.without("numpy", 3_000, "failed", "crashed: SIGSEGV")])

    monkeypatch.setattr(compare.Comparison, "measure", failed)
    out, err = invoked("choose", "multiply", "-s", "3000", "--measure", code=2)
    assert "numpy failed: crashed: SIGSEGV" in err and "Every time was disturbed, or the recipe failed" in err
    doubtful = on_cpu("numpy", 3_000, 1e-5, **DOUBTFUL)
    monkeypatch.setattr(compare.Comparison, "measure", lambda *_, **__: compare.Outcome([doubtful]))
    out, err = invoked("choose", "multiply", "-s", "3000", "--measure", code=2)
    assert "numpy is doubtful, and not counted: other programs kept 3.0 of 16 cores busy" in err and out == ""
    assert err.endswith("Every time was disturbed, as said above. Stop other programs and repeat this.\n")


def test_advice_from_fewer_recipes_after_ctrl_c_says_so(undisturbed, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    stopped = compare.Outcome([on_cpu("numpy", 3_000, 1e-5)], interrupted=True)
    monkeypatch.setattr(compare.Comparison, "measure", lambda *_, **__: stopped)
    out, err = invoked("choose", "multiply", "-s", "3000", "--measure", code=130)
    assert "Only numpy" in out
    assert err.endswith("Stopped early: of other recipes nothing is known.\n")


def test_where_every_time_was_disturbed_stored_results_may_tell(undisturbed, monkeypatch, clone):
    recipe, doubtful = catalogue.find("multiply", "numpy"), on_cpu("numpy", 3_000, 1e-5, **DOUBTFUL)
    Writer(Store(), "m").add(recipe, on_cpu("numpy", transfer=1.0))
    monkeypatch.setattr(compare.Comparison, "measure", lambda *_, **__: compare.Outcome([doubtful]))
    _, err = invoked("choose", "multiply", "-s", "3000", "--measure", code=2)
    assert err.endswith("Stop other programs and repeat this, or omit --measure to ask the stored results.\n")
    _, err = invoked("choose", "increment", "-s", "3000", "--measure", code=2)
    assert err.endswith("Stop other programs and repeat this.\n"), "nothing is stored of increment"


def test_what_takes_too_long_is_left_to_compare(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compare, "within_a_minute", lambda recipes, size: [])
    _, err = invoked("choose", "multiply", "-s", "3000", "--measure", code=2)
    assert err.startswith("That takes longer than a minute: gpu-cookbook compare multiply -s 3000 -t ")


def test_promising_recipes_that_are_left_out_are_named(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    recipes = catalogue.choose(["multiply"], ["numpy", "torch_cpu", "numba_cpu", "dask"])
    seconds = dict(zip(recipes, (0.1, 25.0, 0.1, 30.0), strict=True))
    monkeypatch.setattr(choosing, "candidates", lambda *_: seconds)
    doubtful = on_cpu("numpy", 3_000, 1e-5, **DOUBTFUL)
    monkeypatch.setattr(compare.Comparison, "measure", lambda *_, **__: compare.Outcome([doubtful]))
    _, err = invoked("choose", "multiply", "-s", "3000", "--measure", code=2)
    told = f"longer than what the others leave of a minute: {recipes[1].technique} (about 25 s a call)."
    assert told in " ".join(err.split()) and f"{recipes[3].technique} (about" not in err
