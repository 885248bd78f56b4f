"""What follows from the cells, and how numbers are written."""

import io
import re

import pytest

from gpu_cookbook import report


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (8.02, "8.02 s"),
        (0.9999, "1.00 s"),
        (0.000742, "742 µs"),
        (0.00132, "1.32 ms"),
        (1.31e-5, "13.1 µs"),
        (2e-8, "0.0200 µs"),
        (1234.5, "1,230 s"),
    ],
)
def test_seconds_have_three_digits_and_a_unit(value, text):
    assert report.seconds(value) == text


@pytest.mark.parametrize(
    ("points", "size"),
    [
        ([(100, 2.0), (1000, 3.0)], 100),  # it always wins
        ([(100, 0.2), (1000, 0.9)], None),  # it never does
        ([(100, 0.1), (10_000, 10.0)], 1000),  # half way, in logarithms
        ([(100, 2.0), (1000, 0.5), (4000, 2.0)], 2000),  # from where it stays ahead
        ([(100, 2.0), (1000, 0.5)], None),
    ],
)
def test_the_size_from_which_a_technique_wins(points, size):
    assert report.crossing(points) == size


def cell(technique, size, resident, **more):
    return {
        "workload": "multiply",
        "technique": technique,
        "lane": "idiomatic",
        "device": "AMD EPYC, 2 cores",
        "driver": None,
        "cuda": None,
        "math": "IEEE",
        "versions": "numpy 2.4.6",
        "device_copy_bandwidth_gb_per_s": 40.0,
        "size": size,
        "status": "ok",
        "reason": None,
        "resident_s": resident,
        "resident_q1_s": resident,
        "resident_q3_s": resident,
        "operations_g_per_s": 1.0,
        "bandwidth_gb_per_s": 12.0,
        **more,
    }


def test_complete_compares_with_numpy_at_the_same_size():
    cells = [cell("numpy", 100, 1.0), cell("numpy", 200, 4.0), cell("x", 100, 2.0), cell("x", 200, 1.0)]
    report.complete(cells)
    assert [c["speedup_resident_x"] for c in cells] == [1, 1, 0.5, 4]
    # 0.5 at 100 and 4 at 200: log 1 lies a third of the way.
    assert cells[2]["beats_numpy_from_size_resident"] == round(100 * 2 ** (1 / 3))


def test_without_numpy_there_is_no_speedup():
    assert "speedup_resident_x" not in report.complete([cell("x", 100, 2.0)])[0]


def lanes(width):
    """What a comparison of both lanes looks like, line by line."""
    from rich.console import Console

    cells = [cell("numpy", 100, 4.0), cell("x", 100, 2.0), cell("x_tuned", 100, 1.0, lane="tuned")]
    cells.append(cell("y_tuned", 100, 3.0, lane="tuned"))
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True)
    console.print(report.tables(report.complete(cells), width))
    return cells, console.export_text(styles=True).splitlines()


@pytest.mark.parametrize("width", [40, 80, 160])
def test_each_lane_is_ranked_for_itself_under_its_name(width):
    _, lines = lanes(width)
    words = [re.sub(r"\x1b\[[\d;]*m", "", line).split() for line in lines]
    rows = [line for line in words if line and line[0] in ("100,", "numpy", "x", "x_tuned", "y_tuned")]
    assert [row[0] if row[0] != "100," else " ".join(row) for row in rows] == [
        *("100, idiomatic", "x", "numpy", "100, tuned", "x_tuned", "y_tuned"),
    ]
    best = [word[0] for word, line in zip(words, lines, strict=True) if "\x1b[1;32m" in line]
    assert best == ["x", "x_tuned"]


def test_markdown_has_the_lane_where_there_are_two():
    text = report.markdown(lanes(80)[0])
    assert "| size | technique | lane | on |" in text
    assert "| 100 | `numpy` | idiomatic | CPU |" in text and "| 100 | `x_tuned` | tuned | CPU |" in text
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 1
    assert "lane" not in report.markdown(report.complete([cell("numpy", 100, 4.0), cell("x", 100, 2.0)]))


def test_numpy_beside_the_tuned_ones_is_not_the_best_of_its_lane():
    cells = [cell("numpy", 100, 1.0), cell("x_tuned", 100, 2.0, lane="tuned")]
    ((_, groups, _),) = report.grouped(cells)
    assert [(size, lane, len(members)) for size, lane, members in groups] == [(100, "idiomatic", 1), (100, "tuned", 1)]
    table = report.tables(cells, 160).renderables[1]
    assert [str(row.style) for row in table.rows] == ["None", "", "None", "bold green"]


def test_a_noisy_median_is_marked():
    assert report.timing(cell("x", 100, 1.0, resident_q3_s=1.3), "resident") == "~1.00 s"
    assert report.timing(cell("x", 100, 1.0, resident_q3_s=1.1), "resident") == "1.00 s"


def test_what_did_not_run_stands_in_one_line_unless_its_sizes_differ():
    skipped = {"status": "skipped", "reason": "no GPU"}
    failed = {"status": "failed", "reason": "it crashed"}
    cells = [cell("a", 40_000, 1) | skipped, cell("a", 1_000_000, 1) | skipped]
    cells += [cell("b", 40_000, 1), cell("b", 1_000_000, 1) | failed]
    assert list(report.rest(cells)) == [("a", "skipped", "no GPU"), ("b", "failed", "at 1,000,000: it crashed")]


def test_another_math_mode_is_named():
    assert list(report.rest([cell("a", 100, 1), cell("b", 100, 1, math="TF32")])) == [("b", "math", "TF32")]


def test_a_technique_that_does_not_win_is_said_to_lose_up_to_the_largest_size():
    cells = [cell("numpy", 100, 1.0), cell("x", 100, 2.0), cell("numpy", 2**28, 1.0), cell("x", 2**28, 1.5)]
    assert report.wins(report.complete(cells)[1]) == ">268 M"


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_a_table_is_no_wider_than_its_terminal(width):
    from rich.console import Console

    cells = [
        cell(
            t,
            size,
            r,
            device=device,
            transfer_s=1.0,
            transfer_q1_s=1,
            transfer_q3_s=1,
            first_result_s=1.0,
            copy_bandwidth_percent=5.0,
            peak_device_memory_bytes=2**30,
            device_s=1.0,
            device_q1_s=1.0,
            device_q3_s=1.0,
        )
        for t, r, device in (
            ("numpy", 1.0, "AMD EPYC, 2 cores"),
            ("multiprocessing_cuda", 0.5, "pthread-AMD EPYC-Genoa"),
        )
        for size in (40_000, 2**28)
    ]
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(report.tables(report.complete(cells), width))
    lines = console.export_text().splitlines()
    assert all(len(line) <= width for line in lines)
    assert not any("…" in line for line in lines)
    assert any("multiprocessing_cuda" in line and "500 ms" in line for line in lines)
