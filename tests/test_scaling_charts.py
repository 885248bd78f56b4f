"""Charts of scale's rows: the story and the lines. tests/test_scale_charts.py has more of ``scale --plot``."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from drawing import ORIGIN, row

from gpu_cookbook.render import scaling_charts, svg
from gpu_cookbook.scaling import WEAK, completed

STALE = replace(ORIGIN, stale=True)


def texts(chart):
    return [element.text for element in ElementTree.fromstring(chart.svg).iter("{http://www.w3.org/2000/svg}text")]


def rows(chart):
    return {row[0].text: [entry.text for entry in row[1:]] for row in chart.table.rows}


def scaled():
    times = {"dask_cuda": (1.0, 0.6), "cupy_threads_tuned": (0.5, 0.25)}
    return completed(row(name, n, seconds) for name, two in times.items() for n, seconds in enumerate(two, 1))


def told():
    """Of the story's four places; what ran on all cores and all GPUs is stale."""
    found = []
    for technique, kind, times in (
        ("dask", "core", (123.0, 5.14)),
        ("numba_cpu_tuned", "core", (8.59, 0.287)),
        ("dask_cuda_random_state", "GPU", (1.09, 0.342)),
        ("cupy_threads_tuned", "GPU", (0.0099, 0.0029)),
    ):
        found += [row(technique, 1, times[0], kind), row(technique, 4, times[1], kind, origin=STALE)]
    return completed(found)


def test_the_story_has_both_columns_and_says_what_is_stale():
    chart = scaling_charts.story(told())
    assert chart.title == "The experiment, then and now. box, 01234567, 2026-11-21"
    drawn = texts(chart)
    assert {"1 core", "4 cores", "1 GPU", "4 GPUs", "123 s", "9.90 ms", "†342 ms", "†287 ms"} <= set(drawn)
    assert "8.59 s to 2.90 ms" in chart.text and "123 s to 342 ms" in chart.text
    assert chart.table.notes[-1].text.startswith("† ")
    assert [record["time_s"] for record in chart.table.records] == [123, 8.59, 5.14, 0.287, 1.09, 0.0099, 0.342, 0.0029]
    assert scaling_charts.story([]) is None


def test_the_story_of_one_lane_is_drawn_too():
    chart = scaling_charts.story([each for each in told() if each.lane == "tuned"])
    assert {"8.59 s", "†287 ms"} <= set(texts(chart)) and "8.59 s to 2.90 ms" in chart.text


def test_scaling_has_the_speedups():
    chart = scaling_charts.scaling(scaled(), "GPU", "strong")
    assert sorted(record["speedup_x"] for record in chart.table.records) == pytest.approx([1, 1, 1 / 0.6, 2])
    assert {record["table"] for record in chart.table.records} == {"scaling"}
    assert rows(chart)["cupy_threads_tuned, 100,000²"] == ["tuned", "1.00 × (500 ms)", "2.00 × (250 ms)"]
    assert list(rows(chart))[0].startswith("cupy_threads_tuned")  # the largest speedup first
    assert "ideal" in texts(chart)
    assert "On 2 GPUs cupy_threads_tuned does the most, 2.00 times the work of 1 GPU" in chart.text
    assert [row[0].recipe for row in chart.table.rows][0] == ("random_subset_mean", "cupy_threads_tuned")
    assert scaling_charts.scaling(scaled(), "core", "strong") is None
    assert scaling_charts.scaling(scaled(), "GPU", "weak") is None
    assert scaling_charts.scaling([each for each in scaled() if each.workers == 1], "GPU", "strong") is None


def test_what_rests_on_a_stale_row_is_marked():
    chart = scaling_charts.scaling(completed([row("ray", origin=STALE), row("ray", 2, 0.5)]), "GPU", "strong")
    assert rows(chart)["ray, 100,000²"][1:] == ["†1.00 × (†1.00 s)", "†2.00 × (500 ms)"]
    assert chart.table.notes[0].text.startswith("† ")


def test_names_at_the_ends_of_lines_do_not_overlap():
    from matplotlib.figure import Figure

    axes = Figure(figsize=(5, 3)).add_subplot()
    names = list("abcd")
    lines = {name: completed([row("ray"), row("ray", 2, 0.5)]) for name in names}
    svg.name_ends(axes, scaling_charts.draw_lines(axes, "GPU", lines, names), 200)
    places = sorted(text.get_position()[1] for text in axes.texts)
    assert len(places) == 5
    gaps = [after - before for before, after in zip(places, places[1:], strict=False)]
    assert min(gaps) >= svg.NAME / 200 - 1e-9


def test_a_drawing_has_one_panel_per_mode(tmp_path, monkeypatch):
    titles = []
    monkeypatch.setattr(
        "matplotlib.figure.Figure.savefig",
        lambda figure, *_, **__: titles.extend(axes.get_title() for axes in figure.axes),
    )
    found = [row("ray", kind="core"), row("ray", 2, kind="core"), row("ray", 2, 1.1, "core", mode=WEAK)]
    scaling_charts.plot_scaling(completed(found), tmp_path / "a.png", "here")
    assert titles == ["strong: 100,000² in total", "weak: 100,000² per core"]
