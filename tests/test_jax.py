"""JAX: what the tool sees of its arrays, how a GPU is timed on which it computes, and what its recipes must not do."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import workloads_of_kernels

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run import device, manners, memory, runner
from gpu_cookbook.run.contract import steps
from gpu_cookbook.run.loader import Loader

needs_jax = pytest.mark.skipif(not machine.installed("jax"), reason="jax not installed")
RECIPES = [recipe for recipe in catalogue.recipes() if recipe.technique == "jax"]
WITH_ARRAYS = [pytest.param(r, id=r.workload) for r in RECIPES if "upload" in r.functions]


def test_there_is_a_recipe_of_each_workload():
    others = {"convolution", "pca", "regression", "training"}
    assert {recipe.workload for recipe in RECIPES} == workloads_of_kernels() | others


def test_a_recipe_runs_without_preallocated_memory_and_kept_executables(monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/kept")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    settings = runner.environment("folder")
    assert settings["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert "JAX_COMPILATION_CACHE_DIR" not in settings


def loaded(recipe):
    return steps(Loader(recipe).execute(), catalogue.workload_module(recipe.workload))


@needs_jax
@pytest.mark.parametrize("recipe", WITH_ARRAYS)
@pytest.mark.parametrize("offset", range(16))
def test_an_upload_keeps_nothing_of_its_callers_array(recipe, offset):
    """At any address: JAX keeps NumPy's memory where it is aligned well enough."""
    upload, *_ = loaded(recipe)
    host = catalogue.workload_module(recipe.workload).inputs(recipe_size(recipe))[0]
    memory_of = np.zeros(host.nbytes + 64 * 16, np.uint8)
    start = -memory_of.ctypes.data % 64 + 8 * offset
    array = memory_of[start : start + host.nbytes].view(host.dtype).reshape(host.shape)
    array[...] = host
    (there,) = upload(array)
    array[...] = -1
    np.testing.assert_array_equal(np.asarray(there), host)


def recipe_size(recipe):
    tall = dict.fromkeys(("pca", "regression", "subset_mean"), (1_000, 300))
    sizes = {**tall, "convolution": (100_003, 20), "training": (8, 2), "matmul": 200}
    return sizes.get(recipe.workload, 100_003)


@needs_jax
@pytest.mark.parametrize("mode", [False, True])
@pytest.mark.parametrize("recipe", [pytest.param(r, id=r.workload) for r in RECIPES])
@pytest.mark.slow
def test_a_recipe_gives_the_same_whatever_its_caller_has_set(recipe, mode):
    """And leaves it, in this thread and in others."""
    import jax

    upload, function, wait, download = loaded(recipe)
    workload = catalogue.workload_module(recipe.workload)
    inputs = workload.inputs(workload.EDGE_SIZES[3 if recipe.workload == "random_subset_mean" else -1])
    before = dict(jax.config.values)
    with jax.enable_x64(mode):
        within = dict(jax.config.values)
        result = function(*upload(*inputs))
        wait(result)
        assert np.asarray(download(result)).dtype == (inputs[0].dtype if hasattr(inputs[0], "dtype") else np.float64)
        assert jax.config.values == within
    assert jax.config.values == before
    np.testing.assert_array_equal(download(result), download(function(*upload(*inputs))))


@needs_jax
def test_what_the_memory_of_an_array_holds_is_read_and_not_written():
    import jax.numpy as jnp

    for host in (
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.float32(3).reshape(()),
        np.zeros((0, 2), np.float32),
    ):
        array = jnp.array(host)
        array.block_until_ready()
        np.testing.assert_array_equal(memory.read(array), host)
        np.testing.assert_array_equal(memory.held(array), host.reshape(-1))
        assert not memory.write(array, host + 1) and not memory.is_changeable(array)
        assert memory.change_one(array, 1) is None
        np.testing.assert_array_equal(array, host)


@needs_jax
def test_two_results_are_told_apart():
    import jax.numpy as jnp

    first, second = jnp.ones(5) + 1, jnp.ones(5) + 1
    assert memory.identity(first) == memory.identity(first) != set()
    assert not memory.identity(first) & memory.identity(second)


def test_a_result_that_is_still_computed_is_none():
    late = type("ArrayImpl", (), {"__module__": "jaxlib._jax", "is_ready": lambda self: False})()
    with pytest.raises(memory.Deferred, match=r"after wait\(\), the ArrayImpl that is the result is not done"):
        memory.read(late)


@needs_jax
def test_a_setting_that_stays_is_noticed():
    import jax

    before = manners.settings()
    jax.config.update("jax_enable_x64", True)
    try:
        assert manners.differences(before, manners.settings()) == ["JAX's jax_enable_x64"]
    finally:
        jax.config.update("jax_enable_x64", False)
    assert manners.differences(before, manners.settings()) == []


class MadeUp(device.CudaOfJax):
    """Whose calls take 1 ms each once it is held no longer; what it was asked to do."""

    TAKES = 1e-3

    def __init__(self):
        self.asked, self.now, self.free, self.queued = [], 0.0, 0.0, 0
        self.device = SimpleNamespace(sync=self.sync)

    def occupy(self, seconds):
        self.asked.append(("occupy", seconds))
        self.free = self.now + seconds

    def spin(self, seconds):
        raise AssertionError("JAX's stream does not wait for that one")

    def call(self):
        self.queued += 1
        assert self.queued < 32, "JAX would wait"
        self.now += 1e-5
        self.free = max(self.free, self.now) + self.TAKES

    def sync(self):
        self.now, self.queued = max(self.now, self.free), 0


def test_calls_wait_for_free_multiprocessors_and_the_hosts_clock_times_them(monkeypatch):
    made_up = MadeUp()
    monkeypatch.setattr(device.time, "perf_counter", lambda: made_up.now)
    assert made_up.device_times(made_up.call, 1e-3) == pytest.approx([MadeUp.TAKES] * device.BATCHES)
    assert made_up.asked
