"""What a page says where the stored results decide nothing: a doubtful time costs its own place, never the page."""

from pathlib import Path

import pytest
from cloning import gpu_machine
from docutils import nodes
from drawing import LARGE, SMALL, exactly, result

from gpu_cookbook import catalogue
from gpu_cookbook.results import Metric, Origin
from gpu_cookbook.store.transfers import Kept, Step

DOUBTFUL = {"doubts": {Metric.RESIDENT: "the GPU slowed down because of its power limit"}}


@pytest.fixture
def said(monkeypatch):
    """The text that a role makes of its words, from these results."""
    for folder in ("benchmarks", "docs"):
        monkeypatch.syspath_prepend(Path(__file__).parents[1] / folder)
    import figures
    import stored

    monkeypatch.setattr(figures.Figure, "link", lambda self, text, *place, **more: nodes.Text(text))

    def of(role, words, *results, runs=()):
        monkeypatch.setattr(stored, "every_transferred", lambda: runs)
        monkeypatch.setattr(stored, "of", lambda machine, workload=None: results)
        monkeypatch.setattr(stored, "results", lambda: {stored.GPU_MACHINE: results})
        return "".join(getattr(figures, role)().figure(*words.split("/")))

    return of


MACHINE = gpu_machine()
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


def run(commit, seconds, machine=MACHINE, **others):
    """A run in which 1 GiB takes so long to the GPU."""
    steps = {name: Step(name, exactly(time)) for name, time in (others | {"limit_up": seconds}).items()}
    return Kept(Origin(machine, commit, "", "2026-11-21"), "H200", "1", "Xeon", "", 2**28, steps)


OWN, NEWER, ELSEWHERE = run("own", 0.02), run("newer", 0.04), run("newest", 0.08, "another")


def pinned(technique, workload, size, commit="own", **changes):
    origin = Origin(MACHINE, commit, "existing", "2026-11-21")
    return result(technique, size, workload=workload, origin=origin, **changes)


def test_a_call_is_held_to_the_bus_of_its_own_commit_or_else_to_the_newest_of_its_machine(said):
    words, runs = "increment cupy_transfer_tuned", (OWN, NEWER, ELSEWHERE)
    own, old = (pinned("cupy_transfer_tuned", "increment", LARGE, each, pinned=0.03) for each in ("own", "old"))
    assert said("Bus", words, own, runs=runs) == "1.50 ×"
    assert said("Bus", words, old, runs=runs) == "0.750 ×"
    assert said("Bus", words, own, runs=[ELSEWHERE]) == "(not measured yet)"
    assert said("Bus", "multiply", runs=runs) == "80.0 ms"  # two arrays
    with pytest.raises(Exception, match="is not among the results"):
        said("Bus", words, result("cupy_transfer_tuned"), runs=runs)


@pytest.mark.parametrize(("call", "hidden"), [(0.00475, "none"), (0.00474, "0 %"), (0.003875, "23 %")])
def test_what_a_product_hides_is_what_its_call_takes_less_than_copies_and_work(said, call, hidden):
    # 192 MiB take 3.75 ms, and the product takes 1 ms.
    mine = pinned("torch_transfer_tuned", "matmul", 4_096, seconds=0.001, pinned=call)
    assert said("Hidden", "torch_transfer_tuned", mine, runs=[OWN]) == hidden
    assert said("Hidden", "torch_transfer_tuned", mine) == "(not measured yet)"


def test_what_a_clock_that_does_not_wait_leaves_out_is_of_one_machine(said, monkeypatch):
    import stored

    words, mine = f"multiply cupy {LARGE} / cupy 4 issued", pinned("cupy", "multiply", LARGE, device=1e-3)
    for launched, expected in ((run("own", 1, cupy_4_issued=5e-6), "200 ×"), (OWN, "(not measured yet)")):
        monkeypatch.setattr(stored, "launched", lambda launched=launched: {MACHINE: {"cupy": launched}})
        assert said("Hasty", words, mine) == expected
    elsewhere = run("own", 1, "another", cupy_4_issued=5e-6)
    monkeypatch.setattr(stored, "launched", lambda: {"another": {"cupy": elsewhere}})
    with pytest.raises(Exception, match=f"launches of {MACHINE} were not measured"):
        said("Hasty", words, mine)


def test_a_time_of_an_all_reduce_is_that_of_the_machine_with_several_gpus(said, monkeypatch):
    import stored

    mine = run("own", 2**28, stored.GPUS_MACHINE, all_reduce_cupy_4_1024=1e-4, all_reduce_jax_4_1024=2e-4)
    ways = {"all_reduce_cupy_4": mine, "all_reduce_jax_4": mine}
    monkeypatch.setattr(stored, "reduced", lambda: {stored.GPUS_MACHINE: ways, MACHINE: {}})
    assert said("Reduced", "cupy 4 1_024") == "100 µs"
    assert said("Reduced", "jax 4 1_024 / cupy 4 1_024") == "2.00 ×"
    assert said("Reduced", "torch 4 1_024") == said("Reduced", "cupy 2 1_024") == "(not measured yet)"
    for words in ("cupi 4 1_024", "cupy 4 1_000", "cupy 4", "cupy four 1_024"):
        with pytest.raises(Exception, match="names nothing that benchmarks/all_reduce.py measures"):
            said("Reduced", words)


def test_the_machine_of_scaling_is_no_other(said):
    with pytest.raises(Exception, match=f"not of '{MACHINE}'"):
        said("Machine", MACHINE)


def test_a_range_is_that_of_all_runs_of_the_machine(said):
    assert said("Moved", "limit_up range", runs=[NEWER, OWN, ELSEWHERE]) == "20.0 ms to 40.0 ms in 2 runs"


def test_an_aim_is_reached_by_those_that_take_at_most_this_part_of_numpy_s_time(said):
    slow = {f"recipe_{name}": 0.3 for name in ("torch", "pycuda", "numba", "pyopencl")} | {"recipe": 0.3, "numpy": 1.0}
    runs = [run("a", 0.02, **slow), OWN, run("b", 0.02, "another", **slow | {"recipe": 0.22, "recipe_numba": 0.1})]
    assert said("Reached", "0.22", runs=runs) == (
        f"another, commit b: 2 of 5 (CuPy, Numba); {MACHINE}, commit a: 0 of 5"
    )
    assert said("Reached", "0.22", runs=[OWN]) == "(not measured yet)"


def test_a_rate_counts_the_images_of_whole_batches(said):
    mine = result("torch", (60_000, 1_024), 0.5, workload="training")
    assert said("Rate", "training torch 60_000x1_024", mine) == "119,000"  # 58 batches; 60,000 would be 120,000
    doubtful = result("torch", (60_000, 1_024), 0.5, workload="training", **DOUBTFUL)
    assert said("Rate", "training torch 60_000x1_024", doubtful) == "?119,000"
    with pytest.raises(Exception, match="has no images"):
        said("Rate", f"multiply cupy {LARGE}", result("cupy"))


@pytest.mark.parametrize(
    ("cpu", "gpu", "together"), [(1, 1, "500 ms, 2.00 ×"), (3, 1, "750 ms, 1.33 ×"), (1, 99, "990 ms, 1.01 ×")]
)
def test_two_at_once_take_at_least_what_their_speeds_add_up_to(said, cpu, gpu, together):
    pair = result("numpy", seconds=cpu), result("cupy", seconds=gpu)
    assert said("Both", f"multiply numpy {LARGE} / multiply cupy {LARGE}", *pair) == together


@pytest.mark.parametrize("other", [{"size": SMALL}, {"origin": OWN.origin}])
def test_two_at_once_share_one_work_on_one_machine(said, other):
    numpy = result("numpy", **other)
    with pytest.raises(Exception, match="did not do the same"):
        said("Both", f"multiply numpy {numpy.size} / multiply cupy {LARGE}", numpy, result("cupy"))


@pytest.mark.parametrize(("workload", "part"), [("multiply", 1), ("increment", 1), ("matmul", 1), ("subset_mean", 0.5)])
def test_every_input_goes_over_the_bus_or_every_other_row(workload, part, said):
    import figures

    module = catalogue.workload_module(workload)
    inputs = module.inputs(min(module.SIZES))
    larger = (max(module.SIZES) / min(module.SIZES)) ** inputs[0].ndim
    assert figures.SENT[workload] == pytest.approx(part * larger * sum(x.nbytes for x in inputs))
