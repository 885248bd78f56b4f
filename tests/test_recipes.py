"""Every recipe that runs on this machine is right, and safe to paste."""

import ast
import importlib
import multiprocessing
import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import HANG, recipes, starts_engine, starts_slowly
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Metric, Probe
from gpu_cookbook.run import runner
from gpu_cookbook.run.contract import flushes, repeats, steps, takes_axes
from gpu_cookbook.run.expected import Expected
from gpu_cookbook.run.worker import Loader

pytestmark = pytest.mark.usefixtures("kept_kernels")
# Engines start processes; 'check' runs these, in a process of its own each.
IN_PROCESS = [lambda recipe: not starts_engine(recipe)]
MODULES = {}
EXAMPLES = int(os.environ.get("EXAMPLES", "40"))


def is_quick(recipe):
    """Its complete check is not left to the slow tests."""
    numpy = recipe.technique == "numpy" and recipe.workload != "training"
    return numpy or (recipe.workload, recipe.technique) == ("multiply", "pyopencl")


def module_of(recipe):
    if recipe.module not in MODULES:
        MODULES[recipe.module] = Loader(recipe).execute()
    return MODULES[recipe.module]


def compute(recipe, inputs):
    upload, function, wait, download = steps(module_of(recipe), catalogue.workload_module(recipe.workload))
    result = function(*upload(*inputs))
    wait(result)
    return download(result)


def test_every_recipe_and_every_workload_can_be_used():
    """The other tests would not notice one that cannot: they leave it out, as the commands do."""
    assert catalogue.faults() == []


def test_an_idiomatic_recipe_names_the_pages_that_it_follows():
    idiomatic = [recipe for recipe in catalogue.recipes() if recipe.lane == "idiomatic"]
    assert [recipe.path for recipe in idiomatic if not recipe.follows] == []
    assert [page for recipe in idiomatic for page in recipe.follows if not page.startswith("https://")] == []


@pytest.mark.parametrize(
    "recipe", [each for each in catalogue.recipes() if "cp.asarray" in each.path.read_text("utf-8")]
)
def test_an_upload_by_cupy_waits_for_its_copies(recipe):
    """CuPy copies from page-locked memory while the caller goes on, and may fill it anew, unless it is to block."""
    functions = {each.name: each for each in ast.parse(recipe.path.read_text("utf-8")).body if hasattr(each, "args")}
    copies = [
        each for each in ast.walk(functions["upload"]) if isinstance(each, ast.Call) and "cp.asarray" in names(each)
    ]
    assert all("blocking" in [word.arg for word in each.keywords] for each in copies), recipe.path


def names(call):
    """The function that is called, and those that it is given: of map_blocks(cp.asarray), both."""
    return {ast.unparse(each) for each in (call.func, *call.args)}


def test_a_tuned_recipe_is_short_enough_to_be_pasted():
    """One is longer: it looks after the processes of several GPUs, and after one that is lost. Those for transfers have
    two ways, from page-locked arrays and from all others; and of matmul, for small products and for large ones.
    cuda.core has no arrays, so that 35 lines make some of memory and copy them; and it has no cuBLAS. In Warp each
    number of a kernel has its type, and a generator of more than 32 bits is written out. Numba has no sum over a block
    and no graphs, so that norm has both written out; on the CPU, its generator is, and its calls take turns."""
    tuned = [recipe for recipe in catalogue.recipes() if recipe.lane == "tuned"]
    lines = {recipe: len(recipe.path.read_text(encoding="utf-8").splitlines()) for recipe in tuned}
    for_transfers = {recipe for recipe in tuned if recipe.technique.endswith("_transfer_tuned")}
    most = {each: (150 if each.workload == "matmul" else 135) if each in for_transfers else 100 for each in tuned}
    longer = [each for each in tuned if each.framework in ("cuda.core", "Warp")]
    most |= {each: 150 if each.workload == "matmul" else 113 for each in longer}
    most |= dict.fromkeys(catalogue.choose(["norm"], ["numba_tuned"]), 114)
    most |= dict.fromkeys(catalogue.choose(["random_subset_mean"], ["numba_cpu_tuned"]), 107)
    assert [recipe.technique for recipe in tuned if lines[recipe] > most[recipe]] == ["torch_distributed_tuned"]


@pytest.mark.parametrize("recipe", recipes(slow=lambda recipe: not is_quick(recipe)))
def test_right_at_edge_sizes_layouts_and_values(recipe):
    sizes = list(catalogue.workload_module(recipe.workload).EDGE_SIZES)
    results = list(runner.run(recipe, "check", sizes))
    assert [each.size for each in results] == sizes
    assert [each.reason for each in results if not each.ok] == []


@pytest.mark.skipif(not machine.installed("dask"), reason="dask not installed")
@pytest.mark.parametrize("recipe", catalogue.choose(["group_mean", "group_mean_strings"], ["dask"]))
def test_dask_puts_many_partitions_in_order(recipe, monkeypatch):
    """None of the edge sizes has as many rows as a partition."""
    monkeypatch.setattr(module_of(recipe), "ROWS", 50)
    workload = catalogue.workload_module(recipe.workload)
    keys, values = workload.inputs((1_003, 400))
    for inputs in ((keys, values), (keys - 200, values), (np.sort(keys), values)):
        assert Expected(workload, inputs).disagreement(compute(recipe, inputs)) is None


def test_variances_of_pca_that_are_exactly_equal_leave_room():
    workload = catalogue.workload_module("pca")
    for samples in (np.vstack((np.eye(10), -np.eye(10))), np.zeros((20, 10))):
        limits = workload.tolerance(workload.reference(samples), samples)
        assert np.all(limits >= 0) and np.all(limits[:, 1:] == 2)  # no direction is more right than another


def test_a_size_of_pca_with_too_few_rows_or_columns_is_refused():
    for size in ((9, 20), (20, 9)):
        with pytest.raises(ValueError, match=f"at least 10 rows and 10 columns, not {size[0]}×{size[1]}"):
            catalogue.workload_module("pca").inputs(size)


def test_a_recipe_of_each_framework_for_one_gpu_has_pinned():
    """One page shows the work, another one page-locked arrays."""
    techniques = ("cuda_core", "cupy", "numba", "numba_mlir", "pycuda", "pyopencl", "torch", "warp")
    found = [recipe for recipe in catalogue.recipes() if "pinned" in recipe.functions]
    names = {(workload, name) for workload in catalogue.workloads() for name in techniques}
    no_array = ("group_mean", "group_mean_strings", "random_subset_mean", "read_parquet", "training")
    without = {(workload, name) for workload in no_array for name in techniques}
    arrays = ("convolution", "pca", "regression")
    without |= {(workload, name) for workload in arrays for name in techniques if name not in ("cupy", "torch")}
    assert names - {(recipe.workload, recipe.technique) for recipe in found} == without
    assert {len(recipe.follows) for recipe in found if recipe.technique in techniques} == {2}


PINS = [lambda recipe: recipe.workload == "multiply" and "pinned" in recipe.functions]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", recipes(*PINS))
def test_a_cpu_has_no_time_from_page_locked_arrays(recipe):
    (result,) = runner.run(recipe, "measure", [1000], probe=Probe("made up", 1e9, 0))
    assert Metric.TRANSFER in result.timings, result.reason
    assert (Metric.PINNED in result.timings) == (result.device in [gpu.name for gpu in machine.gpus()])


@contextmanager
def float64_by_default(torch):
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


OF_THE_CALLER = {
    "float64": float64_by_default,
    "another device": lambda torch: torch.device("meta"),  # on which no tensor has values
    "no gradients": lambda torch: torch.no_grad(),
}
ON_TENSORS = [*IN_PROCESS, lambda recipe: "torch" in recipe.packages]


@pytest.mark.parametrize("setting", OF_THE_CALLER)
@pytest.mark.parametrize("recipe", recipes(*ON_TENSORS, slow=starts_slowly))
def test_what_pytorch_does_by_default_changes_no_result(recipe, setting):
    """These are settings of the whole process or thread, and so the caller's."""
    workload, module = catalogue.workload_module(recipe.workload), module_of(recipe)
    sizes = workload.EDGE_SIZES[:4]
    every = [(inputs, Expected(workload, inputs)) for inputs in map(workload.inputs, sizes)]
    with OF_THE_CALLER[setting](importlib.import_module("torch")):
        faults = [expected.disagreement(compute(recipe, inputs)) for inputs, expected in every]
        if hasattr(module, "round_trip"):
            faults += [expected.disagreement(module.round_trip(*inputs)) for inputs, expected in every]
    assert not any(faults), faults


@pytest.mark.parametrize("recipe", recipes(*IN_PROCESS, lambda recipe: "joblib" in recipe.packages, slow=starts_slowly))
def test_a_backend_that_the_caller_has_chosen_for_joblib_changes_no_result(recipe):
    """Threads that fill one array are asked for where they are needed, and not only preferred."""
    joblib, workload = importlib.import_module("joblib"), catalogue.workload_module(recipe.workload)
    inputs = workload.inputs(workload.EDGE_SIZES[3])
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert Expected(workload, inputs).disagreement(compute(recipe, inputs)) is None


WITH_COLUMNS = ("multiply", "increment", "norm", "subset_mean", "matmul")


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value encountered")
@pytest.mark.parametrize(
    "recipe", recipes(*IN_PROCESS, lambda recipe: recipe.workload in WITH_COLUMNS, slow=starts_slowly)
)
def test_an_empty_array_may_have_many_columns(recipe):
    workload = catalogue.workload_module(recipe.workload)
    inputs = [np.zeros((0, 6_000), x.dtype) for x in workload.inputs(workload.EDGE_SIZES[-1])]
    if recipe.workload == "matmul":
        inputs[1] = np.zeros((6_000, 3), np.float32)
    assert Expected(workload, inputs).disagreement(compute(recipe, inputs)) is None


FROM_A_FORK = """
import os, sys
from pathlib import Path
from gpu_cookbook import catalogue
from gpu_cookbook.run.expected import Expected
from gpu_cookbook.run.contract import steps
from gpu_cookbook.run.loader import Loader

if __name__ == "__main__":
    recipe = catalogue.read(Path(sys.argv[1]))
    workload, module = catalogue.workload_module(recipe.workload), Loader(recipe).execute()
    upload, function, _, download = steps(module, workload)
    expected = Expected(workload, workload.inputs(workload.EDGE_SIZES[3]))
    with module.engine():
        given = upload(*expected.inputs)
        if (child := os.fork()) == 0:
            del given
            os._exit(0)
        os.waitpid(child, 0)
        assert expected.disagreement(download(function(*given))) is None
"""


@pytest.mark.slow
@pytest.mark.timeout(HANG)
@pytest.mark.parametrize(
    "recipe", [each for each in catalogue.recipes() if "SharedMemory(create" in each.path.read_text("utf-8")]
)
def test_a_fork_leaves_its_parent_the_shared_memory(recipe, tmp_path):
    (tmp_path / "fork.py").write_text(FROM_A_FORK)
    subprocess.run([sys.executable, tmp_path / "fork.py", recipe.path], check=True, timeout=120)


def test_an_interrupted_sum_of_several_gpus_is_no_other_calls_answer():
    """The function by itself: its module needs a GPU. What comes after Ctrl-C would stay in the pipe."""
    (recipe,) = catalogue.choose(["random_subset_mean"], ["torch_distributed_tuned"])
    (total,) = [each for each in ast.parse(recipe.path.read_text("utf-8")).body if getattr(each, "name", "") == "total"]
    killed, ours, theirs = [], *multiprocessing.Pipe()

    def interrupted(_):
        theirs.send(1.0)
        raise KeyboardInterrupt

    job = SimpleNamespace(sentinels=[], processes=[SimpleNamespace(kill=lambda: killed.append(1))])
    names = {"pipes": [ours], "job": job, "TURN": threading.Lock(), "connection": SimpleNamespace(wait=interrupted)}
    exec(compile(ast.Module([total], []), recipe.path, "exec"), names)
    with pytest.raises(KeyboardInterrupt):
        names["total"](2, 2, 0)
    assert not names["pipes"] and killed


FROM_TWO_THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba

from gpu_cookbook import catalogue
from gpu_cookbook.run.expected import Expected
from gpu_cookbook.run.contract import steps
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.run.transfers import few_pieces

recipe = catalogue.read(Path(sys.argv[1]))
workload = catalogue.workload_module(recipe.workload)
upload, function, _, download = steps(Loader(recipe).execute(), workload)

def faults(seed):
    expected = Expected(workload, workload.inputs(few_pieces(workload.MANY_PIECES), seed))
    given = [upload(*expected.inputs) for _ in range(10)]
    results = [function(*each) for each in given]
    return [fault for result in results if (fault := expected.disagreement(download(result)))]

with ThreadPoolExecutor(2) as pool:
    assert list(pool.map(faults, (0, 1))) == [[], []]
assert numba.threading_layer() == "workqueue"
"""


# random_subset_mean works in Python's threads.
IN_NUMBAS_THREADS = [lambda recipe: recipe.technique == "numba_cpu", lambda recipe: not recipe.engine]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", recipes(*IN_NUMBAS_THREADS))
def test_numba_on_the_cpu_takes_calls_from_two_threads_without_libgomp(recipe):
    """It then has threads of its own, and ends the process if it is called while it works."""
    done = subprocess.run(
        [sys.executable, "-c", FROM_TWO_THREADS, recipe.path],
        env={**os.environ, "NUMBA_THREADING_LAYER": "workqueue"},
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stderr


def layouts(values):
    """Arrays of any small shape, with steps of any sign, in C or Fortran order, read-only or not."""

    @st.composite
    def layout(draw, shape):
        steps_ = [draw(st.sampled_from([1, 2, -1, -3])) for _ in shape]
        base = draw(values(tuple(n * abs(s) for n, s in zip(shape, steps_, strict=True))))
        if draw(st.booleans()):
            base = np.array(base, order="F")
        array = base[(*(slice(None, None, s) for s in steps_), ...)]  # not a scalar where there are no axes
        array.flags.writeable = draw(st.booleans())
        return array

    return layout


def floats(shape):
    return arrays.arrays(np.float32, shape, elements=st.floats(width=32))


def halves(dtype):
    """A sum of them is exact in float32 in any order, so that no tolerance hides a fault. NumPy makes them from a seed:
    drawn one by one they took longer than what they are for."""
    return lambda shape: st.integers(0, 2**32 - 1).map(
        lambda seed: (np.random.default_rng(seed).integers(-64, 64, shape, endpoint=True) / 2).astype(dtype)
    )


SIDES, CHUNKS = st.integers(0, 40), st.integers(1, 50)


@st.composite
def inputs_of(draw, recipe):
    workload = recipe.workload
    if workload == "random_subset_mean":
        jax = recipe.framework == "JAX"  # which compiles for each shape of a chunk: here for 25 at the most
        side, chunk = (st.sampled_from([0, 1, 12, 25]), st.sampled_from([1, 5, 50])) if jax else (SIDES, CHUNKS)
        return draw(side), draw(side), draw(chunk), draw(st.integers(0, 2**31 - 1))
    if workload == "subset_mean":
        x = draw(layouts(halves(np.float64))((draw(SIDES), draw(SIDES))))
        # Adding 1 to the mean cancels near -1: the mean is off by up to 2**-53, and 64 × 2**-53 of the result r are
        # allowed, which is less than two such errors where |r| < 1/32.
        assume(not 0 < abs(catalogue.workload_module(workload).reference(x)) < 1 / 32)
        return (x,)
    if workload == "matmul":
        m, k, n = draw(SIDES), draw(SIDES), draw(SIDES)
        layout = layouts(halves(np.float32))
        return draw(layout((m, k))), draw(layout((k, n)))
    if workload in ("group_mean", "group_mean_strings", "read_parquet"):
        rows = draw(st.integers(0, 400))
        step = draw(st.sampled_from([1, 2**31, 2**40 + 1]))
        keys = draw(layouts(lambda shape: halves(np.int64)(shape).map(lambda whole: whole * step))((rows,)))
        return keys, draw(layouts(halves(np.float64))((rows,)))
    if workload == "convolution":  # whose tolerance is far below the step of 1/4 between sums of products of halves
        samples, taps = draw(st.sampled_from([0, 1, 2, 31])), draw(st.sampled_from([0, 1, 5]))  # JAX compiles for each
        layout = layouts(halves(np.float32))
        return draw(layout((samples,))), draw(layout((taps,)))
    if workload == "regression":
        rows, columns = draw(st.sampled_from([1, 2, 9, 30])), draw(st.sampled_from([1, 4, 12]))  # JAX compiles for each
        layout = layouts(halves(np.float64))
        return draw(layout((rows, columns))), draw(layout((rows,)))
    if workload == "pca":
        return (draw(layouts(halves(np.float64))((draw(st.sampled_from([10, 30])), draw(st.sampled_from([10, 12]))))),)
    shape = draw(arrays.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=12) | st.tuples(SIDES, SIDES))
    # Of a norm, special_inputs() has the special values: sums of any others are rounded, maybe all in one direction.
    layout = layouts(halves(np.float32) if workload == "norm" else floats)
    return tuple(draw(layout(shape)) for _ in range(2 if workload == "multiply" else 1))


# Those of training have one shape each, but for the batch, and so many weights that a call takes long: see
# test_training.py.
OF_ANY_SHAPE = [*IN_PROCESS, lambda recipe: recipe.workload != "training"]


@pytest.mark.parametrize("recipe", recipes(*OF_ANY_SHAPE, slow=starts_slowly))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_right_for_any_shape_layout_and_value(recipe, data):
    workload = catalogue.workload_module(recipe.workload)
    inputs = data.draw(inputs_of(recipe))
    if not takes_axes(module_of(recipe), inputs):
        with pytest.raises(ValueError, match=re.escape(str(inputs[0].shape))):
            compute(recipe, inputs)
        return
    before = [np.array(x) if isinstance(x, np.ndarray) else x for x in inputs]
    with np.errstate(all="ignore"):
        if repeats(workload):
            assert np.array_equal(compute(recipe, inputs), before[0] + np.float32(1), equal_nan=True)
        else:
            expected = Expected(workload, before, flush=flushes(module_of(recipe)))
            assert expected.disagreement(compute(recipe, inputs)) is None
