"""The tables that compare, and what every format makes of them."""

import csv
import html.parser
import io
import json
import math
import re
from dataclasses import replace

import making
import pytest
from making import BOX, timing
from rich.console import Console

from gpu_cookbook import catalogue
from gpu_cookbook.render import beside, html_page, tables, text
from gpu_cookbook.render.abilities import abilities
from gpu_cookbook.render.change import change
from gpu_cookbook.results import FirstResult, Metric, Run, Status, Timing, completed, of_lane
from gpu_cookbook.results import record as record_of
from gpu_cookbook.words import csv_cell

SMALL, LARGE = catalogue.workload_module("multiply").SIZES[::2]
STALE = replace(BOX, stale=True)
LATER = replace(BOX, commit="f" * 20)
DEVICE, TRANSFER = Metric.DEVICE, Metric.TRANSFER


def result(technique, seconds=1.0, half=0.01, size=LARGE, origin=BOX, **changes):
    """One of a stored run."""
    return making.result(technique, size, seconds, half, origin=origin, **changes)


def without(technique, status, reason, size=LARGE, origin=BOX, **changes):
    return making.without(technique, size, status, reason, origin=origin, **changes)


def resident(seconds, half=0.01, **changes):
    """What replaces the times of a result."""
    return {Metric.RESIDENT: timing(seconds, half, **changes)}


def texts(table):
    """{first column: the others' texts}"""
    return {row[0].text: [entry.text for entry in row[1:]] for row in table.rows}


def notes(found):
    return "\n".join(note.text for table in found for note in table.notes)


def drawn(found, width):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(text.terminal(found, width))
    return console.export_text()


# 1. Measured


def test_the_best_of_each_lane_is_marked_and_lanes_are_not_ranked_together():
    (table, _) = tables.measured([result("a", 1.0), result("b", 2.0), result("a_tuned", 0.5), result("b_tuned", 3.0)])
    assert table.head == ("technique", "lane", "on", f"{LARGE:,}")
    assert texts(table) == {
        "a": ["idiomatic", "H200", "*1.00 s"],
        "b": ["idiomatic", "H200", "2.00 s"],
        "a_tuned": ["tuned", "H200", "*500 ms"],
        "b_tuned": ["tuned", "H200", "3.00 s"],
    }
    assert list(texts(table)) == ["a", "b", "a_tuned", "b_tuned"]


def test_of_one_lane_only_its_results_are_ranked_and_numpy_stays():
    results = [result("numpy", 5.0), result("a", 1.0), result("a_tuned", 0.5), result("b_tuned", 3.0)]
    (table, bandwidth) = tables.measured(results, "tuned")
    assert texts(table) == {
        "numpy": ["idiomatic", "H200", "5.00 s"],
        "a_tuned": ["tuned", "H200", "*500 ms"],
        "b_tuned": ["tuned", "H200", "3.00 s"],
    }
    assert [record["rank"] for record in table.records] == [None, "best", None]
    assert texts(bandwidth)["numpy"][-1][0] != "*"
    (table, _) = tables.measured(results, "idiomatic")
    assert texts(table) == {"numpy": ["H200", "5.00 s"], "a": ["H200", "*1.00 s"]}
    assert [each.technique for each in of_lane(results, "idiomatic")] == ["numpy", "a"]
    assert of_lane(results, None) == results


def test_the_tables_of_one_workload_say_of_other_machines_what_all_results_say():
    """Measured on three machines of one kind, whose other workload differs more."""
    both = {Run("2026-11-01", "a"): 1.0, Run("2026-11-02", "b"): 1.1, Run("2026-11-03", "c"): 1.1}
    far = {Run("2026-11-01", "a"): 1.0, Run("2026-11-02", "b"): 3.0, Run("2026-11-03", "c"): 2.0}
    mine = result("a", runs={Metric.RESIDENT: both})
    other = result("a", workload="matmul", size=4_096, runs={Metric.RESIDENT: far})
    overview, *every = tables.measured([mine, other])
    alone = tables.measured([mine], known=[mine, other])
    assert [table.rows for table in alone] == [table.rows for table in every if table.workload == "multiply"]
    said = [[note.text for note in found[-1].notes if "of this kind" in note.text] for found in (alone, every)]
    assert said[0] == said[1] != []
    assert tables.measured([], known=[mine]) == []
    (table,) = tables.overviews([other, mine])
    assert (table.head, table.rows) == (overview.head, overview.rows) and "Measured:" in notes([table])


def test_workloads_without_kernels_are_in_a_table_of_their_own():
    mine, other = result("a"), result("b", workload="pca", size=(10_000, 100))
    kernels, none = tables.overviews([other, mine])
    assert [table.workloads for table in (kernels, none)] == [("multiply",), ("pca",)]
    assert "of workloads with kernels" in kernels.title and "of workloads without kernels" in none.title


def marks_of_measured(results):
    """{(metric, size, technique, mark)} of the stored tables."""
    return {
        (table.metric, size, row[0].text, entry.mark)
        for table in tables.measured(results)
        for row in table.rows
        for size, entry in zip(table.head[1:], row[1:], strict=True)
        if entry.mark
    }


def marks_of_compared(table):
    """The same of a comparison."""
    found = set()
    for name, *row in table.rows:
        if name.mark == "group":
            size = name.text.partition(", ")[0]
        heads = [dict(tables.COMPARED).get(head) for head in table.head[1:]]
        found |= {(metric, size, name.text, e.mark) for metric, e in zip(heads, row, strict=True) if e.mark}
    return found


def test_a_comparison_marks_the_same_results_as_the_stored_tables():
    def timed(*arguments, timings=(), first=2.0, **changes):
        every = dict.fromkeys((Metric.PREPARED, DEVICE, TRANSFER, Metric.PINNED), timing(1.0, 0.1)) | dict(timings)
        return result(*arguments, first=FirstResult(first), peak_memory=2**30, error=1e-7, timings=every, **changes)

    results = [timed("numpy", 5.0), timed("b", 1.03, 0.02)]
    results.append(timed("a", 1.0, 0.02, timings={TRANSFER: Timing(1.3, 1.2, 1.4), Metric.PREPARED: timing(0.5)}))
    results.append(timed("a_tuned", 0.5, first=1.0))
    results.append(timed("b_tuned", 0.6, timings={DEVICE: Timing(0.1, 0.05, 0.2)}))
    results += [timed("numpy", 1.0, size=SMALL), timed("a_tuned", 2.0, size=SMALL)]
    assert [table.metric for table in tables.measured(results)] == list(Metric)
    (table,) = tables.compared(results)
    found = marks_of_compared(table)
    assert found == marks_of_measured(results)
    large = {(metric, name, mark) for metric, size, name, mark in found if size == f"{LARGE:,}"}
    assert {(name, mark) for metric, name, mark in large if metric == Metric.RESIDENT} == {
        *(("a", "tie"), ("b", "tie"), ("a_tuned", "best")),
    }
    assert {(name, mark) for metric, name, mark in large if metric == Metric.PREPARED} == {
        *(("a", "best"), ("a_tuned", "tie"), ("b_tuned", "tie")),
    }
    assert not any(name == "numpy" for _, size, name, _ in found if size == f"{SMALL:,}")  # alone in its lane


def test_the_overview_has_the_lanes_where_there_are_two():
    results = [result(t, workload=w) for t in ("numpy", "a_tuned") for w in ("increment", "multiply")]
    overview = tables.measured(results)[0]
    assert overview.head[:3] == ("technique", "lane", "on") and overview.align == "lllrr"
    assert [[entry.text for entry in row[:2]] for row in overview.rows] == [
        ["numpy", "idiomatic"],
        ["a_tuned", "tuned"],
    ]
    assert tables.measured(results[:2])[0].head[:2] == ("technique", "on")


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_the_lane_stands_beside_every_value_on_every_terminal(width):
    results = [result(t, s, size=n) for t, s in (("a", 1.0), ("a_tuned", 0.5)) for n in (SMALL, 10**6, LARGE)]
    table = tables.measured(results)[0]
    blocks = list(text.blocks(table, width))
    names = 3 if width >= 60 else 2  # the device too, if there is room for it
    assert all(block[:names] == list(range(names)) and len(block) > names for block in blocks)
    assert [i for block in blocks for i in block[names:]] == list(range(names, len(table.head)))
    assert len(blocks) > (width < 80)
    assert all(len(line) <= width for line in drawn([table], width).splitlines())


@pytest.mark.parametrize("width", [*range(40, 50), 60, 80])
def test_a_technique_is_whole_beside_every_value_in_a_narrow_terminal(width):
    names = ["numpy", "dask_cuda_random_state", "pyopencl_transfer_tuned"]
    results = [result(name, 1e-2 * i, size=SMALL) for i, name in enumerate(names, 1)]
    results += [result(name, 1e-3, size=1_000, workload="matmul") for name in names]
    results += [result(name, 1e-3, size=SMALL, workload="random_subset_mean") for name in names]
    found = [*tables.measured(results), tables.checked(results)]
    lines = [line.split() for line in drawn(found, width).partition("All times")[0].splitlines()]
    assert max(map(len, drawn(found, width).splitlines())) <= width
    beside = [line[0] for line in lines if {"ms", "µs", "correct"} & {*line}]
    assert len(beside) >= 12 and {*beside} == {*names}


@pytest.mark.parametrize(
    ("a", "b", "tied"),
    [
        (result("a", 1.0, 0.01), result("b", 1.02, 0.08), True),
        (result("a", 1.0, 0.02), result("b", 1.05, 0.02), False),
        # The intervals of the medians do not overlap.
        (result("a", 1.0, 0.02), result("b", timings=resident(1.03, 0.02, ci99=(1.03, 1.04))), True),
        # Nor do the samples here: there are only three of them, say.
        (result("a", 1.0, 0.02), result("b", timings=resident(1.9, 0.02, ci99=(0.5, 1.91))), False),
        # No spread is stored.
        (result("a", 1.0, 0.02), result("b", timings=resident(1.0001, q1=None)), False),
        (result("a", 1.0, 0.02), result("b", timings=resident(1.0, q1=None)), True),
    ],
)
def test_within_the_spread_it_is_a_tie(a, b, tied):
    (table, bandwidth) = tables.measured([b, a])
    assert [row[-1].text[0] for row in table.rows] == (["=", "="] if tied else ["*", "1"])
    assert [record["rank"] for record in table.records] == (["tie", "tie"] if tied else [None, "best"])
    assert [row[-1].text[0] in "=*" for row in bandwidth.rows] == [True, tied]  # it comes from the same times


def test_a_median_alone_is_shown_without_a_spread():
    (table, _) = tables.measured([result("a", timings={Metric.RESIDENT: Timing(1.0)})])
    assert texts(table)["a"][-1] == "*1.00 s"
    assert table.records[0]["q1_s"] is None


def test_noise_and_stale_recipes_are_marked():
    results = [result("a", 1.0, 0.2), result("b", 2.0, origin=STALE), result("c", 3.0, 0.5, origin=STALE)]
    (table, _) = tables.measured(results)
    assert [row[-1].text for row in table.rows] == ["~1.00 s", "†2.00 s", "†~3.00 s"]
    assert "† is stale: the code of the recipe, its workload or its kernel" in notes([table, _])


def test_what_is_stale_is_ranked_only_where_all_is():
    old = [result("a", 1.0, origin=STALE), result("b", 2.0, origin=STALE)]
    (table, _) = tables.measured(old)
    assert [row[-1].text for row in table.rows] == ["*†1.00 s", "†2.00 s"]
    (table, _) = tables.measured([*old, result("c", 3.0)])
    assert [row[-1].text for row in table.rows] == ["†1.00 s", "†2.00 s", "3.00 s"]


def test_a_stale_time_gives_a_speedup_only_over_the_numpy_of_its_commit():
    def speedups(origin, of_numpy):
        return completed([result("numpy", 4.0, origin=of_numpy), result("a", 2.0, origin=origin)])[1].speedups

    assert speedups(BOX, LATER) == speedups(STALE, STALE) == speedups(STALE, BOX) == {Metric.RESIDENT: 2.0}
    assert speedups(replace(STALE, commit="e" * 20), BOX) == speedups(BOX, replace(STALE, commit="e" * 20)) == {}


def test_another_gpu_is_put_in_proportion():
    def at(machine, seconds):
        origin = replace(BOX, machine=machine)
        return [
            result("a", seconds, copy_bandwidth=1000 / seconds, origin=origin),
            result("b", 3 * seconds**2, copy_bandwidth=1000 / seconds, origin=origin),
            result("c", 100.0, origin=replace(origin, stale=machine == "fast")),
            result("d", 100.0 * seconds, doubts={Metric.RESIDENT: "others kept it busy"}, origin=origin),
            result("numpy", 1000.0, driver=None, origin=origin),
        ]

    table = beside.beside(at("fast", 1.0), at("slow", 2.0))
    assert table.title == "Times on slow relative to fast"
    assert [[entry.text for entry in row] for row in table.rows] == [
        ["a copy within the memory", "", "×2.00", "", ""],
        [f"multiply, {LARGE:,}", "3", "–", "×3.00 (2.00 to 4.00)", "–"],
    ]
    assert beside.beside(at("fast", 1.0), []) is None


def test_what_did_not_run_is_kept_apart_and_has_its_reason_once():
    results = [result("a"), result("a", 0.1, size=SMALL), result("a", None, size=10**6)]
    results += [without(name, "skipped", "no GPU", size) for name in ("s", "t") for size in (SMALL, LARGE)]
    results += [result("b", size=SMALL), without("b", "failed", "it crashed"), without("c", "refused", "too fast")]
    results += [result("d"), without("d", "skipped", "too small", SMALL), without("e", "failed", None)]
    found = tables.measured(results)
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
        "failed: e: no reason was stored",
        "refused: c: too fast",
        f"skipped: d: at {SMALL:,}: too small",
        "skipped: s, t: no GPU",
    ]
    assert [note.mark for note in found[-1].notes[:5]] == ["bad"] * 3 + ["note"] * 2
    # A program gets them too, once.
    apart = [r["technique"] for table in found for r in table.records if r["status"] != "ok"]
    assert sorted(apart) == ["b", "c", "d", "e", "s", "s", "t", "t"]


@pytest.mark.parametrize("status", ["failed", "refused"])
def test_a_wrong_result_has_no_metric_in_csv_and_json(status):
    known = {"first": FirstResult(1.0), "peak_memory": 5, "error": 0.0, "doubts": {Metric.RESIDENT: "other programs"}}
    right = result("a", **known)
    kept = record_of(replace(right, status=Status(status), reason="too fast"))
    lost = set(record_of(right)) - set(kept)
    assert {"resident_s", "first_result_s", "peak_device_memory_bytes", "error_relative", "resident_doubt"} <= lost
    assert all(name in kept for name in ("workload", "technique", "device", "reason"))


def test_where_nothing_ran_the_reasons_are_still_there():
    found = tables.measured([without("a", "skipped", "no GPU")])
    assert [table.rows for table in found] == [[]]
    assert "skipped: a: no GPU" in drawn(found, 80)
    assert "skipped: a: no GPU" in text.as_markdown(found)
    assert "skipped: a: no GPU" in html_page.as_html(found) and "<table>" not in html_page.as_html(found)
    assert tables.measured([]) == []


def test_every_metric_has_its_table_and_its_unit():
    timings = {Metric.PREPARED: timing(0.75)} | dict.fromkeys((DEVICE, TRANSFER, Metric.PINNED), timing(0.5))
    parts = {"timings": timings, "first": FirstResult(1.5), "peak_memory": 3 * 2**29, "error": 8.4e-8}
    found = tables.measured([result("a", **parts, cache_bytes=6 * LARGE - 1)])
    assert [(table.workload, table.metric) for table in found] == [("multiply", metric) for metric in Metric]
    assert all(f"multiply, {table.metric}: {tables.METRICS[table.metric]}. " in table.title for table in found)
    assert [texts(table)["a"][-1] for table in found] == [
        *("*1.00 s", "*750 ms", "*500 ms", "*500 ms", "*500 ms", "*1.50 s", "*1.50 GiB"),
        "*6.44 (0 %)",  # 12 bytes an element, in the device's time
        "8.4e-08",  # not ranked
    ]
    assert [[key for key in table.records[0] if key.startswith("value")] for table in found] == [
        *[["value_s"]] * 6,
        *(["value_bytes"], ["value_gb_per_s"], ["value_relative"]),
    ]
    assert found[7].records[0]["copy_bandwidth_percent"] == pytest.approx(100 * 12 * LARGE / 0.5 / 4e12)
    fits = tables.measured([result("a", **parts, cache_bytes=6 * LARGE)])
    assert texts(fits[7])["a"][-1] == "*6.44"  # into the cache: the share says nothing


def test_what_moves_no_memory_has_no_bandwidth():
    assert len(tables.measured([result("a", workload="random_subset_mean", size=4000)])) == 1


def test_machines_and_environments_of_asv_do_not_share_a_table():
    other = replace(BOX, environment="other")
    found = tables.measured([result("a"), result("b", 2.0, origin=LATER), result("a", 3.0, origin=other)])
    assert [texts(table)["a"][-1] for table in found[::2]] == ["*1.00 s", "*3.00 s"]
    assert [table.title.rpartition(". ")[2] for table in found[::2]] == [
        "box, existing, 01234567 and ffffffff, 2026-11-21",
        "box, other, 01234567, 2026-11-21",
    ]
    (alone, _) = tables.measured([result("a")])
    assert alone.title.endswith(". box, 01234567, 2026-11-21")


def test_environments_share_neither_a_table_nor_a_rank_and_each_has_its_numpy():
    results = [result("numpy", 4.0), result("a", 1.0)]
    results += [result("numpy", 5.0, environment="cudf"), result("b", 2.0, environment="cudf")]
    main, _, other, _ = found = tables.measured(results)
    assert {name: words[-1] for name, words in texts(main).items()} == {"a": "*1.00 s", "numpy": "4.00 s"}
    assert {name: words[-1] for name, words in texts(other).items()} == {"b": "*2.00 s", "numpy": "5.00 s"}
    assert main.title.endswith(". box, 01234567, 2026-11-21")
    assert other.title.endswith(". box, environment cudf, 01234567, 2026-11-21")
    assert [line for line in notes(found).splitlines() if "environment cudf; asv environment existing" in line]
    assert [record["environment"] for record in (*main.records, *other.records)] == ["main", "main", "cudf", "cudf"]
    (table,) = tables.compared(results)
    rows = {row[0].text: row[2].text for row in table.rows}
    assert list(rows) == [f"{LARGE:,}", "a", "numpy", f"{LARGE:,}, environment cudf", "b"]
    assert (rows["a"], rows["b"]) == ("*1.00 s", "*2.00 s")
    assert "CUDA 13.0; environments cudf and main, with Python" in notes([table])


def test_how_it_was_measured_is_named():
    results = [result("a", math="TF32")]
    results.append(
        result(
            "b",
            device="AMD EPYC, 2 cores",
            no_device_time="no clock",
            clock=None,
            copy_bandwidth=40.0,
            versions="Python 3.12.3, dask 1.0",
        )
    )
    found = notes(tables.measured(results)).splitlines()
    assert found[:2] == ["math: a: TF32", "no device time: b: no clock"]
    assert found[-1] == (
        "Measured: machine box; asv environment existing; commit 01234567; date 2026-11-21; device AMD EPYC, 2 cores "
        "and NVIDIA H200; driver 580.1; cuda 13.0; clock 1980 MHz; copying 4,000 GB/s on NVIDIA H200 and 40.0 GB/s on "
        "AMD EPYC, 2 cores; Python 3.12.3; dask 1.0; numpy 2.4.6."
    )


def test_a_copy_is_measured_beside_each_result_and_so_has_a_range():
    results = [result("a", copy_bandwidth=4190.4), result("b", copy_bandwidth=None), result("c", copy_bandwidth=4251.0)]
    assert "; copying 4,190 to 4,250 GB/s on NVIDIA H200; " in notes(tables.measured(results))
    assert "Measured on NVIDIA H200 (copies at 4,190 to 4,250 GB/s)" in notes(tables.compared(results))
    assert "Measured on NVIDIA H200; " in notes(tables.compared(results[1:2]))


# What a site needs to know of a table


def test_a_table_says_what_it_is_of_and_whose_its_rows_are():
    results = [result(t, workload=w) for t in ("numpy", "cupy") for w in ("increment", "multiply")]
    overview, *others = tables.measured(results)
    assert (overview.workload, overview.metric, overview.workloads) == (None, "resident", ("increment", "multiply"))
    assert [entry.recipe for entry in overview.rows[1]] == [None, None, ("increment", "cupy"), ("multiply", "cupy")]
    assert [(table.workload, table.metric, table.workloads) for table in others] == [
        (workload, metric, ()) for workload in ("increment", "multiply") for metric in ("resident", "bandwidth")
    ]
    for table in (*others, *tables.compared(results), *change(results, results), tables.checked(results)):
        techniques = [row for row in table.rows if row[0].mark != "group"]
        assert {tables.recipe_of(row)[1] for row in techniques} == {"numpy", "cupy"}
        assert all(table.workload in (None, tables.recipe_of(row)[0]) for row in techniques)


def test_a_site_links_recipes_and_marks_rows_without_reading_html():
    site = html_page.Site(
        address=lambda recipe: None if recipe[1] == "gone" else f"{recipe[0]}.html?t={recipe[1]}&x#recipes",
        about=lambda recipe: {"framework": f"F & {recipe[1]}", "lane": "idiomatic"},
    )
    page = html_page.html_of(tables.measured([result("cupy"), result("gone", 2.0)])[0], site)
    assert '<a href="multiply.html?t=cupy&amp;x#recipes">cupy</a>' in page
    assert '<tr data-framework="F &amp; cupy" data-lane="idiomatic"><th scope="row"><a' in page
    assert '<tr data-framework="F &amp; gone" data-lane="idiomatic"><th scope="row">gone</th>' in page
    assert not Reader(html_page.html_of(tables.measured([result("cupy")])[0])).links
    frameworks = html_page.html_of(abilities()[0], site)
    assert 'href="multiply.html?t=pycuda_elementwise&amp;x#recipes"' in frameworks and "recipes/" not in frameworks


# Checks


def test_each_recipe_that_was_checked_has_a_line():
    results = [result("a", size=size) for size in (1, 2)]
    results += [result("b", size=1), without("b", "failed", "[0] is 1.0", 2), without("b", "failed", "[1] is 1.0", 3)]
    results += [without("c", "skipped", "no GPU", size) for size in (1, 2)]
    results += [result("a", size=3, workload="increment", environment="cudf")]
    table = tables.checked(results)
    assert table.title == "Checked against NumPy, environments cudf and main"
    assert [tuple(entry.text for entry in row) for row in table.rows] == [
        ("multiply", "", "", ""),
        ("a", "H200", "2/2", "correct"),
        ("b", "H200", "1/3", "failed at 2: [0] is 1.0"),
        ("c", "H200", "", "skipped: no GPU"),
        ("increment", "", "", ""),
        ("a", "H200", "1/1", "correct"),
    ]
    assert [row[-1].mark for row in table.rows] == ["", "right", "bad", "note", "", "right"]
    assert tables.checked(results[:2]).title == "Checked against NumPy"
    for width in (60, 80, 160):
        lines = drawn([table], width).splitlines()
        assert all(len(line) <= width for line in lines)
        assert any(line.split()[:1] == ["b"] and "1/3" in line and "failed" in line for line in lines)


# 2 and 3. What frameworks and engines can do


def test_every_tick_links_recipes_that_exist_and_every_other_answer_its_source():
    found = abilities()
    assert [table.title for table in found] == [
        "Frameworks: kernels",
        "Frameworks: arrays",
        "Frameworks: where they run",
        "Frameworks: from installing to launching",
        "Frameworks: the plainest recipe",
        "Parallel engines",
    ]
    for table in found[:4] + found[5:]:
        for entry in (entry for row in table.rows for entry in row[1:]):
            if entry.text.startswith("pip install"):  # a recipe's own line
                continue
            assert entry.links
            assert (entry.mark == "recipes") == entry.text.startswith("✓") == isinstance(entry.links[0][1], tuple)
            for label, target in entry.links:
                if isinstance(target, tuple):
                    (recipe,) = catalogue.choose(*([word] for word in target))
                    assert label == f"{recipe.workload} {recipe.technique}"
                    assert recipe.path.samefile(catalogue.FOLDER.parent / text.recipe_file(target))
                else:
                    assert target.startswith("https://")
    frameworks = {row[0].links[0][0]: [entry.text for entry in row[1:]] for row in found[0].rows}
    assert frameworks["PyCUDA"][0] == "✓ SourceModule"
    assert frameworks["PyCUDA"][1].startswith("✗ CUDA only")
    assert frameworks["CuPy"][0] == "✓ RawKernel"
    assert "scikit-cuda: last release" in notes(found)


# 4. Change

ENDLESS = resident(1.0, ci99=(-math.inf, math.inf))


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (result("a", 1.0), result("a", 0.8), "faster (×0.791 to ×0.809)"),
        (result("a", 1.0), result("a", 1.2), "slower (×1.19 to ×1.21)"),
        (result("a", 1.0), result("a", 1.05), "same (×1.04 to ×1.06)"),
        (result("a", 1.0), result("a", 0.95), "same (×0.940 to ×0.960)"),
        (result("a", 1.0), result("a", 1.094), "cannot tell (×1.08 to ×1.10)"),  # it may be above a factor of 1.1
        (result("a", 1.0, 0.2), result("a", 1.0), "cannot tell (×0.905 to ×1.12)"),
        (result("a", 1.0, 0.4), result("a", 1.2, 0.4), "cannot tell (×0.833 to ×1.75)"),
        (result("a", 1.0, 2.5), result("a", 1.0), "cannot tell (×0.442 to any)"),  # asv's interval may begin at 0
        (result("a", 1.0), result("a", 1.0, 2.5), "cannot tell (×0 to ×2.26)"),
        (result("a", timings=resident(1.0, ci99=None)), result("a"), "cannot tell (before: no 99 % interval)"),
        (result("a"), result("a", timings=ENDLESS), "cannot tell (after: no 99 % interval)"),
        (result("a"), without("a", "failed", "it crashed"), "cannot tell (after: failed: it crashed)"),
        (without("a", "refused", "x"), without("a", "refused", "x"), "cannot tell (before and after: refused: x)"),
        (without("a", "skipped", "no GPU"), result("a"), "cannot tell (before: skipped: no GPU)"),
        (None, result("a"), "cannot tell (before: not measured)"),
        (result("a"), None, "cannot tell (after: not measured)"),
        (result("a"), result("a", None), "cannot tell (after: no resident time)"),
    ],
)
def test_the_verdict(before, after, verdict):
    (table,) = change([before] if before else [], [after] if after else [])
    assert "{} ({})".format(*texts(table)[f"a, {LARGE:,}"][-2:]) == verdict
    assert f"{table.records[0]['verdict']} ({table.records[0]['why']})" == verdict


def test_the_verdict_knows_every_run_of_both_sides():
    runs = {Metric.RESIDENT: {Run(f"2026-11-2{k}T00:00:00Z"): value for k, value in enumerate((0.75, 1.0))}}
    before = replace(result("a", 1.0), runs=runs)
    (table,) = change([before], [result("a", 0.8)])
    assert texts(table)[f"a, {LARGE:,}"][-2:] == ["cannot tell", "×0.791 to ×1.07"]
    (table,) = change([before], [result("b", 1.0), result("a", 0.5)])
    assert [(row["technique"], row["verdict"]) for row in table.records] == [("a", "faster"), ("b", "cannot tell")]


def test_a_change_has_both_values_and_their_ratio():
    before = [result("a", 1.0), without("b", "skipped", "no GPU")]
    timings = {Metric.PREPARED: timing(0.25), DEVICE: timing(0.5), TRANSFER: timing(3.0)}
    after = [result("a", 2.0, timings=timings, origin=LATER), without("b", "skipped", "no GPU", origin=LATER)]
    found = change(before, after)
    assert [(table.workload, table.metric) for table in found] == [
        ("multiply", metric) for metric in ("resident", "prepared", "device", "transfer")
    ]
    names = "box, 01234567, 2026-11-21 → box, ffffffff, 2026-11-21"
    assert [table.title for table in found] == [f"multiply, {table.metric}: {names}" for table in found]
    assert [texts(table)[f"a, {LARGE:,}"][:3] for table in found] == [
        ["1.00 s", "2.00 s", "×2.00"],
        ["–", "250 ms", ""],
        ["–", "500 ms", ""],
        ["–", "3.00 s", ""],
    ]
    assert all(len(table.rows) == 1 for table in found)  # nothing ran of b, on either side
    record = found[0].records[0]
    assert (record["before_value_s"], record["after_value_s"], record["ratio_x"]) == (1.0, 2.0, 2.0)
    assert (record["before_commit"], record["after_commit"]) == ("0123456789abcdef0123", "f" * 20)
    assert (record["before_environment"], record["before_asv_environment"]) == ("main", "existing")


def test_environments_are_compared_with_themselves_or_two_with_each_other():
    before = [result("numpy"), result("numpy", 4.0, environment="other")]
    after = [result("numpy", 2.0, origin=LATER), result("numpy", 2.0, environment="other", origin=LATER)]
    main, other = change(before, after)
    assert [table.records[0]["ratio_x"] for table in (main, other)] == [2.0, 0.5]
    assert "environment" not in main.title and "environment other" in other.title
    (table,) = change(before[:1], before[1:])
    assert table.records[0]["ratio_x"] == 4.0


def test_environments_of_one_side_only_are_named():
    def side(*environments, **origin):
        return [result("numpy", environment=name, **origin) for name in environments]

    before = side("absent", "both", "main")
    found = change(before, side("both", "main", "new", origin=LATER))
    records = [table.records[0] for table in found]
    names = [(each["before_environment"], each["after_environment"]) for each in records]
    assert names == [("main", "main"), ("both", "both")]
    assert [note.text for note in found[-1].notes][-2:] == [
        "Measured before only: environment absent.",
        "Measured after only: environment new.",
    ]
    alone = change(before, [])  # of a technique, for example, that one side lacks
    assert [table.records[0]["before_environment"] for table in alone] == ["main", "absent", "both"]
    assert all(table.title.endswith("→ nothing") for table in alone)
    assert "After: nothing was measured." in notes(alone)


def test_what_else_differs_is_named():
    before = [result("a"), result("only_before", versions="torch 1.0")]
    after = [result("a", versions="Python 3.12.3, numpy 2.5.0, cupy 14", driver="590.2", math="TF32")]
    found = [line for line in notes(change(before, after)).splitlines() if line.startswith("Also different")]
    assert found == [
        "Also different: driver: 580.1 → 590.2",
        "Also different: numpy: 2.4.6 → 2.5.0",
        "Also different: math of a in multiply: IEEE → TF32",
        "Also different: cupy: none → 14",
    ]
    assert "Also different" not in notes(change(before, before))


# Formats

NASTY = "<b>|*x*|_y_ & 'z'\nand on"


@pytest.fixture
def every():
    results = [result("a", timings={DEVICE: timing(0.5)}, first=FirstResult(1.0)), result("b", 3.0, size=SMALL)]
    results += [result("a_tuned", origin=STALE), without("c", "failed", NASTY)]
    found = [*tables.measured(results), *abilities()]
    try:
        return found + change(results, [result("a", 2.0), without("c", "failed", NASTY)])
    except ModuleNotFoundError:  # without asv
        return found


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 300])
def test_a_table_is_no_wider_than_its_terminal(every, width):
    lines = drawn(every, width)
    assert all(len(line) <= width for line in lines.splitlines())
    if width >= 60:
        assert "a_tuned" in lines
        assert not re.search(r"\S…", lines)  # nothing is cut off


def test_columns_that_do_not_fit_move_below_beside_their_names(every):
    frameworks = next(table for table in every if table.head[0] == "framework")
    blocks = list(text.blocks(frameworks, 80))
    assert len(blocks) > 1
    assert all(block[0] == 0 and len(block) > 1 for block in blocks)
    assert [i for block in blocks for i in block[1:]] == list(range(1, len(frameworks.head)))
    assert list(text.blocks(frameworks, 1000)) == [list(range(len(frameworks.head)))]


@pytest.mark.parametrize("width", [30, 40, 60])
def test_what_tells_rows_apart_stands_beside_every_value(width):
    """The device, too, if it is in it that rows differ: 1 GPU, or 4 GPUs."""
    values = {"1 GPU": ("9.54 s", "1.00 ×"), "4 GPUs": ("2.39 s", "3.99 ×")}
    rows = [(name, "tuned", on, *values[on]) for name in ("dask_cuda_tuned", "ray_cuda_tuned") for on in values]
    head = ("technique", "lane", "on", "a time in seconds", "speedup")
    table = tables.Table("Made up", head, "lllrr", [tuple(map(tables.Entry, row)) for row in rows], [], [])
    assert list(text.blocks(table, width)) == [[0, 1, 2, 3], [0, 1, 2, 4]]
    lines = drawn([table], width).splitlines()
    assert all(len(line) <= width for line in lines)
    for value in ("9.54 s", "1.00 ×", "2.39 s", "3.99 ×"):
        assert sum(value in line for line in lines) == 2


def test_a_long_heading_of_rows_wraps_and_no_device_does():
    device = "NVIDIA H100 80GB HBM3"
    rows = [
        (tables.Entry("a heading that is longer than a device", "group"), *[tables.Entry()] * 2),
        *((tables.Entry(name), tables.Entry(device), tables.Entry("9.54 s")) for name in ("cupy", "torch")),
    ]
    table = tables.Table("Made up", ("technique", "on", "time"), "llr", rows, [], [])
    assert drawn([table], 50).count(device) == 2


def test_rows_below_different_headings_may_have_one_name():
    group, empty = tables.Entry("40,000", "group"), tables.Entry()
    rows = [(group, empty, empty), (tables.Entry("a"), tables.Entry("CPU"), tables.Entry("1 s"))] * 2
    table = tables.Table("Made up", ("technique", "of", "time"), "llr", rows, [], [])
    assert list(text.blocks(table, 5)) == [[0, 1], [0, 2]]


def test_markdown_has_a_cell_for_each_column(every):
    written = text.as_markdown(every)
    assert written.count("\n### ") + 1 == len(every)
    for block in written.split("\n\n"):
        if block.startswith("|"):
            bare = block.replace("\\|", "")
            assert len({line.count("|") for line in bare.splitlines()}) == 1
    assert "**\\*1.00 s**" in written
    assert "[multiply pycuda\\_elementwise](recipes/multiply/with_pycuda_elementwise.py)" in written
    assert "\\<b\\>\\|\\*x\\*\\|\\_y\\_ & 'z' and on" in written


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
    page = html_page.as_html(every)
    read = Reader(page)
    assert not read.open
    assert page.count("<caption>") == page.count("<thead>") == len(read.tables) == len(every)
    for rows, table in zip(read.tables, every, strict=True):
        assert rows[0] == list(table.head)
        assert [len(row) for row in rows] == [len(table.head)] * (len(table.rows) + 1)
        assert all(
            entry.text in word
            for row, line in zip(table.rows, rows[1:], strict=True)
            for entry, word in zip(row, line, strict=True)
        )
    assert "url(" not in page and "@import" not in page
    assert "prefers-color-scheme" in page or "color-scheme: light dark" in page
    assert all(
        link.startswith("https://") or (catalogue.FOLDER / link.removeprefix("recipes/")).exists()
        for link in read.links
    )


def test_csv_and_json_have_every_digit_and_the_same_records(every):
    rows = list(csv.DictReader(io.StringIO(text.as_csv(every))))
    parsed = json.loads(text.as_json(every), parse_constant=pytest.fail)
    assert [table["title"] for table in parsed] == [table.title for table in every]
    records = [record for table in parsed for record in table["rows"]]
    assert len(rows) == len(records) > 100
    for row, record in zip(rows, records, strict=True):
        for key, value in record.items():
            written = " ".join(value) if isinstance(value, list) else "" if value is None else str(value)
            assert row[key] == csv_cell(written)
    (third,) = [r for r in rows if r["table"] == "measured" and r["metric"] == "resident" and r["size"] == str(SMALL)]
    assert (float(third["value_s"]), float(third["q1_s"]), third["samples"]) == (3.0, 2.99, "10")
    assert {row["table"] for row in rows} >= {"measured", "frameworks", "engines"}


def test_an_infinite_interval_is_none_in_the_records():
    (table, _) = tables.measured([result("a", timings=ENDLESS)])
    assert table.records[0]["ci99_a_s"] is table.records[0]["ci99_b_s"] is None


def test_a_title_counts_commits_where_there_are_many_and_names_no_environment_twice():
    days = ["2026-11-21", "2026-11-22", "2026-11-23"]
    origins = [replace(BOX, commit=str(n) * 40, date=day, environment="existing-py3.12") for n, day in enumerate(days)]
    other = replace(origins[0], environment="existing-py3.12-cutile")
    found = [result(name, origin=origin) for name, origin in zip(("numpy", "cupy", "torch"), origins, strict=True)]
    apart = result("cutile", origin=other, environment="cutile")
    assert tables.source_of(found, [apart]) == f"{BOX.machine}, 3 commits, 2026-11-21 to 2026-11-23"
    assert tables.source_of(found[:2], [apart]) == (f"{BOX.machine}, 00000000 and 11111111, 2026-11-21 and 2026-11-22")
    assert tables.source_of([apart], found) == f"{BOX.machine}, environment cutile, 00000000, 2026-11-21"
    older = result("pycuda", origin=replace(BOX, environment="existing-py3.11"))
    assert "existing-py3.12, 3 commits" in tables.source_of(found, [older])


def test_the_overview_has_every_environment_of_a_machine_and_numpy_once():
    here = {"origin": replace(BOX, environment="existing-py3.12")}
    apart = {"origin": replace(BOX, environment="existing-py3.12-cutile"), "environment": "cutile"}
    found = [
        result(name, seconds, workload=workload, size=size, **where)
        for workload, size in (("multiply", LARGE), ("matmul", 4_096))
        for name, seconds, where in (
            ("numpy", 4.0, here),
            ("torch", 2.0, here),
            ("numpy", 5.0, apart),
            ("cutile", 1.0, apart),
        )
    ]
    overview, *others = tables.measured(found)
    assert [[row[0].text, *(entry.text for entry in row[-2:])] for row in overview.rows] == [
        ["numpy", "4.00 s", "4.00 s"],
        ["cutile", "*1.00 s", "*1.00 s"],
        ["torch", "2.00 s", "2.00 s"],
    ]
    assert "environments cutile and main" in overview.title
    alone = {frozenset(row[0].text for row in table.rows) for table in others if table.rows}
    assert alone == {frozenset(("numpy", "torch")), frozenset(("numpy", "cutile"))}
    older = [
        replace(each, origin=replace(each.origin, environment="existing-py3.11")) for each in found[:2] + found[4:6]
    ]
    titles = [table.title for table in tables.measured([*found, *older]) if "matmul\n4,096×4,096×4,096" in table.head]
    assert [re.findall(r"existing-py3\.\d+", title) for title in titles] == [["existing-py3.12"], ["existing-py3.11"]]


def test_in_html_only_a_column_with_long_words_wraps():
    rows = [
        tuple(map(tables.Entry, ("CuPy", "JAX", "its message has more words than a line"))),
        (tables.Entry("x"),) * 3,
    ]
    html = html_page.html_of(tables.Table("Refused", ["from", "to", "why"], "lll", rows, [], []))
    assert [line.count('class="l name') for line in html.splitlines() if "<td" in line] == [1, 1]


def test_who_makes_fewer_samples_is_said_below_the_tables():
    results = [
        making.result(name, 4_000, 1.0, workload="random_subset_mean") for name in ("cupy", "cupy_tuned", "torch_tuned")
    ]
    said = [note.text for note in tables.reasons_of(results)]
    assert said == ["samples: cupy_tuned, torch_tuned: only the quarter that is averaged; others make all of them"]
    assert not [*tables.reasons_of([making.result("cupy_tuned", 4_000, 1.0)])]
