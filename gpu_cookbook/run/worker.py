"""One recipe in its own process: ``python -m gpu_cookbook.run.worker FD`` reads a job and writes JSON lines to FD.

A job is a JSON object on standard input: ``action`` check or measure with ``path``, ``sizes`` and ``probe``, measure
with ``answers``, too; scale with ``path``, ``problems`` (rows, columns and chunk of each), ``workers`` and ``address``;
join with ``framework`` and ``address``; launch with ``path`` and ``zeros``; all_reduce with ``path``, ``gpus`` and
``counts``; or together with ``paths`` of scripts, ``pairs`` of their names, and what is ``known``: a producer, a
consumer and a way each.

Each line is one of these: {"device": name}; {"start": size} before a result and {"result": {…}} after it; for check
{"manners": fault} if there is one; for scale {"engine": {…}}, {"answer": {…}} for each problem and {"cost": {…}}; for
join {"imported": framework} and {"behind": {…}}; for launch {"launch": […]} and for all_reduce {"all_reduce": […]} for
each time; for together {"missing": [name, reason]} for each library that cannot be imported, {"begins": [names and
way]} before and {"handover": {…}} after each way, and {"pair": [names]} after the last one of two; {"ending": reason}
if something other than a result failed; {"done": true} at the end.
"""

import time

start = time.perf_counter()
import numpy as np  # noqa: F401 - timed here: every recipe imports NumPy, and this process needs it earlier

NUMPY_IMPORT = time.perf_counter() - start

import contextlib
import ctypes
import fcntl
import gc
import importlib
import inspect
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from gpu_cookbook import catalogue, machine, scaling
from gpu_cookbook.results import Metric, Probe, Result, Size, Status, Timing, judged, to_wire
from gpu_cookbook.run import all_reduce, distribution, engines, launches, load, manners, measure, memory, together
from gpu_cookbook.run.check import check_call, check_often, check_refusals, check_size, fault_of_contents
from gpu_cookbook.run.contract import steps
from gpu_cookbook.run.device import Cuda, CudaOfJax, Device, EveryGpu, Host, OpenCl, Unmeasurable
from gpu_cookbook.run.expected import Expected
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.run.precision import inexact, workload_for
from gpu_cookbook.run.threads import QUICK, check_threads
from gpu_cookbook.run.transfers import check_transfers
from gpu_cookbook.words import reason

PR_SET_PDEATHSIG = 1
Say = Callable[..., None]  # sends a message with these keys
Outcome = TypeVar("Outcome", Result, scaling.Answer)


def device_of(recipe: catalogue.Recipe, module: ModuleType, workload: ModuleType) -> Device:
    """The device that the recipe computes on: where its result is, whatever its docstring says. That alone counts
    if the result is only a number."""
    if recipe.runs_on == "every NVIDIA GPU":
        return EveryGpu()
    upload, function, wait, _ = steps(module, workload)
    result = function(*upload(*workload.inputs(workload.EDGE_SIZES[1])))
    wait(result)
    if memory.is_opencl(result):
        return OpenCl(result.queue)
    if memory.is_cuda(result) or recipe.runs_on == "NVIDIA GPU":
        return CudaOfJax() if memory.is_jax(result) else Cuda()
    return Host()


def probe(device: Device) -> Probe:
    """What it can do at this moment, or why that could not be measured."""
    try:
        return device.probe()
    except Exception as error:  # a full memory, for instance
        return Probe(failed=_reason(error))


def attempt(work: Callable[[], Outcome], blank: Outcome) -> Outcome:
    """What ``work()`` returns; ``blank`` as failed, with the reason, if it raises."""
    try:
        return work()
    except BaseException as error:  # a recipe may raise anything, SystemExit as well; that is then its result
        return replace(blank, status=Status.FAILED, reason=_reason(error))


def _reason(error: BaseException) -> str:
    if isinstance(error, (measure.Wrong, Unmeasurable)):
        return str(error)
    traceback.print_exc()
    return reason(error)


def check(job: Mapping[str, Any], say: Say) -> None:
    """Checks a recipe at each size, and what it leaves behind or changes if that is all right."""
    recipe = catalogue.read(Path(job["path"]))
    workload = workload_for(recipe)
    watching = manners.Watch(recipe)
    with contextlib.ExitStack() as engine:
        say(start=_size(job["sizes"][0]))
        module = watching.load(engine)
        begun = time.process_time()  # which a busy machine does not lengthen
        device = device_of(recipe, module, workload)
        first = time.process_time() - begun
        say(device=device.name)
        results = []
        for size in map(_size, job["sizes"]):
            say(start=size)
            results.append(checked(recipe, module, workload, size, device, first))
            say(result=to_wire(results[-1]))
        right = all(each.ok for each in results)
        if right:
            watching.calls(module, workload)
    if right and (fault := watching.end()):
        say(manners=fault)


def checked(
    recipe: catalogue.Recipe, module: ModuleType, workload: ModuleType, size: Size, device: Device, first: float
) -> Result:
    """The result of a check, with the reason if it failed. What does not depend on the size is checked with the last
    edge size. ``first``: the seconds of a processor that the first call took."""
    blank = replace(Result.of(recipe, size, Status.OK), device=device.name)

    def work() -> Result:
        last = size == workload.EDGE_SIZES[-1]
        fault = check_size(module, workload, size, device) or inexact(module, workload, size)
        if last:  # before what takes long
            fault = fault or check_refusals(module, workload)
        fault = fault or check_transfers(module, workload, size, device)
        if not fault and last:
            fault = fault_of_contents(module, workload) or check_often(module, workload)
            fault = fault or check_threads(module, workload, device, first)
            for large in getattr(workload, "LARGE_SIZES", ()):
                fault = fault or inexact(module, workload, large)
            if not fault and recipe.workload == scaling.WORKLOAD:
                anew = isinstance(device, Host) and first < QUICK and not hasattr(module, "engine")
                fault = distribution.fault(recipe, module, workload, anew)
        if fault:
            raise measure.Wrong(fault)
        return blank

    return attempt(work, blank)


def compare(job: Mapping[str, Any], say: Say) -> None:
    """Measures a recipe at each size, after a look at its answers at the edge sizes. check() saw the rest."""
    begun = time.perf_counter()
    recipe = catalogue.read(Path(job["path"]))
    workload = workload_for(recipe)
    sizes = list(map(_size, job["sizes"]))
    made_up = Probe(**job["probe"]) if job["probe"] else None
    memory_base = measure.device_memory_used() if machine.gpus() and recipe.runs_on != "CPU" else None

    with contextlib.ExitStack() as engine:
        say(start=sizes[0])
        with load.watched() as watched:
            module, first = measure.first_result(Loader(recipe), workload, engine)
        first = replace(first, total=first.total + NUMPY_IMPORT, imports=(first.imports or 0) + NUMPY_IMPORT)
        device = device_of(recipe, module, workload)
        say(device=device.name)
        after: Probe | None = None

        def blank(size: Size) -> Result:
            return replace(Result.of(recipe, size, Status.OK), device=device.name)

        def measured(size: Size) -> Result:
            nonlocal after
            obstacle = measure.does_not_fit(workload, size, device) or recipe.refuses(size)
            if obstacle:
                return replace(blank(size), status=Status.SKIPPED, reason=obstacle)
            result = blank(size)
            if size == sizes[0] and watched.seen:
                result = replace(result, doubts={Metric.FIRST: watched.seen})
            # The one after a size is the one before the next, unless it failed.
            before = made_up or (after if after and not after.failed else probe(device))
            result = measure.measure(module, workload, result, device, memory_base, job.get("answers"))
            after = made_up or probe(device)
            best = before.better(after)
            if best.failed:
                raise Unmeasurable(f"the copy bandwidth of {device.name} could not be measured: {best.failed}")
            result = judged(result.beside(best))
            return replace(result, first=first) if size == sizes[0] and result.ok else result

        def right(size: Size) -> Result:
            if fault := check_call(module, workload, size):
                raise measure.Wrong(fault)
            return blank(size)

        for size in workload.EDGE_SIZES:
            edge = attempt(partial(right, size), blank(size))
            if not edge.ok:
                fault = f"wrong at {workload.label(size)}: {edge.reason}"
                for wanted in sizes:
                    say(result=to_wire(replace(blank(wanted), status=Status.FAILED, reason=fault)))
                return
        for size in sizes:
            say(start=size)
            result = attempt(partial(measured, size), blank(size))
            now = time.perf_counter()
            say(result=to_wire(replace(result, took=now - begun)))
            begun = now


def _size(size: int | list[int]) -> Size:
    return tuple(size) if isinstance(size, list) else size


def scale(job: dict[str, Any], say: Say) -> None:
    """Times a recipe of random_subset_mean for each problem, until its mean is on the host."""
    recipe = catalogue.read(Path(job["path"]))
    workload, plain = workload_for(recipe), catalogue.workload_module(recipe.workload)
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
            raise measure.Wrong("no workers are left at this address")
        dashboard = engines.dashboard() if recipe.framework == "Dask" else None
        say(engine=asdict(scaling.Started(started, workers, dashboard)))
        _, function, wait, download = steps(module, workload)
        if recipe.framework == "multiprocessing":
            engine.enter_context(engines.none_lost(say))

        def answer(problem: Sequence[int], seed: int = 0) -> float:
            result = function(*problem, seed)
            wait(result)
            return download(result)

        def measured(problem: Sequence[int]) -> scaling.Answer:
            # Of the seeds 0, 1, …: what a recipe keeps of one call is of no use to the next.
            means: list[float] = []
            losses = engines.losses(recipe)
            timed = measure.clocked(lambda: means.append(answer(problem, len(means))))
            times = [timed()]
            if times[0] <= measure.COLD_LIMIT:
                times = measure.sample(timed)
            again = [answer(problem, seed) for seed in range(len(means))] if len(means) > 1 else means
            lost = losses()
            for seed, mean in enumerate(means):
                seen = workload if seed in (0, len(means) - 1) else plain  # samples are made again for two of them
                fault = Expected(seen, (*problem, seed)).disagreement(np.float64(mean))
                if fault:
                    raise measure.Wrong(fault)
            if len(set(means)) < len(means) and np.isfinite(means[0]):
                raise measure.Wrong(f"among {len(means)} seeds, several gave the same mean")
            # If a worker is lost, the others may make other samples, except for the shared ones of the tuned lane.
            for seed, (first, second) in enumerate(zip(means, again, strict=True)):
                if not scaling.alike(first, second) and (recipe.shares_samples or not lost):
                    raise measure.Wrong(f"seed {seed} gave {first!r} the first time and {second!r} the second")
            return scaling.Answer(time=replace(Timing.of(times), samples=()), mean=means[0], lost=lost)

        for _ in range(engines.warm_up(recipe, workers)):
            answer((2 * workers, 2, 1))
        if recipe.shares_samples and (fault := distribution.fault(recipe, module, workload)):
            for _ in job["problems"]:
                say(answer=asdict(scaling.Answer(Status.FAILED, f"before it was timed: {fault}")))
            return
        for problem in job["problems"]:
            say(answer=asdict(attempt(partial(measured, problem), scaling.Answer())))
        cost = engines.cost(recipe, module, workers)
        say(cost=cost and asdict(cost))


def join(job: dict[str, Any], say: Say) -> None:
    """Reports the workers of a running engine: for each kind, how many there are and how many others are using."""
    framework, address = job["framework"], job["address"]
    by_value(engines)
    if framework == "Dask":
        from distributed import Client as connect
    else:
        from ray import init as connect
    say(imported=framework)
    with connect(address):
        say(behind={kind: (engines.places(framework, kind), engines.held(framework, kind)) for kind in ("CPU", "GPU")})


def launch(job: Mapping[str, Any], say: Say) -> None:
    """Times the launches of a script of docs/launches, on arrays that its function of the name ``zeros`` makes."""
    script = catalogue.read(Path(job["path"]))
    module = Loader(script).execute()
    zeros = getattr(module, job["zeros"])
    say(device=launches.device_of(script, zeros(1)[0]))
    for count, what, outcome in launches.outcomes(module, zeros):
        say(launch=(count, what, _sent(outcome)))


def reduce_all(job: Mapping[str, Any], say: Say) -> None:
    """Times a script of docs/all-reduce on all GPUs that this process sees. The processes that the script starts import
    it, too, by its own name."""
    path = Path(job["path"])
    sys.path.insert(0, str(path.parent))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(path.parent), os.environ.get("PYTHONPATH"))))
    module = importlib.import_module(path.stem)
    for count, outcome in all_reduce.outcomes(module, job["gpus"], job["counts"]):
        say(all_reduce=(count, _sent(outcome)))


def _sent(outcome: Timing | str) -> dict[str, Any] | str:
    return outcome if isinstance(outcome, str) else asdict(replace(outcome, samples=()))


def hand_over(job: Mapping[str, Any], say: Say) -> None:
    """Hands arrays from library to library, with the scripts of docs/together."""
    gc.disable()  # memory that is freed just then may make everything wait
    libraries = {}
    for path in map(Path, job["paths"]):
        script = catalogue.read(path)
        try:
            libraries[script.technique] = together.Library(script.technique, Loader(script).execute())
        except Exception as error:  # a framework may raise anything
            say(missing=(script.technique, reason(error)))
    known = {tuple(each) for each in job["known"]}
    for producer, consumer in job["pairs"]:
        if {producer, consumer} <= libraries.keys():
            for way in together.ways(libraries[producer], libraries[consumer]):
                if (producer, consumer, way) not in known:
                    say(begins=(producer, consumer, way))
                    handover = together.handed_over(libraries[producer], libraries[consumer], way)
                    say(handover=asdict(handover))
                    if handover.reason:
                        together.require_health()
        say(pair=(producer, consumer))


def by_value(*modules: ModuleType) -> None:
    """Makes pickle send the functions and classes of these modules as code, as it does for those of a script, so that
    the workers do not need this package."""
    for module in modules:
        for each in vars(module).values():
            if (inspect.isfunction(each) or inspect.isclass(each)) and each.__module__ == module.__name__:
                each.__module__ = "__main__"  # pickle cannot find it there, so cloudpickle sends its code


ACTIONS: dict[str, Callable[[dict[str, Any], Say], None]] = {
    **{"check": check, "measure": compare, "scale": scale, "join": join, "launch": launch},
    **{"all_reduce": reduce_all, "together": hand_over},
}


def main() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # so that the worker does not outlive gpu-cookbook
    job = json.load(sys.stdin)
    if os.getppid() != job["parent"]:  # it ended before that
        return
    me = os.getpid()
    with os.fdopen(out_of_reach(int(sys.argv[1])), "w", buffering=1) as pipe:

        def say(**message: Any) -> None:
            if os.getpid() == me:  # and not in a process that a recipe has forked
                pipe.write(json.dumps(message) + "\n")

        try:
            ACTIONS[job["action"]](job, say)
        except BaseException as error:  # outside of any result: importing, starting an engine, or opening the device
            traceback.print_exc()
            say(ending=reason(error))
        say(done=True)


def out_of_reach(descriptor: int) -> int:
    """The same pipe with a number that nothing gets by counting from 3; programs that are started do not inherit it."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, min(900, limit // 2))
    os.close(descriptor)
    return high


if __name__ == "__main__":
    main()
