"""Drawings of what ``gpu-cookbook scale`` measured."""

import pytest
from cloning import git, rewrite
from scaling import keep, row, spread_of_pixels

from gpu_cookbook.render import scaling_charts, scaling_tables
from gpu_cookbook.scaling import WEAK, ScaleError, completed
from gpu_cookbook.store import scaling as store


def test_a_drawing_has_one_panel_per_mode(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    titles = []
    monkeypatch.setattr(
        Figure, "savefig", lambda figure, *_, **__: titles.extend(axes.get_title() for axes in figure.axes)
    )
    weak = [row(workers=2, mode=WEAK, time_s=1.1), row("joblib", workers=2, mode=WEAK)]
    rows = completed([row(), row(workers=2), row("joblib"), *weak])
    scaling_charts.plot_scaling(rows, tmp_path / "a.png", "here")
    assert [title.split(" ")[:2] for title in titles] == [["strong:", "4,000²"], ["weak:", "4,000²"]]


def test_workers_behind_an_address_are_drawn_and_told(tmp_path):
    rows = completed([row("dask", workers=n, kind="worker", size=100_000, chunk=10_000) for n in (2, 4)])
    assert len(scaling_tables.build_tables(rows)) == 1
    scaling_charts.plot_scaling(rows, tmp_path / "a.png", "here")
    assert spread_of_pixels(tmp_path / "a.png") > 0.05


def test_a_line_that_begins_with_two_workers_lies_where_its_efficiency_is_seen():
    from matplotlib.figure import Figure

    rows = completed([row(workers=2), row(workers=4, time_s=0.5)])
    assert "2.00 times the work of 2 cores" in scaling_charts.scaling(rows, "core", "strong").text
    axes = Figure().add_subplot()
    handles = scaling_charts.draw_lines(axes, "core", {"ray": rows}, ["ray"])
    assert handles["ray"].get_xydata().tolist() == handles[" ideal"].get_xydata().tolist() == [[2, 2], [4, 4]]


def test_a_drawing_has_content(tmp_path):
    rows = completed([row(), row(workers=2, time_s=0.6), row(workers=2, mode=WEAK, time_s=1.1)])
    scaling_charts.plot_scaling(rows, tmp_path / "a.png", "here")
    assert spread_of_pixels(tmp_path / "a.png") > 0.05


@pytest.mark.parametrize("rows", [[], [row()], [row(), row("joblib", workers=2)]])
def test_a_line_needs_two_numbers_of_workers(rows, tmp_path):
    with pytest.raises(ScaleError, match="There is nothing to draw"):
        scaling_charts.plot_scaling(completed(rows), tmp_path / "a.png", "here")


def test_what_rests_on_a_recipe_that_has_changed_is_marked(clone):
    first = git(clone, "rev-parse", "HEAD")
    recipe = clone / "recipes/random_subset_mean/with_ray.py"
    rewrite(recipe, recipe.read_text() + "\nOTHER = 1\n")
    git(clone, "commit", "--quiet", "--all", "--message=two")
    keep(clone / "benchmarks/results", "m", [row()], first)
    keep(clone / "benchmarks/results", "m", [row(workers=2, time_s=0.5)], git(clone, "rev-parse", "HEAD"))
    chart = scaling_charts.scaling(store.kept_of(clone / "benchmarks/results", "m")[0], "core", "strong")
    assert [[entry.text for entry in entries[2:]] for entries in chart.table.rows] == [
        ["†1.00 × (†1.00 s)", "†2.00 × (500 ms)"]
    ]
