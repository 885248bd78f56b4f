"""What follows from results, how numbers are written, and a comparison as text and as a page."""

import io
import re
from collections import Counter
from html.parser import HTMLParser

import making
import pytest
from making import timing
from rich.console import Console

from gpu_cookbook import units
from gpu_cookbook.render import format, html_page, tables, text
from gpu_cookbook.results import Crossing, FirstResult, Metric, Status, completed, crossing


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
    assert units.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.7, "1 kB"),
        (3.2212e9, "3.22 GB"),
        (999.9e9, "1 TB"),
        (41_505_174_165.8e9, "41.5 EB"),
        (1e39, "more than 999 EB"),
    ],
)
def test_memory_has_three_digits_and_a_unit(value, text):
    assert units.memory(value) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(4000, "4,000"), (999_999, "999,999"), (1_234_567, "1.23 M"), (2**28, "268 M"), (2**30, "1.07 G")],
)
def test_a_size_is_short(size, text):
    assert units.short(size) == text


@pytest.mark.parametrize(
    ("device", "text"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("2 × NVIDIA H100 NVL", "2 × H100 NVL"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe"),
        ("Xeon, 16 cores", "CPU"),
    ],
)
def test_a_device_is_short_in_a_column(device, text):
    assert format.on(making.result("cupy", 1, 1.0, device=device)) == text


@pytest.mark.parametrize(
    ("points", "size"),
    [
        ([(100, 1.0, 2.0), (1000, 1.0, 3.0)], 100),  # it always wins
        ([(100, 5.0, 1.0), (1000, 9.0, 8.0)], None),  # it never does
        ([(100, 2.0, 1.0), (10_100, 2.0, 5.0)], 2_600),  # 1 behind and 3 ahead: a quarter of the way
        ([(100, 1.0, 2.0), (1000, 3.0, 2.0), (4000, 4.0, 5.0)], 2_500),  # from where it stays ahead
        ([(100, 1.0, 2.0), (1000, 2.0, 1.0)], None),
        ([(100, 1.0, 1.0), (1000, 2.0, 3.0)], 100),  # equal is not faster, but any larger size is
    ],
)
def test_the_size_from_which_a_technique_wins(points, size):
    assert crossing(points, float) == size


def test_the_work_of_a_product_says_where_between_two_sizes_its_times_meet():
    points = [(100, 2.0, 1.0), (300, 25.0, 27.0)]  # 1 behind and 2 ahead: a third of the way from 1 to 27
    assert crossing(points, lambda size: size**3) == 214  # 2.13³ is 1 + 26 / 3


def result(technique, size, seconds, **changes):
    """One of a processor, without a spread."""
    parts = {"device": "AMD EPYC, 2 cores", "driver": None, "cuda": None, "clock": None, "versions": "numpy 2.4.6"}
    return making.result(technique, size, seconds, 0, copy_bandwidth=40.0, **parts | changes)


def skipped(technique, size, status=Status.SKIPPED, reason="no GPU"):
    return making.without(technique, size, status, reason, device="AMD EPYC, 2 cores")


def test_completed_compares_with_numpy_at_the_same_size():
    results = [result("numpy", 100, 1.0), result("numpy", 200, 4.0), result("x", 100, 2.0), result("x", 200, 1.0)]
    found = completed(results)
    assert [each.speedups[Metric.RESIDENT] for each in found] == [1, 1, 0.5, 4]
    # In hundreds of elements, NumPy takes n² seconds, and x takes 3 - n.
    assert found[2].crossings == {Metric.RESIDENT: Crossing(131, 200, False)}
    assert not found[0].crossings


def test_without_numpy_there_is_no_speedup():
    assert not completed([result("x", 100, 2.0)])[0].speedups


def test_numpy_of_another_environment_is_not_compared_with():
    results = [result("numpy", 100, 4.0), result("numpy", 100, 8.0, environment="cudf")]
    results += [result("x", 100, 2.0), result("x", 100, 1.0, environment="cudf")]
    results.append(result("x", 100, 1.0, environment="other"))
    found = completed(results)
    assert [each.speedups.get(Metric.RESIDENT) for each in found] == [1, 1, 2, 8, None]
    assert completed([result("numpy", 200, 1.0), *results, result("x", 200, 2.0)])[3].crossings == {
        Metric.RESIDENT: Crossing(None, 200, False)
    }
    assert found[3].crossings == {Metric.RESIDENT: Crossing(100, 100, True)}


def lanes():
    """A comparison of both lanes."""
    results = [result("numpy", 100, 4.0), result("x", 100, 2.0), result("x_tuned", 100, 1.0)]
    return tables.compared(completed([*results, result("y_tuned", 100, 3.0)]))


def drawn(found, width):
    """The lines on a terminal."""
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(text.terminal(found, width), crop=False)
    return console.export_text().splitlines()


@pytest.mark.parametrize("width", [40, 80, 160])
def test_each_lane_is_ranked_for_itself_under_its_name(width):
    rows = [
        line.split()
        for line in "\n".join(drawn(lanes(), width)[1:]).partition("All times are medians.")[0].splitlines()
    ]
    wanted = ["100,", "idiomatic", "x", "numpy", "100,", "tuned", "x_tuned", "y_tuned"]
    names = [word for row in rows for word in row if word in wanted]
    assert names == wanted * (len(names) // len(wanted))  # what does not fit stands below, under the same names
    assert {row[0] for row in rows if any(word.startswith("*") for word in row)} == {"x", "x_tuned"}


def test_a_group_is_a_row_of_its_own_in_markdown_too_with_its_lane_where_there_are_two():
    written = text.as_markdown(lanes())
    assert "| technique | on | resident |" in written and "| **100, tuned** |  |  |" in written
    assert "| numpy | CPU | 4.00 s |" in written and "| x\\_tuned | CPU | **\\*1.00 s** |" in written
    assert len({line.count("|") for line in written.splitlines() if line.startswith("|")}) == 1
    alone = text.as_markdown(tables.compared(completed([result("numpy", 100, 4.0), result("x", 100, 2.0)])))
    assert "| **100** |" in alone and "idiomatic" not in alone


def test_numpy_beside_the_tuned_ones_is_not_the_best_of_its_lane():
    (table,) = tables.compared([result("numpy", 100, 1.0), result("x_tuned", 100, 2.0)])
    marks = {row[0].text: row[2].mark for row in table.rows}
    assert marks == {"100, idiomatic": "", "numpy": "", "100, tuned": "", "x_tuned": "best"}
    (table,) = tables.compared([result("numpy", 100, 1.0), skipped("x_tuned", 100)])
    assert [row[2].mark for row in table.rows] == ["", ""]


def test_what_the_marks_mean_stands_below_where_there_are_any():
    assert "* is the best in its lane. = is tied with the best" in " ".join(note.text for note in lanes()[0].notes)
    (table,) = tables.compared([skipped("x", 100)])
    assert [note.text for note in table.notes] == ["Nothing was measured.", "skipped: x: no GPU"]
    assert drawn([table], 80)[:3] == ["multiply: c = a * b, float32.", "Nothing was measured.", "skipped: x: no GPU"]


def test_a_command_at_the_end_of_a_note_is_never_broken_over_lines():
    install = 'pip install "some-package[extra]" another-package --index-url https://packages.example/whl/cu126'
    (table,) = tables.compared([skipped("x", 100, reason=f"x not installed: {install}")])
    assert drawn([table], 60)[2:4] == ["skipped: x: x not installed:", install]
    assert drawn([table], 200)[2] == f"skipped: x: x not installed: {install}"


def test_only_the_metrics_that_are_there_are_explained():
    assert "prepared:" not in lanes()[0].notes[-3].text
    (table,) = tables.compared([result("x", 100, 2.0, timings={Metric.PREPARED: timing(1.0)})])
    assert f"prepared: {tables.METRICS[Metric.PREPARED]}." in table.notes[-3].text
    assert table.head[2:4] == ("resident", "prepared")


def test_a_noisy_median_is_marked():
    wide = {Metric.RESIDENT: timing(1.0, q1=1.0, q3=1.3)}
    narrow = {Metric.RESIDENT: timing(1.0, q1=1.0, q3=1.1)}
    assert tables.metric_entry(result("x", 100, None, timings=wide), Metric.RESIDENT).text == "~1.00 s"
    assert tables.metric_entry(result("x", 100, None, timings=narrow), Metric.RESIDENT).text == "1.00 s"


def test_arithmetic_has_a_rate_only_where_it_takes_the_time():
    (table,) = tables.compared([result("x", 100, 1.0), result("x", 10_000, 1.0)])
    assert "GB/s" in table.head and "Gop/s" not in table.head
    (table,) = tables.compared([result("x", 1000, 1e-3, workload="matmul")])
    assert dict(zip(table.head, (entry.text for entry in table.rows[1]), strict=True))["Gop/s"] == "2,000"


def test_what_did_not_run_stands_in_one_line_unless_its_sizes_differ():
    results = [skipped("a", 40_000), skipped("a", 1_000_000)]
    results += [result("b", 40_000, 1), skipped("b", 1_000_000, Status.FAILED, "it crashed")]
    assert list(tables.without_metrics(results)) == [
        ("a", "skipped", "no GPU"),
        ("b", "failed", "at 1,000,000: it crashed"),
    ]


def test_another_math_mode_is_named():
    results = [result("a", 100, 1), result("b", 100, 1, math="TF32")]
    assert list(tables.without_metrics(results)) == [("b", "math", "TF32")]


def test_a_technique_that_does_not_win_is_said_to_lose_up_to_the_largest_size():
    results = [result("numpy", 100, 1.0), result("x", 100, 2.0), result("numpy", 2**28, 1.0), result("x", 2**28, 1.5)]
    results = completed(results)
    assert format.beats_from(results[1].crossings[Metric.RESIDENT]) == ">268 M"
    (table,) = tables.compared(results)
    assert {row[-1].text for row in table.rows if row[0].text == "x"} == {">268 M"}


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160])
def test_a_table_is_no_wider_than_its_terminal(width):
    every = dict.fromkeys((Metric.PREPARED, Metric.TRANSFER, Metric.PINNED, Metric.DEVICE), timing(1.0, 0))
    parts = {"first": FirstResult(1.0), "peak_memory": 2**30, "error": 8.4e-8, "cache_bytes": 0}
    results = [
        result(t, size, s, device=device, timings=every, **parts)
        for t, s, device in (
            ("numpy", 1.0, "AMD EPYC, 2 cores"),
            ("multiprocessing_cuda", 0.5, "pthread-AMD EPYC-Genoa"),
        )
        for size in (40_000, 2**28)
    ]
    found = tables.compared(completed(results))
    lines = drawn(found, width)
    assert len(found[0].head) == 2 + len(tables.COMPARED) - 1  # no Gop/s: it is the memory that takes the time
    assert all(len(line) <= width for line in lines)
    assert not any("…" in line for line in lines)
    assert any("multiprocessing_cuda" in line and "500 ms" in line for line in lines)


# ---- As a page.


class Page(HTMLParser):
    """What stands in a page; fails where an end tag does not fit or something is asked of another place."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.rows, self.ids = [], Counter(), [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        assert tag not in ("script", "link", "img", "iframe") and "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
        assert tag != "table" or "scroll" in self.open
        self.tags[tag] += 1
        self.ids += [value for key, value in attributes.items() if key == "id"]
        if tag not in ("meta", "html", "body", "br", "wbr"):
            self.open.append("scroll" if attributes.get("class") == "scroll" else tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        if tag not in ("html", "body"):
            assert self.open.pop() in (tag, "scroll")

    def handle_data(self, data):
        if {"th", "td"} & set(self.open):
            self.rows[-1][-1] += data


FACTS = [("Processor", "a <CPU> & more"), ("Driver", None), ("Commit", "0123")]
DEVICE = dict.fromkeys((Metric.DEVICE, Metric.TRANSFER, Metric.PINNED), timing(1e-6, 0))


def both_lanes():
    results = [result("numpy", n, n / 1e3, framework="NumPy", first=FirstResult(0.1)) for n in (100, 10_000)]
    for technique in ("x", "x_tuned"):
        results += [result(technique, size, 1.0, framework="X", timings=DEVICE) for size in (100, 10_000)]
    return completed(results)


def test_a_page_has_the_tables_and_charts_with_their_numbers():
    results = both_lanes()
    written = html_page.comparison(results, FACTS)
    page = Page(written)
    (table,) = tables.compared(results)
    assert page.rows[:3] == [list(table.head), ["100, idiomatic"], ["numpy", "CPU", *page.rows[2][2:]]]
    assert ["100, tuned"] in page.rows and ["10,000, idiomatic"] in page.rows
    for row in table.rows:
        assert [entry.text for entry in row if entry.text or row[0].mark != "group"] in page.rows
    assert {row[0].text for row in table.rows if row[0].mark != "group"} == {"numpy", "x", "x_tuned"}
    # time over size with the data there, with transfer, page-locked; what a call costs, the first result, all workloads
    assert page.tags["figure"] == page.tags["details"] == page.tags["svg"] == 6
    assert page.tags["table"] == 7
    assert "multiply, pinned: time over size" in written
    assert len(page.ids) == len(set(page.ids))
    assert "a &lt;CPU&gt; &amp; more" in written and "Driver" not in written and "All times are medians." in written
    assert "url(" not in re.sub(r"url\(#", "", written) and "@import" not in written


def test_a_page_has_what_failed_and_why_escaped():
    results = [*both_lanes(), skipped("y", 100, Status.FAILED, "<b> & worse")]
    written = html_page.comparison(results, FACTS)
    assert Page(written).tags["svg"] == 6
    assert '<p class="bad">failed: y: &lt;b&gt; &amp; worse</p>' in written


def test_a_page_of_nothing_has_the_reasons():
    written = html_page.comparison([skipped("x", 100), skipped("y", 100)], FACTS)
    page = Page(written)
    assert "Nothing was measured." in written and "skipped: x, y: no GPU" in written and "medians" not in written
    assert page.tags["svg"] == page.tags["table"] == 0
    assert "<h1>" in html_page.comparison([], FACTS)


def test_a_page_of_one_size_has_bars_instead_of_lines():
    written = html_page.comparison([each for each in both_lanes() if each.size == 100], FACTS)
    assert "<strong>multiply, 100: resident</strong>" in written and "time over size" not in written
    Page(written)
    Page(html_page.comparison([result("numpy", 100, 1.0, framework="NumPy")], FACTS))
