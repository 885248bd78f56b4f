"""Charts: what is drawn is what was measured, as an element that any page can have."""

import re
from xml.etree import ElementTree

import pytest

from gpu_cookbook import catalogue
from gpu_cookbook.render import charts, html_page, report, tables
from gpu_cookbook.run import scale

SIZES = catalogue.workload_module("multiply").SIZES
SMALL, LARGE = SIZES[0], SIZES[-1]


def cell(technique, size=LARGE, resident=1.0, **more):
    """One measured cell, as the store has it."""
    gpu = technique not in ("numpy", "dask")
    return {
        "workload": "multiply",
        "technique": technique,
        "framework": {"numpy": "NumPy", "dask": "Dask"}.get(technique, "CuPy"),
        "lane": "tuned" if technique.endswith("_tuned") else "idiomatic",
        "math": "IEEE",
        "machine": "box",
        "commit": "0123456789abcdef0123",
        "environment": "existing",
        "device": "NVIDIA H200" if gpu else "Xeon, 16 cores",
        "size": size,
        "status": "ok",
        "reason": None,
        "stale": False,
        "device_copy_bandwidth_gb_per_s": 4000.0 if gpu else 100.0,
        "device_cache_bytes": 1000,
        "resident_s": resident,
        "resident_q1_s": resident,
        "resident_q3_s": resident,
        **more,
    }


def timed(technique, size=SMALL, device=1e-6, resident=3e-6, transfer=1e-5, **more):
    times = {"device": device, "transfer": transfer}
    spread = {f"{name}_{end}_s": value for name, value in times.items() for end in ("q1", "q3")}
    return cell(technique, size, resident, **{f"{name}_s": value for name, value in times.items()}, **spread, **more)


def crossing():
    """NumPy, one that overtakes it between the two sizes, one that always and one that never does."""
    cells = [cell("numpy", SMALL, 1e-5), cell("numpy", LARGE, 1e-1)]
    cells += [cell("later", SMALL, 1e-4), cell("later", LARGE, 1e-3)]
    cells += [cell("always", SMALL, 1e-6), cell("always", LARGE, 2e-3)]
    return [*cells, cell("never", SMALL, 1e-4), cell("never", LARGE, 1.0)]


def every_chart():
    """One of each kind."""
    starts = [cell(t, SMALL, first_result_s=s) for t, s in (("numpy", 0.1), ("a", 0.5))]
    parted = [c | dict.fromkeys(charts_parts(), c["first_result_s"] / 4) for c in starts]
    return {
        "by_size": charts.by_size(crossing()),
        "roofline": charts.roofline([cell("numpy"), cell("a", resident=1e-2), cell("a_tuned", resident=8e-3)]),
        "share": charts.share_of_limit([cell("numpy"), cell("a", resident=1e-3), cell("a_tuned", resident=8e-4)]),
        "cold": charts.cold_start(starts),
        "parts": charts.cold_start(parted),
        "costs": charts.costs([cell("numpy", SMALL, 1e-6), timed("a"), timed("a_tuned", resident=2e-6)]),
        "bars": charts.bars(crossing(), [("by <hand> & $x$", "multiply", "later", LARGE, "resident")]),
        "scaling": charts.scaling(scaled(), "GPU", "strong"),
        "story": charts.story(told()),
    }


def charts_parts():
    return [f"first_{part}_s" for part in ("import", "setup", "call", "download")]


def scaled():
    rows = []
    for technique, times in (("dask_cuda", (1.0, 0.6)), ("cupy_threads_tuned", (0.5, 0.25))):
        for workers, time in zip((1, 2), times, strict=True):
            about = {"technique": technique, "framework": "Dask", "lane": "idiomatic", "kind": "GPU", "mode": "strong"}
            about |= {"machine": "box", "commit": "0123456789", "date": "2026-11-21", "status": "ok", "mean": 11.0}
            about |= {"size": 100_000, "chunk": 10_000, "time_s": time, "q1_s": time, "q3_s": time}
            rows.append(about | {"workers": workers})
    return scale.complete(rows)


def told():
    rows = []
    for technique, lane, kind, times in (
        ("dask", "idiomatic", "core", (123, 5.14)),
        ("numba_cpu_tuned", "tuned", "core", (8.59, 0.287)),
        ("dask_cuda_random_state", "idiomatic", "GPU", (1.09, 0.342)),
        ("cupy_threads_tuned", "tuned", "GPU", (0.0099, 0.0029)),
    ):
        for workers, time in zip((1, 4), times, strict=True):
            about = {"technique": technique, "framework": "Dask", "lane": lane, "kind": kind, "mode": "strong"}
            about |= {"machine": "box", "commit": "0123456789", "date": "2026-11-21", "status": "ok", "mean": 11.0}
            about |= {"size": 100_000, "chunk": 10_000, "time_s": time, "q1_s": time, "q3_s": time}
            rows.append(
                about
                | {"workers": workers, "time_s": time, "q1_s": time, "q3_s": time, "mean": 11.0, "stale": workers == 4}
            )
    return scale.complete(rows)


def test_the_story_has_both_columns_and_says_what_is_stale():
    chart = charts.story(told())
    assert chart.title == "The experiment, then and now. box, 01234567, 2026-11-21"
    drawn = texts(chart)
    assert {"1 core", "4 cores", "1 GPU", "4 GPUs", "123 s", "9.90 ms", "†342 ms", "†287 ms"} <= set(drawn)
    assert "8.59 s to 2.90 ms" in chart.text and "123 s to 342 ms" in chart.text
    assert charts.story([]) is None


@pytest.fixture(scope="module")
def drawn():
    return every_chart()


def texts(chart):
    return [element.text for element in ElementTree.fromstring(chart.svg).iter("{http://www.w3.org/2000/svg}text")]


def rows(chart):
    return {row[0].text: [entry.text for entry in row[1:]] for row in chart.table.rows}


# ---- The numbers.


def test_the_table_has_the_cells_times_with_all_digits_in_the_records():
    cells = [
        cell("numpy", SMALL, 1.23456e-5),
        cell("numpy", LARGE, 0.1),
        cell("a", SMALL, 2e-5),
        cell("a", LARGE, 2e-3),
    ]
    chart = charts.by_size(cells)
    got = {(record["technique"], record["size"]): record["value_s"] for record in chart.table.records}
    assert got == {(c["technique"], c["size"]): c["resident_s"] for c in cells}
    assert rows(chart)["numpy"][2:4] == ["12.3 µs", "100 ms"]
    assert list(rows(chart)) == ["a", "numpy"]  # the fastest at the largest size first


def test_who_begins_to_beat_numpy_between_two_sizes_has_a_ring_there():
    chart = charts.by_size(crossing())
    (expected,) = {
        c["beats_numpy_from_size_resident"] for c in report.complete(crossing()) if c["technique"] == "later"
    }
    begins = {record["technique"]: record["beats_numpy_from_size"] for record in chart.table.records}
    assert begins == {"later": expected, "always": SMALL, "never": None, "numpy": None}
    assert SMALL < expected < LARGE
    assert "beat it between the measured sizes: 1, from" in chart.text and "(later)" in chart.text
    assert "begins to beat NumPy" in texts(chart)
    assert [rows(chart)[name][-1][:1] for name in ("later", "always", "never", "numpy")] == ["≈", "≤", ">", ""]


@pytest.mark.parametrize("left", [("numpy", "always"), ("numpy", "never"), ("later", "never")])
def test_without_such_a_size_there_is_no_ring(left):
    chart = charts.by_size([c for c in crossing() if c["technique"] in left])
    assert "begins to beat NumPy" not in texts(chart) and "beginning to beat" not in chart.text


def test_the_ring_lies_on_both_lines():
    later = [c for c in report.complete(crossing()) if c["technique"] == "later"]
    size, time = charts._begins(later, "resident", lambda c: c["resident_s"])
    share = charts.math.log(size / SMALL) / charts.math.log(LARGE / SMALL)
    assert time == pytest.approx(1e-5 * (1e-1 / 1e-5) ** share, rel=1e-3)  # NumPy's there


def test_what_beats_numpy_on_a_cpu_is_ringed_too():
    """As the table beside it says."""
    cells = [c for c in crossing() if c["technique"] == "numpy"]
    cells += [cell("dask", SMALL, 1e-4), cell("dask", LARGE, 1e-3)]
    chart = charts.by_size(cells)
    assert "begins to beat NumPy" in texts(chart)
    assert rows(chart)["dask"][-1].startswith("≈")


def test_with_transfers_numpys_resident_time_ties_with_no_other():
    near = {"transfer_q1_s": 0.09, "transfer_q3_s": 0.12}
    cells = [cell("numpy", n, t) for n, t in ((SMALL, 1e-5), (LARGE, 0.1))]
    cells += [timed("a", n, transfer=0.11) | near for n in (SMALL, LARGE)]
    assert "the fastest of 2: numpy, resident, 100 ms" in charts.by_size(cells, "transfer").text


def test_numpys_line_with_transfer_is_the_resident_one():
    cells = [cell("numpy", n, t, transfer_s=9.0) for n, t in ((SMALL, 1e-5), (LARGE, 0.1))]
    assert charts.by_size(cells, "transfer") is None  # there is nothing to compare
    cells += [timed("a", n, transfer=t) for n, t in ((SMALL, 1e-4), (LARGE, 0.01))]
    assert rows(charts.by_size(cells, "transfer"))["numpy"][2:4] == ["10.0 µs", "100 ms"]
    assert rows(charts.by_size(cells, "transfer"))["a"][2:4] == ["100 µs", "10.0 ms"]


def test_of_many_the_fastest_of_each_framework_and_lane_is_drawn_and_the_table_has_all():
    names = [f"cupy_{n}" for n in range(charts.MANY + 1)]
    cells = [cell(name, size, n + 1.0) for n, name in enumerate(names) for size in (SMALL, LARGE)]
    cells += [cell("numpy", size, 50.0) for size in (SMALL, LARGE)]
    chart = charts.by_size(cells)
    assert f"the fastest of each framework and lane (2 of {len(names) + 1})" in chart.title
    assert set(rows(chart)) == {*names, "numpy"}
    assert [text for text in texts(chart) if text in (*names, "numpy")] == ["cupy_0", "numpy"]


def test_the_share_is_that_of_the_tables_and_only_where_memory_limits():
    cells = [cell("a", resident=1e-3), cell("a_tuned", resident=8e-4)]
    shares = {c["technique"]: tables.bandwidth_of(c)["copy_bandwidth_percent"] for c in cells}
    matmul = cell("a", 4096, workload="matmul", copy_bandwidth_percent=2.0)
    chart = charts.share_of_limit([*cells, matmul])
    assert {r["technique"]: r["copy_bandwidth_percent"] for r in chart.table.records} == shares
    assert [text for text in texts(chart) if text.endswith("%")] == [
        f"{s:.0f} %" for s in sorted(shares.values())[::-1]
    ]
    assert charts.share_of_limit([matmul]) is None
    assert charts.share_of_limit([cell("a", device_cache_bytes=2**60)]) is None  # all of it is in the cache


def test_the_roofline_has_a_line_a_device_and_what_each_technique_does(drawn):
    workload = catalogue.workload_module("multiply")
    records = {record["technique"]: record for record in drawn["roofline"].table.records}
    assert records["a"]["operations_g_per_s"] == workload.operations(LARGE) / 1e-2 / 1e9
    assert records["a"]["operations_per_byte"] == workload.operations(LARGE) / workload.bytes_moved(LARGE)
    assert {"NVIDIA H200: 4,000 GB/s", "CPU: 100 GB/s"} <= set(texts(drawn["roofline"]))
    assert charts.roofline([cell("a", 100, workload="random_subset_mean")]) is None  # it moves no bytes


def test_a_call_costs_its_pieces():
    chart = charts.costs([cell("numpy", SMALL, 1e-6), timed("a"), timed("a", LARGE), timed("b", device=4e-6)])
    one, two, numpy = (next(r for r in chart.table.records if r["technique"] == name) for name in ("a", "b", "numpy"))
    assert (one["own_s"], one["launch_s"], one["transfers_s"]) == pytest.approx((1e-6, 2e-6, 7e-6))
    assert (two["own_s"], two["launch_s"], two["device_s"]) == (3e-6, 0, 4e-6)  # longer with a full queue
    assert numpy["total_s"] == 1e-6 and "own_s" not in numpy
    assert {record["size"] for record in chart.table.records} == {SMALL}
    assert list(rows(chart)) == ["numpy", "a", "b"]
    assert charts.costs([cell("numpy"), cell("a")]) is None  # no device's clock
    assert charts.costs([timed("a")], LARGE) is None


def test_a_bar_that_would_take_all_the_room_is_cut_and_says_so():
    short = [timed(f"a{n}") for n in range(4)]
    chart = charts.costs([*short, timed("long", transfer=1.0)])
    assert "▸ 1.00 s" in texts(chart) and "▸" in chart.text
    assert "▸" not in charts.costs(short).text


def test_the_first_result_has_its_parts_where_they_are_measured(drawn):
    assert drawn["cold"].table.head[3:] == ("first result",)
    assert [record["first_result_s"] for record in drawn["cold"].table.records] == [0.1, 0.5]
    assert drawn["parts"].table.head[4:] == tuple(charts.STARTING.values())
    assert rows(drawn["parts"])["a"][2:] == ["500 ms"] + ["125 ms"] * 4
    assert set(charts.STARTING.values()) <= set(texts(drawn["parts"]))


def test_bars_are_sorted_and_have_their_values_beside_them():
    picks = [("slow", "multiply", "numpy", LARGE, "resident"), ("fast", "multiply", "later", LARGE, "resident")]
    chart = charts.bars(crossing(), [*picks, ("none", "multiply", "cupy", LARGE, "resident")])
    assert texts(chart)[:4] == ["fast", "slow", "1.00 ms", "100 ms"]
    assert [record["value_s"] for record in chart.table.records] == [1e-3, 1e-1]
    assert charts.bars(crossing(), [("none", "multiply", "cupy", LARGE, "resident")]) is None
    with pytest.raises(ValueError, match="of one unit, not of value_gb_per_s, value_s"):
        charts.bars(crossing(), [picks[0], ("b", "multiply", "later", LARGE, "bandwidth")])


def test_scaling_has_the_speedups(drawn):
    chart = drawn["scaling"]
    assert [record["speedup_x"] for record in chart.table.records] == [1, 2, 1, pytest.approx(1 / 0.6)]
    assert rows(chart)["cupy_threads_tuned, 100,000²"] == ["idiomatic", "1.00 × (500 ms)", "2.00 × (250 ms)"]
    assert "ideal" in texts(chart) and "2.00 times" in chart.text
    assert charts.scaling(scaled(), "core", "strong") is charts.scaling(scaled(), "GPU", "weak") is None
    assert charts.scaling([row for row in scaled() if row["workers"] == 1], "GPU", "strong") is None


def test_what_failed_and_what_is_missing_is_left_out():
    failed = [cell("bad", size, None, **{"status": "failed", "reason": "wrong"}) for size in (SMALL, LARGE)]
    assert set(rows(charts.by_size([*crossing(), *failed]))) == {"numpy", "later", "always", "never"}
    for chart in (charts.by_size, charts.roofline, charts.share_of_limit, charts.cold_start, charts.costs):
        assert chart(failed) is None and chart([]) is None
    assert charts.by_size([cell("numpy"), cell("a")]) is None  # one size is no line


def test_stale_figures_are_marked():
    chart = charts.by_size([c | {"stale": True} for c in crossing()])
    assert rows(chart)["numpy"][2].startswith("†") and "† stale" in chart.table.notes[0].text


# ---- The element.


def test_each_is_an_image_with_a_name_and_a_sentence(drawn):
    for chart in drawn.values():
        root = ElementTree.fromstring(chart.svg)
        assert root.get("role") == "img" and root.get("aria-label") == chart.text and chart.text.endswith(".")
        assert root[0].tag.endswith("title") and root[0].text == chart.title == chart.table.title
        assert "box, 01234567" in chart.title
        assert root.get("width") == "100%" and root.get("viewBox").startswith("0 0 400 ")
        assert len(chart.table.head) == len(chart.table.align)
        assert all(len(row) == len(chart.table.head) for row in chart.table.rows) and chart.table.rows


def test_each_number_beside_a_bar_is_in_its_table(drawn):
    for name in ("cold", "parts", "costs", "bars"):
        words = {entry.text for row in drawn[name].table.rows for entry in row}
        numbers = [text for text in texts(drawn[name]) if re.search(r"\d (s|ms|µs)$", text)]
        assert numbers and set(numbers) <= words


def test_joined_on_a_page_no_id_is_there_twice_and_none_is_missing(drawn):
    page = "".join(chart.svg for chart in drawn.values())
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids)) > 20
    assert set(re.findall(r"url\(#([^)]*)\)", page)) | set(re.findall(r'href="#([^"]*)"', page)) == set(ids)


def test_nothing_is_asked_of_another_host_and_nothing_styles_the_page(drawn):
    for chart in drawn.values():
        names = {element.tag.partition("}")[2] for element in ElementTree.fromstring(chart.svg).iter()}
        assert names <= {"svg", "title", "g", "defs", "path", "use", "text", "clipPath", "rect", "pattern"}
        assert chart.svg.startswith("<svg ") and chart.svg.endswith("</svg>")
        assert re.findall(r"https?://[^\"]*", chart.svg) == ["http://www.w3.org/2000/svg"]
        assert "DejaVu" not in chart.svg and 'font-family="inherit"' in chart.svg


def test_the_page_gives_the_ink_and_every_colour_is_seen_on_white_and_on_black(drawn):
    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for chart in drawn.values():
        found = set(re.findall(r"#[0-9a-f]{6}\b", chart.svg))
        assert "currentColor" in chart.svg and found <= set(charts.COLOURS)
        fills = {re.search(r"fill: (\w+)", text) for text in re.findall(r"<text [^>]*>", chart.svg)}
        assert {fill[1] for fill in fills if fill} == {"currentColor"} and None not in fills
    for colour in charts.COLOURS:
        assert 1.05 / (light(colour) + 0.05) >= 3 and (light(colour) + 0.05) / (light("#131416") + 0.05) >= 3


def test_the_same_cells_give_the_same_charts_whatever_matplotlib_is_set_to(drawn):
    import matplotlib

    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 30, "svg.fonttype": "path"}):
        assert every_chart() == drawn


def test_names_are_escaped(drawn):
    assert "by <hand> & $x$" in texts(drawn["bars"])
    page = html_page.figure(drawn["bars"])
    assert "<hand>" not in page and page.count("by &lt;hand&gt; &amp; $x$") >= 4


def test_listing_does_not_import_matplotlib():
    import subprocess
    import sys

    code = "import sys, gpu_cookbook.cli, gpu_cookbook.render.charts; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
