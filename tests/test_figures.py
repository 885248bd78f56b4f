"""What a page says where the stored results decide nothing: a doubtful time costs its own place, never the page."""

from pathlib import Path

import pytest
from docutils import nodes
from drawing import LARGE, SMALL, result

from gpu_cookbook.results import Metric

DOUBTFUL = {"doubts": {Metric.RESIDENT: "the GPU slowed down because of its power limit"}}


@pytest.fixture
def said(monkeypatch):
    """The text that a role makes of its words, from these results."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "docs")
    import figures
    import stored

    monkeypatch.setattr(figures.Figure, "link", lambda self, text, *place, **more: nodes.Text(text))

    def of(role, words, *results):
        monkeypatch.setattr(stored, "of", lambda machine, workload=None: results)
        monkeypatch.setattr(stored, "results", lambda: {stored.GPU_MACHINE: results})
        return "".join(getattr(figures, role)().figure(*words.split("/")))

    return of


BEST = f"multiply idiomatic {LARGE}"


def test_the_fastest_is_named_and_so_is_a_doubtful_time_that_does_not_count(said):
    cupy, torch = result("cupy", seconds=2.0), result("torch", seconds=1.0)
    assert said("Best", BEST, cupy, torch) == "torch"
    doubtful = result("jax", seconds=3.0, **DOUBTFUL)
    assert said("Best", BEST, cupy, torch, doubtful) == "torch (not counted, as its time is doubtful: jax)"
    another = result("numba", seconds=0.5, **DOUBTFUL)
    counted_apart = "torch (not counted, as their times are doubtful: jax, numba)"
    assert said("Best", BEST, cupy, torch, doubtful, another) == counted_apart
    assert said("Best", BEST, doubtful) == "(not decided) (not counted, as its time is doubtful: jax)"


def test_what_was_not_measured_has_no_fastest(said):
    with pytest.raises(Exception, match="is not among the results"):
        said("Best", BEST, result("cupy", SMALL))


def test_doubtful_times_do_not_say_from_which_size_a_gpu_pays(said):
    numpy = [result("numpy", SMALL, 1e-5), result("numpy", LARGE, 1e-1)]
    sure, doubtful = ([result("cupy", size, 1e-3, **more) for size in (SMALL, LARGE)] for more in ({}, DOUBTFUL))
    words = "multiply cupy resident/dask"
    cpu = [result("dask", SMALL, 1e-5), result("dask", LARGE, 1e-1)]
    assert said("Wins", words, *numpy, *cpu, *sure).startswith("from about ")
    assert said("Wins", words, *numpy, *cpu, *doubtful) == "(not decided)"
    with pytest.raises(Exception, match="was not compared with"):
        said("Wins", words, *numpy, *sure)
