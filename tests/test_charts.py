"""Charts: what is drawn is what was measured, as an element that any page can have."""

import math
import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from drawing import LARGE, SMALL, crossing, exactly, result, row, started, timed

from gpu_cookbook import catalogue
from gpu_cookbook.render import charts, html_page, scaling_charts, svg
from gpu_cookbook.results import Metric, Status, Timing, completed
from gpu_cookbook.scaling import completed as completed_rows


def every_chart():
    """One of each kind."""
    pair = (started("numpy", 0.1), started("a", 0.5))
    parted = (started("numpy", 0.1, parted=True), started("a", 0.5, parted=True))
    story = [row("dask", 1, 123.0, "core"), row("numba_cpu_tuned", 1, 8.59, "core")]
    three = [result("numpy"), result("a", seconds=1e-2), result("a_tuned", seconds=8e-3)]
    return {
        "by_size": charts.by_size(crossing()),
        "roofline": charts.roofline(three),
        "share": charts.share_of_limit(three),
        "cold": charts.cold_start(pair),
        "parts": charts.cold_start(parted),
        "costs": charts.costs([result("numpy", SMALL, 1e-6), timed("a"), timed("a_tuned", seconds=2e-6)]),
        "prepared": charts.costs([result("numpy", SMALL, 1e-6), timed("a", prepared=2e-6), timed("b")]),
        "bars": charts.bars(crossing(), [("by <hand> & $x$", "multiply", "later", LARGE, Metric.RESIDENT)]),
        "scaling": scaling_charts.scaling(
            completed_rows([row("dask_cuda"), row("dask_cuda", 2, 0.6)]), "GPU", "strong"
        ),
        "story": scaling_charts.story(completed_rows(story)),
    }


@pytest.fixture(scope="module")
def drawn():
    return every_chart()


def texts(chart):
    return [element.text for element in ElementTree.fromstring(chart.svg).iter("{http://www.w3.org/2000/svg}text")]


def looks_of(drawing):
    """(element, its own style or what it inherits) of all of a drawing."""

    def below(element, inherited):
        style = element.get("style", inherited)
        yield element, style
        for child in element:
            yield from below(child, style)

    return list(below(ElementTree.fromstring(drawing), None))


def rows(chart):
    return {row[0].text: [entry.text for entry in row[1:]] for row in chart.table.rows}


def records(chart):
    return {record["technique"]: record for record in chart.table.records}


# ---- The numbers.


def test_the_table_has_the_times_of_the_results_with_all_digits_in_the_records():
    times = {("numpy", SMALL): 1.23456e-5, ("numpy", LARGE): 0.1, ("a", SMALL): 2e-5, ("a", LARGE): 2e-3}
    chart = charts.by_size([result(*key, time) for key, time in times.items()])
    assert {(record["technique"], record["size"]): record["value_s"] for record in chart.table.records} == times
    assert rows(chart)["numpy"][2:4] == ["12.3 µs", "100 ms"]
    assert list(rows(chart)) == ["a", "numpy"]  # the fastest at the largest size first


def test_a_size_of_two_numbers_has_no_place_on_an_axis():
    sizes = (10**6, 10**3), (10**8, 10**3)
    results = [replace(result("pandas", SMALL), workload="group_mean", size=size) for size in sizes]
    assert charts.by_size(results) is None


def test_a_record_says_what_the_result_is_and_where_it_comes_from(drawn):
    about = {"machine": "box", "commit": "0123456789abcdef0123", "device": "NVIDIA H200", "workload": "multiply"}
    about |= {"technique": "a", "framework": "CuPy", "lane": "idiomatic"}
    for name in ("roofline", "share", "cold", "parts", "costs"):
        assert records(drawn[name])["a"].items() >= about.items()
        assert {"table", "environment", "size"} <= records(drawn[name])["a"].keys()


def test_a_technique_names_its_recipe_in_the_table(drawn):
    found = {entry.recipe for row in drawn["share"].table.rows for entry in row if entry.recipe}
    assert found == {("multiply", "numpy"), ("multiply", "a"), ("multiply", "a_tuned")}


def test_a_chart_of_one_workload_says_which(drawn):
    found = {name: (chart.workload, chart.table.workload) for name, chart in drawn.items()}
    assert all(found[name] == ("multiply",) * 2 for name in ("by_size", "cold", "parts", "costs", "prepared"))
    assert all(found[name] == (None, None) for name in ("roofline", "share", "bars", "story"))
    assert found["scaling"] == ("random_subset_mean",) * 2


def test_what_becomes_faster_than_numpy_between_two_sizes_has_a_ring_there():
    chart = charts.by_size(crossing())
    (expected,) = {each.crossings[Metric.RESIDENT].size for each in completed(crossing()) if each.technique == "later"}
    begins = {record["technique"]: record["beats_numpy_from_size"] for record in chart.table.records}
    assert begins == {"later": expected, "always": SMALL, "never": None, "numpy": None}
    assert SMALL < expected < LARGE
    assert "1 technique becomes faster than NumPy between two measured sizes, at" in chart.text
    assert "(later)" in chart.text
    assert "becomes faster than NumPy" in texts(chart)
    assert [rows(chart)[name][-1][:1] for name in ("later", "always", "never", "numpy")] == ["≈", "≤", ">", ""]


@pytest.mark.parametrize("left", [("numpy", "always"), ("numpy", "never"), ("later", "never")])
def test_without_such_a_size_there_is_no_ring(left):
    chart = charts.by_size([each for each in crossing() if each.technique in left])
    assert "becomes faster than NumPy" not in texts(chart) and "faster than NumPy" not in chart.text


def test_the_ring_lies_on_both_lines():
    later = [each for each in completed(crossing()) if each.technique == "later"]
    size, time = charts.overtakes_numpy(later, Metric.RESIDENT)
    share = math.log(size / SMALL) / math.log(LARGE / SMALL)
    assert time == pytest.approx(1e-5 * (1e-1 / 1e-5) ** share, rel=1e-3)  # NumPy's there


def test_what_becomes_faster_than_numpy_on_a_cpu_is_ringed_too():
    """As the table beside it says."""
    numpy = [each for each in crossing() if each.technique == "numpy"]
    chart = charts.by_size([*numpy, result("dask", SMALL, 1e-4), result("dask", LARGE, 5e-2)])
    assert "becomes faster than NumPy" in texts(chart)
    assert rows(chart)["dask"][-1].startswith("≈")


def numpy_lines(**changes):
    return [result("numpy", size, time, **changes) for size, time in ((SMALL, 1e-5), (LARGE, 0.1))]


def test_with_transfers_numpys_resident_time_ties_with_no_other():
    near = {Metric.RESIDENT: exactly(1e-3), Metric.TRANSFER: Timing(0.11, 0.09, 0.12)}
    mine = [replace(result("a", size, 1e-3), timings=near) for size in (SMALL, LARGE)]
    assert "the fastest of 2: numpy, resident, 100 ms" in charts.by_size([*numpy_lines(), *mine], Metric.TRANSFER).text


def test_numpys_line_with_transfer_is_the_resident_one():
    numpy = numpy_lines(transfer=9.0)
    assert charts.by_size(numpy, Metric.TRANSFER) is None  # there is nothing to compare
    mine = [result("a", size, time / 2, transfer=time) for size, time in ((SMALL, 1e-4), (LARGE, 0.01))]
    found = rows(charts.by_size([*numpy, *mine], Metric.TRANSFER))
    assert found["numpy"][2:4] == ["10.0 µs", "100 ms"]
    assert found["a"][2:4] == ["100 µs", "10.0 ms"]


def test_numpy_s_times_in_several_environments_are_one_range():
    elsewhere = [
        result("numpy", size, time, environment=environment)
        for environment, slower in (("cutile", 1.5), ("nvmath", 2))
        for size, time in ((SMALL, 1e-5 * slower), (LARGE, 1e-1 * slower))
    ]
    mine = [result("a", SMALL, 1e-4), result("a", LARGE, 0.01)]
    text = charts.by_size([*crossing(), *mine, *elsewhere]).text
    assert text.count("NumPy takes") == 1 and "; NumPy takes 100 ms to 200 ms" in text


def test_prepared_times_are_drawn_beside_numpys_resident_one():
    """No speedup is computed of them, and so there is no ring and no column for it."""
    assert charts.by_size(crossing(), Metric.PREPARED) is None
    mine = [result("a", size, 2 * time, prepared=time) for size, time in ((SMALL, 1e-4), (LARGE, 0.01))]
    chart = charts.by_size([*crossing(), *mine], Metric.PREPARED)
    assert {name: found[2:] for name, found in rows(chart).items()} == {
        "a": ["100 µs", "10.0 ms"],
        "numpy": ["10.0 µs", "100 ms"],
    }
    assert "the fastest of 2: a, 10.0 ms; NumPy, resident, takes 100 ms" in chart.text
    assert chart.title.startswith("multiply, prepared: time over size") and "faster than NumPy" not in "".join(
        texts(chart)
    )


def test_of_many_the_fastest_of_each_framework_and_lane_is_drawn_and_the_table_has_all():
    names = [f"cupy_{n}" for n in range(charts.MANY + 1)]
    found = [result(name, size, n + 1.0) for n, name in enumerate(names) for size in (SMALL, LARGE)]
    chart = charts.by_size([*found, *(result("numpy", size, 50.0) for size in (SMALL, LARGE))])
    assert f"the fastest of each framework and lane (2 of {len(names) + 1})" in chart.title
    assert set(rows(chart)) == {*names, "numpy"}
    assert [text for text in texts(chart) if text in (*names, "numpy")] == ["cupy_0", "numpy"]


def test_of_many_frameworks_each_lane_has_a_panel_and_the_fastest_a_name():
    names = [f"framework_{n}" for n in range(charts.MANY + 1)]
    found = [result(name, size, n + 1.0, framework=name) for n, name in enumerate(names) for size in (SMALL, LARGE)]
    found += [result("cupy_tuned", size, 1.0) for size in (SMALL, LARGE)]
    chart = charts.by_size([*found, *(result("numpy", size, 50.0) for size in (SMALL, LARGE))])
    written = texts(chart)
    assert [each for each in written if each.endswith(": time")] == ["tuned: time", "idiomatic: time"]
    assert [each for each in written if each in names] == names[: charts.TOLD]
    assert written.count("numpy") == 2 and written.count("other frameworks") == 1
    assert set(rows(chart)) == {*names, "numpy", "cupy_tuned"}


def test_frameworks_that_share_a_colour_are_told_apart():
    known = sorted({recipe.framework for recipe in catalogue.recipes()} - {"NumPy"})
    clash = ["NumPy", known[0], known[len(svg.COLOURS)]]
    assert svg.colour(clash[1]) == svg.colour(clash[2])
    found = svg.colours_apart(clash)
    assert len(set(found.values())) == 3 and found[clash[1]] == svg.colour(clash[1])


def test_results_of_two_environments_have_a_line_each():
    other = [replace(each, environment="other") for each in crossing() if each.technique != "always"]
    chart = charts.by_size([*crossing(), *other])
    assert {"numpy", "numpy (other)", "later", "later (other)"} <= set(rows(chart))
    assert "2 techniques become faster than NumPy" in chart.text


def test_the_share_is_that_of_the_tables_and_only_where_memory_limits():
    found = [result("a", seconds=1e-3), result("a_tuned", seconds=8e-4)]
    moved = catalogue.workload_module("multiply").bytes_moved(LARGE)
    shares = {"a": 100 * moved / 1e-3 / 1e9 / 4000, "a_tuned": 100 * moved / 8e-4 / 1e9 / 4000}
    matmul = result("a", 4096, workload="matmul")
    assert matmul.rates.share is not None
    chart = charts.share_of_limit([*found, matmul])
    assert {name: record["copy_bandwidth_percent"] for name, record in records(chart).items()} == pytest.approx(shares)
    assert [text for text in texts(chart) if text.endswith("%")] == [
        f"{share:.0f} %" for share in sorted(shares.values())[::-1]
    ]
    assert charts.share_of_limit([matmul]) is None
    assert charts.share_of_limit([result("a", cache_bytes=2**60)]) is None  # all of it is in the cache


def test_the_roofline_has_a_line_per_device_and_a_point_per_technique(drawn):
    workload = catalogue.workload_module("multiply")
    mine = records(drawn["roofline"])["a"]
    assert mine["operations_g_per_s"] == workload.operations(LARGE) / 1e-2 / 1e9
    assert mine["operations_per_byte"] == workload.operations(LARGE) / workload.bytes_moved(LARGE)
    assert mine["device_copy_bandwidth_gb_per_s"] == 4000
    assert {"NVIDIA H200: 4,000 GB/s", "CPU: 100 GB/s"} <= set(texts(drawn["roofline"]))
    assert charts.roofline([result("a", 100, workload="random_subset_mean")]) is None  # it moves no bytes


def test_a_call_costs_its_parts():
    large = timed("a", LARGE, 3e-3, device=1e-3, transfer=1e-2)
    chart = charts.costs([result("numpy", SMALL, 1e-6), timed("a"), large, timed("b", device=4e-6)])
    one, two, numpy = (records(chart)[name] for name in ("a", "b", "numpy"))
    assert (one["own_s"], one["launch_s"], one["transfers_s"]) == pytest.approx((1e-6, 2e-6, 7e-6))
    assert (two["own_s"], two["launch_s"], two["device_s"]) == (3e-6, 0, 4e-6)  # longer with a full queue
    assert numpy["total_s"] == 1e-6 and "own_s" not in numpy
    assert {record["size"] for record in chart.table.records} == {SMALL}
    assert list(rows(chart)) == ["numpy", "a", "b"]
    assert charts.SAVED not in (*chart.table.head, *texts(chart)) and "prepared" not in chart.table.head
    assert charts.costs([result("numpy"), result("a")]) is None  # no device's clock
    assert charts.costs([timed("a")], LARGE) is None


def test_what_prepared_saves_is_a_part_of_the_launch(drawn):
    chart = drawn["prepared"]
    mine, other = records(chart)["a"], records(chart)["b"]
    assert (mine["launch_s"], mine["saved_s"], mine["total_s"]) == pytest.approx((2e-6, 1e-6, 1e-5))
    assert (other["launch_s"], other["total_s"]) == pytest.approx((2e-6, 1e-5)) and "saved_s" not in other
    at = [chart.table.head.index(name) - 1 for name in (charts.LAUNCH, charts.SAVED, "prepared")]
    assert [rows(chart)["a"][column] for column in at] == ["2.00 µs", "1.00 µs", "2.00 µs"]
    assert [rows(chart)["b"][column] for column in at] == ["2.00 µs", "–", "–"]
    assert charts.SAVED in texts(chart)
    pieces = charts.Cost.of(timed("a", prepared=2e-6)).pieces
    assert [value for value, _ in pieces] == pytest.approx([1e-6, 1e-6, 1e-6, 7e-6])


@pytest.mark.parametrize(("prepared", "saved"), [(5e-6, 0), (0.5e-6, 2e-6)])
def test_prepared_saves_at_most_the_launch_and_never_less_than_nothing(prepared, saved):
    cost = charts.Cost.of(timed("a", prepared=prepared))
    assert cost.parts[charts.SAVED] == pytest.approx(saved)
    assert all(value >= 0 for value, _ in cost.pieces) and cost.total == pytest.approx(1e-5)


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
    assert records(drawn["parts"])["a"]["first_import_s"] == 0.125
    assert set(charts.STARTING.values()) <= set(texts(drawn["parts"]))


def test_bars_are_sorted_and_have_their_values_beside_them():
    slow, fast, none = (
        (name, "multiply", technique, LARGE, Metric.RESIDENT)
        for name, technique in (("slow", "numpy"), ("fast", "later"), ("none", "cupy"))
    )
    chart = charts.bars(crossing(), [slow, fast, none])
    assert texts(chart)[:4] == ["fast", "slow", "1.00 ms", "100 ms"]
    assert [record["value_s"] for record in chart.table.records] == [1e-3, 1e-1]
    assert [record["metric"] for record in chart.table.records] == ["resident"] * 2
    assert charts.bars(crossing(), [none]) is None
    rate = (*fast[:-1], Metric.BANDWIDTH)
    with pytest.raises(ValueError, match="must have the same unit, not gb_per_s and s"):
        charts.bars(crossing(), [slow, rate])
    rates = charts.bars(crossing(), [(*slow[:-1], Metric.BANDWIDTH), rate])
    assert texts(rates)[:4] == ["fast", "slow", "3,220 GB/s", "32.2 GB/s"]  # more is better
    memory = charts.bars([result("a", peak_memory=3 * 2**29)], [("mine", "multiply", "a", LARGE, Metric.MEMORY)])
    assert texts(memory)[:2] == ["mine", "1.50 GiB"]
    assert [record["value_bytes"] for record in memory.table.records] == [3 * 2**29]


def test_what_failed_and_what_is_missing_is_left_out():
    failed = [
        replace(result("bad", size), timings={}, rates=None, status=Status.FAILED, reason="wrong")
        for size in (SMALL, LARGE)
    ]
    assert set(rows(charts.by_size([*crossing(), *failed]))) == {"numpy", "later", "always", "never"}
    for chart in (charts.by_size, charts.roofline, charts.share_of_limit, charts.cold_start, charts.costs):
        assert chart(failed) is None and chart([]) is None
    assert charts.by_size([result("numpy"), result("a")]) is None  # one size is no line


def test_stale_results_are_marked():
    chart = charts.by_size([replace(each, origin=replace(each.origin, stale=True)) for each in crossing()])
    assert rows(chart)["numpy"][2].startswith("†") and chart.table.notes[0].text.startswith("† ")
    assert not charts.by_size(crossing()).table.notes


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
    for name in ("cold", "parts", "costs", "prepared", "bars"):
        words = {entry.text for row in drawn[name].table.rows for entry in row}
        numbers = [text for text in texts(drawn[name]) if re.search(r"\d (s|ms|µs)$", text)]
        assert numbers and set(numbers) <= words


def test_joined_on_a_page_no_id_is_there_twice_and_none_is_missing(drawn):
    page = "".join(chart.svg for chart in drawn.values())
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids)) > 20
    assert set(re.findall(r"url\(#([^)]*)\)", page)) | set(re.findall(r'href="#([^"]*)"', page)) == set(ids)


def test_neighbours_share_their_look_only_where_that_does_not_change_it():
    grey, faint = "stroke: grey; stroke-opacity: 0.3", "opacity: 0.3; fill: red"
    drawn = [
        *[{"style": grey, "clip-path": "url(#p)"}] * 3,  # one group
        *[{"style": grey}] * 2,  # another, which is not clipped
        *[{"style": grey, "clip-path": "url(#p)", "transform": "translate(9 9)"}] * 2,  # clipped before they are moved
        *[{"style": faint}] * 2,  # as one picture, they would not shine through each other
        *[{"style": grey, "transform": "translate(9 9)"}] * 2,
        {"style": grey, "d": "M 0 0"},
    ]
    root = ElementTree.Element("svg")
    root.extend(ElementTree.Element("path", attributes) for attributes in drawn)
    svg.gather(root)
    found = [(child.tag, len(child), dict(child.attrib)) for child in root]
    assert found == [
        ("g", 3, drawn[0]),
        ("g", 2, drawn[3]),
        *(("path", 0, each) for each in drawn[5:9]),
        ("g", 3, {"style": grey}),
    ]
    assert [child.attrib for child in root[-1]] == [{"transform": "translate(9 9)"}] * 2 + [{"d": "M 0 0"}]


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
        assert "currentColor" in chart.svg and found <= set(svg.COLOURS)
        looks = [style for element, style in looks_of(chart.svg) if element.tag.endswith("text")]
        assert looks and all("fill: currentColor" in style for style in looks)
    for colour in svg.COLOURS:
        assert 1.05 / (light(colour) + 0.05) >= 3 and (light(colour) + 0.05) / (light("#131416") + 0.05) >= 3


def test_the_same_results_give_the_same_charts_whatever_matplotlib_is_set_to(drawn):
    import matplotlib

    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 30, "svg.fonttype": "path"}):
        assert every_chart() == drawn


def test_names_are_escaped(drawn):
    assert "by <hand> & $x$" in texts(drawn["bars"])
    page = html_page.figure(drawn["bars"])
    assert "<hand>" not in page and page.count("by &lt;hand&gt; &amp; $x$") >= 4


def test_listing_does_not_import_matplotlib():
    code = "import sys, gpu_cookbook.cli, gpu_cookbook.render.charts, gpu_cookbook.render.scaling_charts; "
    code += "sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
