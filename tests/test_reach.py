"""The fastest recipe of each framework: which result a cell has, and what it says of it."""

from dataclasses import replace

import pytest
from making import result, timing

from gpu_cookbook.render import format, reach
from gpu_cookbook.results import Metric, Origin, judged

LARGE = 2**28


def of(workload, technique, size, seconds, framework="CuPy", metric=Metric.DEVICE, **changes):
    made = result(technique, size, None, copy_bandwidth=4000.0, cache_bytes=60_000_000, **changes)
    made = replace(made, workload=workload, framework=framework, timings={metric: timing(seconds, seconds / 100)})
    return judged(made)


def cells(*results):
    table = reach.by_framework(results)
    return {row[0].text: {head: each for head, each in zip(table.head, row, strict=True)} for row in table.rows}


def test_what_moves_memory_has_its_share_of_a_copy():
    # 3 * 4 * 2**28 bytes in 805 µs are 4 TB/s.
    slow, fast = (of("multiply", name, LARGE, time) for name, time in (("cupy", 1.61e-3), ("cupy_tuned", 8.05e-4)))
    entry = cells(slow, fast)["CuPy"]["multiply, 268,435,456"]
    assert (entry.text, entry.recipe) == ("100 % t", ("multiply", "cupy_tuned"))
    assert cells(slow)["CuPy"]["multiply, 268,435,456"].text == "50 %"


def test_what_computes_has_its_time_beside_the_least_of_all():
    found = cells(
        of("matmul", "cupy_tuned", 200, 2e-6),
        of("matmul", "warp", 200, 5e-6, framework="Warp"),
        of("random_subset_mean", "warp_tuned", 100_000, 0.01, framework="Warp", metric=Metric.RESIDENT),
    )
    assert [each["matmul, 200"].text for each in found.values()] == ["1.00 × t", "2.50 ×"]
    assert found["Warp"]["random_subset_mean, 100,000"].text == "1.00 × t"
    assert found["CuPy"]["random_subset_mean, 100,000"].text == format.UNKNOWN


@pytest.mark.parametrize(
    "changes",
    [
        {"device": "Xeon, 16 cores"},
        {"math": "TF32 (allowed)"},
        {"technique": "removed_since"},
        {"doubts": {Metric.DEVICE: "the GPU slowed down"}},
    ],
    ids=str,
)
def test_what_does_not_count(changes):
    left_out = replace(of("matmul", "cupy", 200, 1e-6, framework="Numba"), **changes)
    assert list(cells(left_out, of("matmul", "cupy_tuned", 200, 2e-6))) == ["CuPy"]


def test_without_a_gpu_there_is_no_table():
    assert reach.by_framework([of("matmul", "numpy", 200, 1e-3, device="Xeon, 16 cores", driver=None)]) is None


def test_what_has_changed_since_is_marked():
    old = of("matmul", "cupy", 200, 1e-6, origin=Origin("m", "0" * 40, "", "2026-11-25", stale=True))
    assert cells(old)["CuPy"]["matmul, 200"].text == f"{format.STALE}1.00 ×"
