"""One recipe in a process of its own: ``python -m gpu_cookbook.run.worker FD`` reads a job and writes JSON lines to FD.

A job is a JSON object on standard input: ``action`` check or measure with ``path``, ``sizes`` and ``probes``; scale
with ``path``, ``problems`` (rows, columns and chunk of each), ``workers`` and ``address``; join with ``framework`` and
``address``; or probe with ``kind``.

A line is {"device": name}, {"start": size} before a cell and {"cell": {…}} after it, or {"probe": {…}}; of scale
{"engine": {…}}, {"answer": {…}} of each problem and {"cost": {…}}; of join {"imported": framework} and {"behind": {…}};
and {"ending": reason} where something else than a cell failed.
"""

import time

start = time.perf_counter()
import numpy as np  # noqa: E402, F401 - timed here, since every recipe imports it and this process needs it before them

NUMPY_IMPORT = time.perf_counter() - start

import contextlib  # noqa: E402
import ctypes  # noqa: E402
import importlib  # noqa: E402
import importlib.util  # noqa: E402
import inspect  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
import traceback  # noqa: E402
from collections.abc import Callable, Sequence  # noqa: E402
from dataclasses import asdict  # noqa: E402
from pathlib import Path  # noqa: E402
from types import ModuleType  # noqa: E402
from typing import Any  # noqa: E402

from gpu_cookbook import catalogue, machine, scaling  # noqa: E402
from gpu_cookbook.results import Status, Timing  # noqa: E402
from gpu_cookbook.run import engines, measure  # noqa: E402
from gpu_cookbook.run.check import Expected, check_refusals, check_size, reason, steps  # noqa: E402
from gpu_cookbook.run.device import Cuda, EveryGpu, Host, OpenCl, Unmeasurable  # noqa: E402


class Loader:
    """A recipe's module in two steps, so that importing the framework is timed apart from running the file."""

    def __init__(self, recipe):
        self.recipe = recipe

    def imports(self):
        for name in self.recipe.imports:
            with contextlib.suppress(ModuleNotFoundError):  # an object of a module: executing the file imports it
                importlib.import_module(name)

    def execute(self):
        spec = importlib.util.spec_from_file_location(self.recipe.module, self.recipe.path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[self.recipe.module] = module  # processes that the recipe starts find its functions by this name
        spec.loader.exec_module(module)
        return module


def device_of(recipe, module, workload):
    """The device that the recipe computes on."""
    if recipe.runs_on == "every NVIDIA GPU":
        return EveryGpu()
    if recipe.runs_on == "OpenCL device":
        upload, function, *_ = steps(module, workload)
        return OpenCl(function(*upload(*workload.inputs(workload.EDGE_SIZES[1]))).queue)
    if recipe.runs_on == "NVIDIA GPU" or (recipe.runs_on == "NVIDIA GPU or CPU" and module.device.type == "cuda"):
        return Cuda()
    return Host()


def probe_of(device, probes):
    """What was measured of that device: {"copy_bandwidth_gb_per_s": …, "cache_bytes": …}; Unmeasurable if it failed."""
    kind = {Cuda: "cuda", EveryGpu: "cuda", OpenCl: "opencl", Host: "host"}[type(device)]
    if kind == "opencl" and probes.get("cuda", {}).get("device") == device.name:
        kind = "cuda"  # the same GPU; OpenCL names a smaller cache of it, CUDA the last one
    probe = probes[kind]
    if "failed" in probe:
        raise Unmeasurable(f"the copy bandwidth of {device.name} could not be measured: {probe['failed']}")
    count = len(machine.gpus()) if isinstance(device, EveryGpu) else 1
    return {name: probe[name] and count * probe[name] for name in ("copy_bandwidth_gb_per_s", "cache_bytes")}


def outcome(work, size):
    """The cell that ``work(size)`` makes: the figures that it returns, and how it went."""
    try:
        return {"size": size, "status": "ok", "reason": None} | (work(size) or {})
    except measure.Refused as error:
        return {"size": size, "status": "refused", "reason": str(error)}
    except (measure.Wrong, Unmeasurable) as error:
        return {"size": size, "status": "failed", "reason": str(error)}
    except Exception as error:  # a recipe may raise anything: that is its cell's outcome
        traceback.print_exc()
        return {"size": size, "status": "failed", "reason": reason(error)}


def probe(kind):
    device = {"host": Host, "cuda": Cuda, "opencl": OpenCl.default}[kind]()
    return {
        "device": device.name,
        "copy_bandwidth_gb_per_s": device.copy_bandwidth() / 1e9,
        "cache_bytes": device.cache_bytes(),
    }


def run(job, say):
    recipe = catalogue.read(Path(job["path"]))
    workload = catalogue.workload_module(recipe.workload)
    checking = job["action"] == "check"
    sizes = [tuple(size) if isinstance(size, list) else size for size in job["sizes"]]
    memory_base = measure.device_memory_used() if machine.gpus() and recipe.runs_on != "CPU" else None

    with contextlib.ExitStack() as engine:
        say(start=sizes[0])
        module, first = measure.first_result(Loader(recipe), workload, engine)
        for figure in ("first_result_s", "first_import_s"):
            first[figure] += NUMPY_IMPORT
        device = device_of(recipe, module, workload)
        say(device=device.name)

        def check(size):
            fault = check_size(module, workload, size, device, layouts=checking)
            if not fault and size == workload.EDGE_SIZES[-1]:
                fault = check_refusals(module, workload)
            if fault:
                raise measure.Wrong(fault)

        def figures(size):
            obstacle = measure.does_not_fit(workload, size, device)
            if obstacle:
                return {"status": "skipped", "reason": obstacle}
            probe = probe_of(device, job["probes"])
            values = measure.measure(module, workload, size, device, memory_base)
            measure.judge(values, workload, size, probe)
            return values | (first if size == sizes[0] else {})

        if not checking:
            for size in workload.EDGE_SIZES:
                cell = outcome(check, size)
                if cell["status"] != "ok":
                    fault = f"wrong at {workload.label(size)}: {cell['reason']}"
                    for wanted in sizes:
                        say(cell=cell | {"size": wanted, "reason": fault})
                    return
        for size in sizes:
            say(start=size)
            say(cell=outcome(check if checking else figures, size))


def scale(job: dict[str, Any], say: Callable[..., None]) -> None:
    """Times a recipe of random_subset_mean, until its mean is on the host, at each problem."""
    recipe = catalogue.read(Path(job["path"]))
    workload = catalogue.workload_module(recipe.workload)
    address = job["address"]
    start = time.perf_counter()
    loader = Loader(recipe)
    loader.imports()
    module = loader.execute()
    if address:
        by_value(module, engines)
    with contextlib.ExitStack() as engine:
        engine.enter_context(module.engine(address) if address else getattr(module, "engine", contextlib.nullcontext)())
        started = time.perf_counter() - start
        workers = engines.places(recipe.framework, engines.resource(recipe)) if address else job["workers"]
        if not workers:
            raise measure.Wrong("no workers are connected any more")
        dashboard = engines.dashboard() if recipe.framework == "Dask" else None
        say(engine={"start_s": started, "workers": workers, "dashboard": dashboard})
        _, function, wait, download = steps(module, workload)
        if recipe.framework == "multiprocessing":
            engine.enter_context(engines.none_lost(say))

        def answer(rows: int, columns: int, chunk: int, seed: int = 0) -> float:
            result = function(rows, columns, chunk, seed)
            wait(result)
            return download(result)

        def measured(problem: Sequence[int]) -> dict[str, Any]:
            means = []
            losses = engines.losses(recipe)
            start = time.perf_counter()
            means.append(answer(*problem))
            times = [time.perf_counter() - start]
            if times[0] <= measure.COLD_LIMIT:
                times = measure.sample(lambda: means.append(answer(*problem)))
            lost = losses()
            expected = Expected(workload, (*problem, 0))
            for mean in means:
                fault = expected.disagreement(np.float64(mean))
                if fault:
                    raise measure.Wrong(fault)
            low, high = min(means), max(means)
            # Without a worker the others may make other samples, but not the shared ones of the tuned lane.
            if not scaling.alike(low, high) and (recipe.shares_samples or not lost):
                raise measure.Wrong(f"one seed has the means {low!r} and {high!r}")
            timing = Timing.of(times)
            return {
                "time": (timing.median, timing.q1, timing.q3, timing.count),
                "mean": means[-1],
                "lost": lost,
            }

        for _ in range(engines.warm_up(recipe, workers)):
            answer(2 * workers, 2, 1)
        for problem in job["problems"]:
            say(answer=attempt(measured, problem))
        cost = engines.cost(recipe, module, workers)
        say(cost=cost and asdict(cost))


def attempt(work: Callable[[Sequence[int]], dict[str, Any]], problem: Sequence[int]) -> dict[str, Any]:
    """What the work returns, and how it went, whatever it raises."""
    try:
        return {"status": Status.OK, "reason": None} | work(problem)
    except measure.Wrong as error:
        return {"status": Status.FAILED, "reason": str(error)}
    except Exception as error:  # a recipe may raise anything
        traceback.print_exc()
        return {"status": Status.FAILED, "reason": reason(error)}


def join(job: dict[str, Any], say: Callable[..., None]) -> None:
    """Says what works for an engine that runs already: [how many, how many that others hold] of each kind."""
    framework, address = job["framework"], job["address"]
    by_value(engines)
    if framework == "Dask":
        from distributed import Client as connect
    else:
        from ray import init as connect
    say(imported=framework)
    with connect(address):
        say(behind={kind: (engines.places(framework, kind), engines.held(framework, kind)) for kind in ("CPU", "GPU")})


def by_value(*modules: ModuleType) -> None:
    """Has the functions and classes of these modules sent as code, as those of a script are, to workers that need not
    have this package."""
    for module in modules:
        for each in vars(module).values():
            if (inspect.isfunction(each) or inspect.isclass(each)) and each.__module__ == module.__name__:
                each.__module__ = "__main__"  # where pickle does not find it: then cloudpickle takes it, code and all


def main():
    # PR_SET_PDEATHSIG: nothing goes on measuring after gpu-cookbook was killed.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    job = json.load(sys.stdin)
    with os.fdopen(int(sys.argv[1]), "w", buffering=1) as pipe:

        def say(**message):
            pipe.write(json.dumps(message) + "\n")

        try:
            if job["action"] == "probe":
                say(probe=probe(job["kind"]))
            elif job["action"] == "scale":
                scale(job, say)
            elif job["action"] == "join":
                join(job, say)
            else:
                run(job, say)
        except Exception as error:  # outside of any cell: while importing, starting an engine, opening the device
            traceback.print_exc()
            say(ending=reason(error))


if __name__ == "__main__":
    main()
