"""What follows from the cells, and how numbers are written."""

import io
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from rich.console import Console

from gpu_cookbook.render import html_page, report, tables


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


def lanes():
    """A comparison of both lanes."""
    cells = [cell("numpy", 100, 4.0), cell("x", 100, 2.0), cell("x_tuned", 100, 1.0, lane="tuned")]
    cells.append(cell("y_tuned", 100, 3.0, lane="tuned"))
    return tables.compared(report.complete(cells))


def drawn(found, width):
    """The lines on a terminal."""
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(tables.terminal(found, width))
    return console.export_text().splitlines()


@pytest.mark.parametrize("width", [40, 80, 160])
def test_each_lane_is_ranked_for_itself_under_its_name(width):
    rows = [line.split() for line in "\n".join(drawn(lanes(), width)[1:]).partition("Medians.")[0].splitlines()]
    wanted = ["100,", "idiomatic", "x", "numpy", "100,", "tuned", "x_tuned", "y_tuned"]
    names = [word for row in rows for word in row if word in wanted]
    assert names == wanted * (len(names) // len(wanted))  # what does not fit stands below, under the same names
    assert {row[0] for row in rows if any(word.startswith("*") for word in row)} == {"x", "x_tuned"}


def test_a_group_is_a_row_of_its_own_in_markdown_too_with_its_lane_where_there_are_two():
    text = tables.as_markdown(lanes())
    assert "| technique | on | resident |" in text and "| **100, tuned** |  |  |" in text
    assert "| numpy | CPU | 4.00 s |" in text and "| x\\_tuned | CPU | **\\*1.00 s** |" in text
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 1
    alone = tables.as_markdown(tables.compared(report.complete([cell("numpy", 100, 4.0), cell("x", 100, 2.0)])))
    assert "| **100** |" in alone and "idiomatic" not in alone


def test_numpy_beside_the_tuned_ones_is_not_the_best_of_its_lane():
    (table,) = tables.compared([cell("numpy", 100, 1.0), cell("x_tuned", 100, 2.0, lane="tuned")])
    marks = {row[0].text: row[2].mark for row in table.rows}
    assert marks == {"100, idiomatic": "", "numpy": "", "100, tuned": "", "x_tuned": "best"}


def test_what_the_marks_mean_stands_below_where_there_are_any():
    assert "* best of its lane. = tied with the best" in " ".join(note.text for note in lanes()[0].notes)
    (table,) = tables.compared([cell("x", 100, 1) | {"status": "skipped", "reason": "no GPU"}])
    assert [note.text for note in table.notes] == ["Nothing ran.", "skipped: x: no GPU"]
    assert drawn([table], 80)[:3] == ["multiply: c = a * b, float32.", "Nothing ran.", "skipped: x: no GPU"]


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


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160])
def test_a_table_is_no_wider_than_its_terminal(width):
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
    lines = drawn(tables.compared(report.complete(cells)), width)
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
        if tag not in ("meta", "html", "body", "br"):
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
DEVICE = {f"{figure}_{end}": 1e-6 for figure in ("device", "transfer") for end in ("s", "q1_s", "q3_s")}


def both_lanes():
    cells = [cell("numpy", size, size / 1e3, framework="NumPy", first_result_s=0.1) for size in (100, 10_000)]
    for technique, lane in (("x", "idiomatic"), ("x_tuned", "tuned")):
        cells += [cell(technique, size, 1.0, lane=lane, framework="X", **DEVICE) for size in (100, 10_000)]
    return report.complete(cells)


def test_a_page_has_the_tables_and_charts_with_their_numbers():
    cells = both_lanes()
    text = html_page.comparison(cells, FACTS)
    page = Page(text)
    (table,) = tables.compared(cells)
    assert page.rows[:3] == [list(table.head), ["100, idiomatic"], ["numpy", "CPU", *page.rows[2][2:]]]
    assert ["100, tuned"] in page.rows and ["10,000, idiomatic"] in page.rows
    for row in table.rows:
        assert [entry.text for entry in row if entry.text or row[0].mark != "group"] in page.rows
    assert {row[0].text for row in table.rows if row[0].mark != "group"} == {"numpy", "x", "x_tuned"}
    # time over size with the data there and with transfer, what a call costs, the first result, all workloads
    assert page.tags["figure"] == page.tags["details"] == page.tags["svg"] == 5
    assert page.tags["table"] == 6
    assert len(page.ids) == len(set(page.ids))
    assert "a &lt;CPU&gt; &amp; more" in text and "Driver" not in text and "Medians." in text
    assert "url(" not in re.sub(r"url\(#", "", text) and "@import" not in text


def test_a_page_has_what_failed_and_why_escaped():
    cells = [*both_lanes(), cell("y", 100, 1) | {"status": "failed", "reason": "<b> & worse"}]
    text = html_page.comparison(cells, FACTS)
    assert Page(text).tags["svg"] == 5
    assert '<p class="bad">failed: y: &lt;b&gt; &amp; worse</p>' in text


def test_a_page_of_nothing_has_the_reasons():
    skipped = {"status": "skipped", "reason": "no GPU"}
    text = html_page.comparison([cell("x", 100, 1) | skipped, cell("y", 100, 1) | skipped], FACTS)
    page = Page(text)
    assert "Nothing ran." in text and "skipped: x, y: no GPU" in text and "Medians." not in text
    assert page.tags["svg"] == page.tags["table"] == 0
    assert "<h1>" in html_page.comparison([], FACTS)


def test_a_page_of_one_size_has_bars_instead_of_lines():
    text = html_page.comparison([each for each in both_lanes() if each["size"] == 100], FACTS)
    assert "<strong>multiply, 100: resident</strong>" in text and "time over size" not in text
    Page(text)
    Page(html_page.comparison([cell("numpy", 100, 1.0, framework="NumPy")], FACTS))
