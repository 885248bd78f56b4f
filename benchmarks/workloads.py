"""The asv suite: one class per workload, made from the recipes of the installed gpu_cookbook.

Nothing is listed here: a new recipe or workload appears by itself.
"""

import atexit
import os
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from asv_runner.benchmarks.mark import SkipNotImplemented

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Metric, Size
from gpu_cookbook.run import measure, runner
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.run.precision import workload_for
from gpu_cookbook.run.worker import device_of
from gpu_cookbook.store import conditions

RESULTS = Path(__file__).parent / "results"
_ready: dict[str, measure.Calls] = {}  # the only result of this process: asv starts a process for each


def _recipe(workload: str, technique: str, size: Size | None = None) -> catalogue.Recipe:
    """The recipe. If it does not run here, a NotImplementedError with the reason, for which asv shows n/a."""
    try:
        (recipe,) = catalogue.choose([workload], [technique])
    except catalogue.UnknownName as error:  # at an older commit
        raise NotImplementedError(str(error)) from None
    reason = machine.obstacle(recipe)
    if reason is None and size is not None and size not in catalogue.default_sizes(workload):
        reason = "too large for a machine without a GPU"
    if reason:
        raise NotImplementedError(reason)
    return recipe


def _prepare(workload: str, technique: str, size: Size, replayed: bool = False, on_host: bool = False) -> None:
    """Puts the timed calls of a result into _ready, with everything compiled and the data on the device.

    asv calls setup before every sample, but only the first call does all that; the others go to the next set of
    arguments. The results of the last calls are compared when the process ends; if one is wrong, the benchmark fails.
    """
    if _ready:
        _ready["calls"].turn()
        return
    recipe = _recipe(workload, technique, size)
    if replayed and "prepared" not in recipe.functions:
        raise NotImplementedError("has no prepared()")
    for result in runner.run(recipe, "check", list(catalogue.workload_module(workload).EDGE_SIZES)):
        if not result.ok:
            raise RuntimeError(f"wrong at {result.label}: {result.reason}")
    module = Loader(recipe).execute()
    engine = ExitStack()
    if hasattr(module, "engine"):
        engine.enter_context(module.engine())
    facts = workload_for(recipe)
    too_large = measure.does_not_fit(facts, size, device_of(recipe, module, facts))
    if too_large:
        raise NotImplementedError(too_large)
    calls = measure.Calls(module, facts, size)
    if replayed:
        calls.prepare()
        call = calls.replayed
    elif on_host:
        calls.begin("with transfer: ", on_host=True)
        call = calls.there_and_back
    else:
        calls.begin(poisoned=True)
        call = calls.synchronised
    call(calls.now)
    calls.verify_all()
    _ready["calls"] = calls

    def compare_and_close() -> None:
        try:
            calls.finish(call)
        except measure.Wrong as fault:
            print(f"wrong: {fault}", flush=True)
            os._exit(1)
        engine.close()

    atexit.register(compare_and_close)


def _measured(workload: str, technique: str, size: Size, metric: Metric) -> float:
    """One metric of a result, measured in a fresh process as gpu-cookbook compare does."""
    recipe = _recipe(workload, technique, size)
    (result,) = runner.run(recipe, "measure", [size])
    if result.wrong:
        raise RuntimeError(result.reason)
    value = result.value(metric)
    if value is None:
        raise SkipNotImplemented(result.reason or result.no_device_time or "does not apply")
    return value


def _suite(workload: str) -> type:
    module = catalogue.workload_module(workload)
    recipes = catalogue.of_workload(workload)
    techniques = [recipe.technique for recipe in recipes]

    class Suite:
        params = (techniques, list(module.SIZES))
        param_names = ("technique", "size")
        version = measure.VERSION
        timeout = module.TIME_LIMIT + runner.START_LIMIT
        rounds = 1
        number = 1
        repeat = (measure.SAMPLES, 1000, 2.0)
        warmup_time = 0.1  # everything was compiled in setup

        def time_resident(self, technique, size):
            _ready["calls"].synchronised(_ready["calls"].now)

        def track_device_time(self, technique, size):
            return _measured(workload, technique, size, Metric.DEVICE)

        def track_first_result(self, technique):
            return _measured(workload, technique, module.SIZES[0], Metric.FIRST)

        def track_peak_device_memory(self, technique, size):
            return _measured(workload, technique, size, Metric.MEMORY)

        def track_error(self, technique, size):
            return _measured(workload, technique, size, Metric.ERROR)

        def track_conditions(self, technique, size):
            """The number of a line in results/conditions.jsonl: versions, device, driver, clock, math mode."""
            recipe = _recipe(workload, technique, size)
            (result,) = runner.run(recipe, "check", [module.EDGE_SIZES[1]])
            return conditions.record(RESULTS, result)

        def runs_here(technique, size=None):
            _recipe(workload, technique, size)

        def prepared(technique, size):
            _prepare(workload, technique, size)

        time_resident.setup = prepared
        if any("prepared" in recipe.functions for recipe in recipes):

            def time_prepared(self, technique, size):
                _ready["calls"].replayed(_ready["calls"].now)

            def ready_to_replay(technique, size):
                _prepare(workload, technique, size, replayed=True)

            time_prepared.setup = ready_to_replay
            del ready_to_replay

        for track in (track_device_time, track_first_result, track_peak_device_memory, track_error, track_conditions):
            track.setup = runs_here
        track_device_time.unit = track_first_result.unit = "seconds"
        track_peak_device_memory.unit = "bytes"
        track_error.unit = "relative"
        track_first_result.params = (techniques,)
        track_first_result.param_names = ("technique",)

        if any(isinstance(x, np.ndarray) for x in module.inputs(module.EDGE_SIZES[0])):

            def time_transfer(self, technique, size):
                _ready["calls"].there_and_back(_ready["calls"].now)

            def ready_on_the_host(technique, size):
                _prepare(workload, technique, size, on_host=True)

            time_transfer.setup = ready_on_the_host
            del ready_on_the_host

        del prepared, runs_here, track

    Suite.__name__ = Suite.__qualname__ = workload
    return Suite


globals().update({name: _suite(name) for name in catalogue.workloads() if catalogue.of_workload(name)})
