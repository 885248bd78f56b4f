"""The tables that compare, and what every format makes of them."""

import csv
import html.parser
import io
import json
import math
import re

import pytest
from rich.console import Console

from gpu_cookbook import catalogue
from gpu_cookbook.render import tables

SMALL, LARGE = catalogue.workload_module("multiply").SIZES[::2]


def cell(technique, resident=1.0, half=0.01, **more):
    """One measured cell; the samples' middle half reaches ``half`` to both sides, the interval half as far."""
    return {
        "workload": "multiply",
        "technique": technique,
        "framework": technique,
        "lane": "tuned" if technique.endswith("_tuned") else "idiomatic",
        "math": "IEEE",
        "machine": "box",
        "commit": "0123456789abcdef0123",
        "environment": "existing",
        "device": "NVIDIA H200",
        "driver": "580.1",
        "cuda": "13.0",
        "clock": "1980 MHz",
        "versions": "Python 3.12.3, numpy 2.4.6",
        "size": LARGE,
        "status": "ok",
        "reason": None,
        "stale": False,
        "device_copy_bandwidth_gb_per_s": 4000.0,
        "resident_s": resident,
        "resident_q1_s": resident - half,
        "resident_q3_s": resident + half,
        "resident_samples": 10,
        "resident_ci99_a_s": resident - half / 2,
        "resident_ci99_b_s": resident + half / 2,
        **more,
    }


def without(technique, status, reason, **more):
    """A cell with no figure."""
    gone = {key: None for key in cell(technique) if key.startswith("resident_")}
    return cell(technique) | gone | {"status": status, "reason": reason} | more


def texts(table):
    """{first column: the others' texts}"""
    return {row[0].text: [entry.text for entry in row[1:]] for row in table.rows}


def notes(found):
    return "\n".join(note.text for table in found for note in table.notes)


def drawn(found, width):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(tables.terminal(found, width))
    return console.export_text()


# 1. Measured


def test_the_best_of_each_lane_is_marked_and_lanes_are_not_ranked_together():
    (table, _) = tables.measured([cell("a", 1.0), cell("b", 2.0), cell("a_tuned", 0.5), cell("b_tuned", 3.0)])
    assert table.head == ("technique", "lane", "on", f"{LARGE:,}")
    assert texts(table) == {
        "a": ["idiomatic", "NVIDIA H200", "*1.00 s"],
        "b": ["idiomatic", "NVIDIA H200", "2.00 s"],
        "a_tuned": ["tuned", "NVIDIA H200", "*500 ms"],
        "b_tuned": ["tuned", "NVIDIA H200", "3.00 s"],
    }
    assert list(texts(table)) == ["a", "b", "a_tuned", "b_tuned"]


def test_of_one_lane_only_its_cells_are_ranked_and_numpy_stays():
    cells = [cell("numpy", 5.0), cell("a", 1.0), cell("a_tuned", 0.5), cell("b_tuned", 3.0)]
    (table, bandwidth) = tables.measured(cells, "tuned")
    assert texts(table) == {
        "numpy": ["idiomatic", "NVIDIA H200", "5.00 s"],
        "a_tuned": ["tuned", "NVIDIA H200", "*500 ms"],
        "b_tuned": ["tuned", "NVIDIA H200", "3.00 s"],
    }
    assert [record["rank"] for record in table.records] == [None, "best", None]
    assert texts(bandwidth)["numpy"][-1][0] != "*"
    (table, _) = tables.measured(cells, "idiomatic")
    assert texts(table) == {"numpy": ["NVIDIA H200", "5.00 s"], "a": ["NVIDIA H200", "*1.00 s"]}
    assert [c["technique"] for c in tables.of_lane(cells, "idiomatic")] == ["numpy", "a"]
    assert tables.of_lane(cells, None) == cells


def test_a_comparison_marks_the_same_cells_as_the_stored_tables():
    def timed(*arguments, **more):
        times = {f"{f}_{key}": v for f in ("device", "transfer") for key, v in (("s", 1), ("q1_s", 0.9), ("q3_s", 1.1))}
        made = cell(*arguments, **{"first_result_s": 2.0, "peak_device_memory_bytes": 2**30} | times | more)
        return made | tables.bandwidth_of(made)

    cells = [timed("numpy", 5.0), timed("a", 1.0, 0.02, transfer_s=1.3, transfer_q1_s=1.2), timed("b", 1.03, 0.02)]
    cells += [timed("a_tuned", 0.5, first_result_s=1.0), timed("b_tuned", 0.6, device_s=0.1, device_q3_s=0.2)]
    cells += [timed("numpy", 1.0, size=SMALL), timed("a_tuned", 2.0, size=SMALL)]
    stored, found = set(), set()
    for figure, table in zip(tables.FIGURES, tables.measured(cells), strict=True):
        for name, *row in table.rows:
            stored |= {(figure, size, name.text, e.mark) for size, e in zip(table.head[1:], row, strict=True) if e.mark}
    (table,) = tables.compared(cells)
    for name, *row in table.rows:
        if name.mark == "group":
            size = name.text.partition(", ")[0]
        heads = [dict(tables.COMPARED).get(head) for head in table.head[1:]]
        found |= {(figure, size, name.text, e.mark) for figure, e in zip(heads, row, strict=True) if e.mark}
    assert found == stored
    large = {(name, mark) for figure, size, name, mark in found if (figure, size) == ("resident", f"{LARGE:,}")}
    assert large == {("a", "tie"), ("b", "tie"), ("a_tuned", "best")}
    assert not any(name == "numpy" for _, size, name, _ in found if size == f"{SMALL:,}")  # alone of its lane


def test_the_overview_has_the_lanes_where_there_are_two():
    cells = [cell(t, workload=w) for t in ("numpy", "a_tuned") for w in ("increment", "multiply")]
    overview = tables.measured(cells)[0]
    assert overview.head[:3] == ("technique", "lane", "on") and overview.align == "lllrr"
    assert [[entry.text for entry in row[:2]] for row in overview.rows] == [
        ["numpy", "idiomatic"],
        ["a_tuned", "tuned"],
    ]
    assert tables.measured(cells[:2])[0].head[:2] == ("technique", "on")


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_the_lane_stands_beside_every_figure_on_every_terminal(width):
    cells = [cell(t, s, size=n) for t, s in (("a", 1.0), ("a_tuned", 0.5)) for n in (SMALL, 10**6, LARGE)]
    table = tables.measured(cells)[0]
    blocks = list(tables._blocks(table, width))
    assert all(block[:2] == [0, 1] and len(block) > 2 for block in blocks)
    assert [i for block in blocks for i in block[2:]] == list(range(2, len(table.head)))
    assert len(blocks) > (width < 80)
    assert all(len(line) <= width for line in drawn([table], width).splitlines())


@pytest.mark.parametrize(
    ("a", "b", "tied"),
    [
        (cell("a", 1.0, 0.01), cell("b", 1.02, 0.08), True),
        (cell("a", 1.0, 0.02), cell("b", 1.05, 0.02), False),
        (cell("a", 1.0, 0.02), cell("b", 1.03, 0.02, resident_ci99_a_s=1.03), True),  # the medians' do not overlap
        (cell("a", 1.0, 0.02), cell("b", 1.9, 0.02, resident_ci99_a_s=0.5), False),  # of three samples, say
        (cell("a", 1.0, 0.02), cell("b", 1.0001, resident_q1_s=None), False),  # no spread is stored
        (cell("a", 1.0, 0.02), cell("b", 1.0, resident_q1_s=None), True),
    ],
)
def test_within_the_spread_it_is_a_tie(a, b, tied):
    (table, bandwidth) = tables.measured([b, a])
    assert [row[-1].text[0] for row in table.rows] == (["=", "="] if tied else ["*", "1"])
    assert [record["rank"] for record in table.records] == (["tie", "tie"] if tied else [None, "best"])
    assert [row[-1].text[0] in "=*" for row in bandwidth.rows] == [True, tied]  # it comes from the same times


def test_a_median_alone_is_shown_without_a_spread():
    alone = {key: value for key, value in cell("a").items() if key == "resident_s" or not key.startswith("resident_")}
    (table, _) = tables.measured([alone])
    assert texts(table)["a"][-1] == "*1.00 s"
    assert table.records[0]["q1_s"] is None


def test_noise_and_stale_recipes_are_marked():
    (table, _) = tables.measured([cell("a", 1.0, 0.2), cell("b", 2.0, stale=True), cell("c", 3.0, 0.5, stale=True)])
    assert [row[-1].text for row in table.rows] == ["*~1.00 s", "†2.00 s", "†~3.00 s"]
    assert "† stale: the recipe or its kernel has changed" in notes([table, _])


def test_what_did_not_run_is_kept_apart_and_has_its_reason_once():
    cells = [cell("a"), cell("a", 0.1, size=SMALL), without("a", "ok", None, size=10**6)]
    cells += [without(name, "skipped", "no GPU", size=size) for name in ("s", "t") for size in (SMALL, LARGE)]
    cells += [cell("b", size=SMALL), without("b", "failed", "it crashed"), without("c", "refused", "too fast")]
    cells += [cell("d"), without("d", "skipped", "too small", size=SMALL), without("e", "failed", None)]
    found = tables.measured(cells)
    assert found[0].head[2:] == (f"{SMALL:,}", f"{LARGE:,}")
    assert {name: words[1:] for name, words in texts(found[0]).items()} == {
        "a": ["*100 ms", "=1.00 s"],
        "b": ["1.00 s", "failed"],
        "c": ["", "refused"],
        "d": ["–", "=1.00 s"],
        "e": ["", "failed"],
    }
    lines = notes(found).splitlines()
    assert lines[:5] == [
        f"failed: b: at {LARGE:,}: it crashed",
        "failed: e: no reason stored",
        "refused: c: too fast",
        f"skipped: d: at {SMALL:,}: too small",
        "skipped: s, t: no GPU",
    ]
    assert [note.mark for note in found[-1].notes[:5]] == ["bad"] * 3 + ["note"] * 2
    # A program gets them too, once.
    apart = [r["technique"] for table in found for r in table.records if r["status"] != "ok"]
    assert sorted(apart) == ["b", "c", "d", "e", "s", "s", "t", "t"]


def test_where_nothing_ran_the_reasons_are_still_there():
    found = tables.measured([without("a", "skipped", "no GPU")])
    assert [table.rows for table in found] == [[]]
    assert "skipped: a: no GPU" in drawn(found, 80)
    assert "skipped: a: no GPU" in tables.as_markdown(found)
    assert "skipped: a: no GPU" in tables.as_html(found) and "<table>" not in tables.as_html(found)
    assert tables.measured([]) == []


def test_every_figure_has_its_table_and_its_unit():
    timed = {f"{figure}_{key}": 0.5 for figure in ("device", "transfer") for key in ("s", "q1_s", "q3_s")}
    more = {"first_result_s": 1.5, "peak_device_memory_bytes": 3 * 2**29, "device_cache_bytes": 6 * LARGE - 1}
    found = tables.measured([cell("a", **timed, **more)])
    assert [texts(table)["a"][-1] for table in found] == [
        *("*1.00 s", "*500 ms", "*500 ms", "*1.50 s", "*1.50 GiB"),
        "*6.44 (0 %)",  # 12 bytes an element, in the device's time
    ]
    assert [[key for key in table.records[0] if key.startswith("value")] for table in found] == [
        *[["value_s"]] * 4,
        *(["value_bytes"], ["value_gb_per_s"]),
    ]
    assert found[5].records[0]["copy_bandwidth_percent"] == pytest.approx(100 * 12 * LARGE / 0.5 / 4e12)
    fits = tables.measured([cell("a", **timed, **more | {"device_cache_bytes": 6 * LARGE})])
    assert texts(fits[5])["a"][-1] == "*6.44"  # into the cache: the share says nothing


def test_what_moves_no_memory_has_no_bandwidth():
    assert len(tables.measured([cell("a", workload="random_subset_mean", size=4000)])) == 1


def test_machines_commits_and_environments_do_not_share_a_table():
    found = tables.measured([cell("a"), cell("a", 2.0, commit="f" * 20), cell("a", 3.0, environment="other")])
    assert [texts(table)["a"][-1] for table in found[::2]] == ["*1.00 s", "*2.00 s", "*3.00 s"]
    assert [table.title.rpartition(". ")[2] for table in found[::2]] == [
        *("box, existing, 01234567", "box, existing, ffffffff", "box, other, 01234567"),
    ]
    (alone, _) = tables.measured([cell("a")])
    assert alone.title.endswith(". box, 01234567")


def test_how_it_was_measured_is_named():
    cells = [cell("a", math="TF32"), cell("b", device="AMD EPYC, 2 cores", device_reason="no clock", clock=None)]
    cells[1] |= {"device_copy_bandwidth_gb_per_s": 40.0, "versions": "Python 3.12.3, dask 1.0"}
    found = notes(tables.measured(cells)).splitlines()
    assert found[:2] == ["math: a: TF32", "no device time: b: no clock"]
    assert found[-1] == (
        "Measured: machine box; environment existing; commit 01234567; device AMD EPYC, 2 cores and NVIDIA H200; "
        "driver 580.1; cuda 13.0; clock 1980 MHz; copying 4,000 GB/s on NVIDIA H200 and 40.0 GB/s on AMD EPYC, 2 "
        "cores; Python 3.12.3; dask 1.0; numpy 2.4.6."
    )


# 2 and 3. What frameworks and engines can do


def test_every_tick_links_recipes_that_exist_and_every_other_answer_its_source():
    found = tables.abilities()
    assert [table.title for table in found] == ["What a framework can do", "Parallel engines"]
    for table in found:
        for entry in (entry for row in table.rows for entry in row[1:]):
            assert entry.links
            assert (entry.mark == "recipes") == entry.text.startswith("✓") == entry.links[0][1].startswith("recipes/")
            for label, address in entry.links:
                if entry.mark == "recipes":
                    workload, technique = label.split()
                    (recipe,) = catalogue.choose([workload], [technique])
                    assert recipe.path.samefile(catalogue.FOLDER / address.removeprefix("recipes/"))
                else:
                    assert address.startswith("https://")
    frameworks = {row[0].links[0][0]: [entry.text for entry in row[1:]] for row in found[0].rows}
    assert frameworks["PyCUDA"][0] == "✓ SourceModule"
    assert frameworks["PyCUDA"][1].startswith("✗ CUDA only")
    assert frameworks["CuPy"][0] == "✓ RawKernel"
    assert "scikit-cuda: last release" in notes(found)


# 4. Change


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (cell("a", 1.0), cell("a", 0.8), "faster (×0.791 to ×0.809)"),
        (cell("a", 1.0), cell("a", 1.2), "slower (×1.19 to ×1.21)"),
        (cell("a", 1.0), cell("a", 1.05), "same (×1.04 to ×1.06)"),
        (cell("a", 1.0), cell("a", 0.95), "same (×0.940 to ×0.960)"),
        (cell("a", 1.0), cell("a", 1.094), "cannot tell (×1.08 to ×1.10)"),  # it may be above a factor of 1.1
        (cell("a", 1.0, 0.2), cell("a", 1.0), "cannot tell (×0.905 to ×1.12)"),
        (cell("a", 1.0, 0.4), cell("a", 1.2, 0.4), "cannot tell (×0.833 to ×1.75)"),
        (cell("a", 1.0, 2.5), cell("a", 1.0), "cannot tell (×0.442 to any)"),  # asv's interval may begin at 0
        (cell("a", 1.0), cell("a", 1.0, 2.5), "cannot tell (×0 to ×2.26)"),
        (cell("a", resident_ci99_a_s=None), cell("a"), "cannot tell (before: no 99 % interval)"),
        (cell("a"), cell("a", resident_ci99_b_s=math.inf), "cannot tell (after: no 99 % interval)"),
        (cell("a"), without("a", "failed", "it crashed"), "cannot tell (after: failed: it crashed)"),
        (without("a", "refused", "x"), without("a", "refused", "x"), "cannot tell (before and after: refused: x)"),
        (without("a", "skipped", "no GPU"), cell("a"), "cannot tell (before: skipped: no GPU)"),
        (None, cell("a"), "cannot tell (before: not measured)"),
        (cell("a"), None, "cannot tell (after: not measured)"),
        (cell("a"), without("a", "ok", None), "cannot tell (after: no resident time)"),
    ],
)
def test_the_verdict(before, after, verdict):
    (table,) = tables.change([before] if before else [], [after] if after else [])
    assert "{} ({})".format(*texts(table)[f"a, {LARGE:,}"][-2:]) == verdict
    assert f"{table.records[0]['verdict']} ({table.records[0]['why']})" == verdict


def test_a_change_has_both_figures_and_their_ratio():
    before = [cell("a", 1.0), without("b", "skipped", "no GPU")]
    timed = {"device_s": 0.5, "transfer_s": 3.0, "commit": "f" * 20}
    found = tables.change(before, [cell("a", 2.0, **timed), without("b", "skipped", "no GPU", commit="f" * 20)])
    assert [table.title for table in found] == [
        f"multiply, {figure}: box, 01234567 → box, ffffffff" for figure in ("resident", "device", "transfer")
    ]
    assert [texts(table)[f"a, {LARGE:,}"][:3] for table in found] == [
        ["1.00 s", "2.00 s", "×2.00"],
        ["–", "500 ms", ""],
        ["–", "3.00 s", ""],
    ]
    assert all(len(table.rows) == 1 for table in found)  # nothing ran of b, on either side
    record = found[0].records[0]
    assert (record["before_value_s"], record["after_value_s"], record["ratio_x"]) == (1.0, 2.0, 2.0)
    assert (record["before_commit"], record["after_commit"]) == ("0123456789abcdef0123", "f" * 20)


def test_what_else_differs_is_named():
    before = [cell("a"), cell("only_before", versions="torch 1.0")]
    after = [cell("a", versions="Python 3.12.3, numpy 2.5.0, cupy 14", driver="590.2", math="TF32")]
    found = [line for line in notes(tables.change(before, after)).splitlines() if line.startswith("Not the same")]
    assert found == [
        "Not the same: driver: 580.1 → 590.2",
        "Not the same: numpy: 2.4.6 → 2.5.0",
        "Not the same: math of a in multiply: IEEE → TF32",
        "Not the same: cupy: none → 14",
    ]
    assert "Not the same" not in notes(tables.change(before, before))


# Formats

NASTY = "<b>|*x*|_y_ & 'z'\nand on"


@pytest.fixture
def every():
    cells = [cell("a", device_s=0.5, first_result_s=1.0), cell("b", 3.0, size=SMALL), cell("a_tuned", stale=True)]
    cells.append(without("c", "failed", NASTY))
    found = [*tables.measured(cells), *tables.abilities()]
    try:
        return found + tables.change(cells, [cell("a", 2.0), without("c", "failed", NASTY)])
    except ModuleNotFoundError:  # without asv
        return found


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 300])
def test_a_table_is_no_wider_than_its_terminal(every, width):
    text = drawn(every, width)
    assert all(len(line) <= width for line in text.splitlines())
    if width >= 60:
        assert "a_tuned" in text
        assert not re.search(r"\S…", text)  # nothing is cut off


def test_columns_that_do_not_fit_move_below_beside_their_names(every):
    frameworks = next(table for table in every if table.head[0] == "framework")
    blocks = list(tables._blocks(frameworks, 80))
    assert len(blocks) > 1
    assert all(block[0] == 0 and len(block) > 1 for block in blocks)
    assert [i for block in blocks for i in block[1:]] == list(range(1, len(frameworks.head)))
    assert list(tables._blocks(frameworks, 1000)) == [list(range(len(frameworks.head)))]


def test_markdown_has_a_cell_for_each_column(every):
    text = tables.as_markdown(every)
    assert text.count("\n### ") + 1 == len(every)
    for block in text.split("\n\n"):
        if block.startswith("|"):
            bare = block.replace("\\|", "")
            assert len({line.count("|") for line in bare.splitlines()}) == 1
    assert "**\\*1.00 s**" in text
    assert "[multiply pycuda\\_elementwise](recipes/multiply/with_pycuda_elementwise.py)" in text
    assert "\\<b\\>\\|\\*x\\*\\|\\_y\\_ & 'z' and on" in text


class Reader(html.parser.HTMLParser):
    """The texts of every table's rows; fails where an end tag does not fit."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tables, self.links, self.scopes = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        assert tag not in ("script", "link", "img", "b")
        assert "src" not in attributes
        if tag not in ("meta", "html", "body"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
            assert (tag == "th") == (attributes.get("scope") in ("col", "row"))
        elif tag == "a":
            self.links.append(attributes["href"])

    def handle_endtag(self, tag):
        if tag not in ("html", "body"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data


def test_html_is_whole_and_needs_nothing_else(every):
    text = tables.as_html(every)
    read = Reader(text)
    assert not read.open
    assert text.count("<caption>") == text.count("<thead>") == len(read.tables) == len(every)
    for rows, table in zip(read.tables, every, strict=True):
        assert rows[0] == list(table.head)
        assert [len(row) for row in rows] == [len(table.head)] * (len(table.rows) + 1)
        assert all(
            entry.text in word
            for row, line in zip(table.rows, rows[1:], strict=True)
            for entry, word in zip(row, line, strict=True)
        )
    assert "url(" not in text and "@import" not in text
    assert "prefers-color-scheme" in text or "color-scheme: light dark" in text
    assert all(
        link.startswith("https://") or (catalogue.FOLDER / link.removeprefix("recipes/")).exists()
        for link in read.links
    )


def test_csv_and_json_have_every_digit_and_the_same_records(every):
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(every))))
    parsed = json.loads(tables.as_json(every), parse_constant=pytest.fail)
    assert [table["title"] for table in parsed] == [table.title for table in every]
    records = [record for table in parsed for record in table["rows"]]
    assert len(rows) == len(records) > 100
    for row, record in zip(rows, records, strict=True):
        for key, value in record.items():
            written = " ".join(value) if isinstance(value, list) else "" if value is None else str(value)
            assert row[key] == written
    (third,) = [r for r in rows if r["table"] == "measured" and r["figure"] == "resident" and r["size"] == str(SMALL)]
    assert (float(third["value_s"]), float(third["q1_s"]), third["samples"]) == (3.0, 2.99, "10")
    assert {row["table"] for row in rows} >= {"measured", "frameworks", "engines"}


def test_an_infinite_interval_is_none_in_the_records():
    (table, _) = tables.measured([cell("a", resident_ci99_a_s=-math.inf, resident_ci99_b_s=math.inf)])
    assert table.records[0]["ci99_a_s"] is table.records[0]["ci99_b_s"] is None
