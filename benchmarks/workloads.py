"""The asv suite: a class a workload, made from the recipes that the installed gpu_cookbook has.

Nothing is listed here: a new recipe or workload appears by itself.
"""

import atexit
import os
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from asv_runner.benchmarks.mark import SkipNotImplemented

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run import measure, runner
from gpu_cookbook.run.worker import Loader, device_of
from gpu_cookbook.store import conditions

RESULTS = Path(__file__).parent / "results"
_prepared = {}  # the one cell of this process: asv starts one for each


def _recipe(workload, technique, size=None):
    """The recipe; NotImplementedError with the reason where the cell does not run here: asv shows n/a."""
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


def _prepare(workload, technique, size):
    """The cell's timed calls, with everything compiled and the data on the device.

    asv calls setup before every sample; only the first time there is something to do. What the timed calls left is
    compared when the process ends, and makes the benchmark fail where it is wrong.
    """
    if _prepared:
        return
    recipe = _recipe(workload, technique, size)
    for cell in runner.run(recipe, "check", list(catalogue.workload_module(workload).EDGE_SIZES)):
        if cell["status"] != "ok":
            raise RuntimeError(f"wrong at {cell['size']}: {cell['reason']}")
    module = Loader(recipe).execute()
    engine = ExitStack()
    if hasattr(module, "engine"):
        engine.enter_context(module.engine())
    facts = catalogue.workload_module(workload)
    too_large = measure.does_not_fit(facts, size, device_of(recipe, module, facts))
    if too_large:
        raise NotImplementedError(too_large)
    calls = measure.Calls(module, facts, size)
    calls.begin()
    calls.synchronised()
    calls.verify()
    calls.poison()
    _prepared["calls"] = calls

    def compare_and_close():
        try:
            calls.verify() if calls.back is None else calls.verify_back()
        except measure.Wrong as fault:
            print(f"wrong: {fault}", flush=True)
            os._exit(1)
        engine.close()

    atexit.register(compare_and_close)


def _figure(workload, technique, size, name):
    """A figure of one cell, as gpu-cookbook compare takes it, in a fresh process."""
    recipe = _recipe(workload, technique, size)
    (cell,) = runner.run(recipe, "measure", [size], runner.probe([recipe]))
    if cell["status"] in ("failed", "refused"):
        raise RuntimeError(cell["reason"])
    if name not in cell:
        raise SkipNotImplemented(cell["reason"] or cell.get("device_reason") or "no NVIDIA GPU takes part")
    return cell[name]


def _suite(workload):
    module = catalogue.workload_module(workload)
    techniques = [recipe.technique for recipe in catalogue.choose([workload])]

    class Suite:
        params = (techniques, list(module.SIZES))
        param_names = ("technique", "size")
        version = measure.VERSION
        timeout = module.TIME_LIMIT + runner.START_LIMIT
        rounds = 1
        number = 1
        repeat = (measure.SAMPLES, 1000, 2.0)
        warmup_time = 0.1  # what compiles has done so in setup

        def time_resident(self, technique, size):
            _prepared["calls"].synchronised()

        def track_device_time(self, technique, size):
            return _figure(workload, technique, size, "device_s")

        def track_first_result(self, technique):
            return _figure(workload, technique, module.SIZES[0], "first_result_s")

        def track_peak_device_memory(self, technique, size):
            return _figure(workload, technique, size, "peak_device_memory_bytes")

        def track_conditions(self, technique, size):
            """The number of a line in results/conditions.jsonl: versions, device, driver, clock, math mode."""
            recipe = _recipe(workload, technique, size)
            (cell,) = runner.run(recipe, "check", [module.EDGE_SIZES[1]])
            return conditions.record(RESULTS, cell)

        def runs_here(technique, size=None):
            _recipe(workload, technique, size)

        def prepared(technique, size):
            _prepare(workload, technique, size)

        time_resident.setup = prepared
        for track in (track_device_time, track_first_result, track_peak_device_memory, track_conditions):
            track.setup = runs_here
        track_device_time.unit = track_first_result.unit = "seconds"
        track_peak_device_memory.unit = "bytes"
        track_first_result.params = (techniques,)
        track_first_result.param_names = ("technique",)

        if any(isinstance(x, np.ndarray) for x in module.inputs(module.EDGE_SIZES[0])):

            def time_transfer(self, technique, size):
                _prepared["calls"].there_and_back()

            time_transfer.setup = prepared

        del prepared, runs_here, track

    Suite.__name__ = Suite.__qualname__ = workload
    return Suite


globals().update({workload: _suite(workload) for workload in catalogue.workloads()})
