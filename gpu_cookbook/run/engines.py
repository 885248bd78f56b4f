"""The overhead of a parallel engine by itself, and how many of its workers are lost. Both are found out in the
recipe's process, from the engine that it has started."""

import contextlib
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from gpu_cookbook.catalogue import Recipe
from gpu_cookbook.run import measure
from gpu_cookbook.scaling import Cost

MANY = 20  # tasks per worker, from which the time of one more task is computed
PAYLOAD = 32_000_000  # bytes that are sent to one task

EmptyRound = Callable[..., Any]  # (n, payload=None): runs n tasks that do nothing, and waits for all of them


def nothing(payload: object = None) -> None:
    pass


class Nothing:
    """An actor."""

    def nothing(self, payload: object = None) -> None:
        pass


class Witness:
    """A payload that records whether it was sent to another process."""

    sent = False

    def __reduce__(self) -> tuple[type[int], tuple[()]]:
        self.sent = True
        return int, ()


def dask_threads(recipe: Recipe, workers: int) -> EmptyRound:
    import dask

    task = dask.delayed(nothing, pure=False)
    return lambda n, payload=None: dask.compute(*(task(payload) for _ in range(n)), scheduler="threads")


def dask_futures(recipe: Recipe, workers: int) -> EmptyRound:
    import distributed

    client = distributed.default_client()

    def empty_round(n: int, payload: object = None) -> None:
        if payload is not None:
            # As Dask recommends, since an argument would go through the scheduler. Without a hash, which would take
            # longer than the transfer.
            payload = client.scatter(payload, hash=False)
        client.gather([client.submit(nothing, payload, pure=False) for _ in range(n)])

    return empty_round


def dask_actors(recipe: Recipe, workers: int) -> EmptyRound:
    import distributed

    client = distributed.default_client()
    places = dask_places()
    actors = [client.submit(Nothing, actor=True, workers=[place], pure=False).result() for place in places]

    def empty_round(n: int, payload: object = None) -> None:
        for answer in [actors[i % len(actors)].nothing(payload) for i in range(n)]:
            answer.result()

    return empty_round


def joblib_calls(recipe: Recipe, workers: int, prefer: str | None = None) -> EmptyRound:
    from joblib import Parallel, delayed

    return lambda n, payload=None: Parallel(workers, prefer=prefer)(delayed(nothing)(payload) for _ in range(n))


def ray_tasks(recipe: Recipe, workers: int) -> EmptyRound:
    import ray

    # By default a task asks for a core, which a Ray for GPUs need not have, and a process with a GPU ends after a task.
    gpu = {"num_cpus": 0, "num_gpus": 1, "max_calls": 0}
    task = ray.remote(**gpu if resource(recipe) == "GPU" else {"num_cpus": 1})(nothing)
    return lambda n, payload=None: ray.get([task.remote(payload) for _ in range(n)])


def ray_actors(recipe: Recipe, workers: int) -> EmptyRound:
    import ray

    actors = [ray.remote(num_cpus=0)(Nothing).remote() for _ in range(workers)]
    return lambda n, payload=None: ray.get([actors[i % workers].nothing.remote(payload) for i in range(n)])


# {a recipe's Engine line: what makes its empty round}, if the engine can be measured without the recipe
ROUNDS: dict[str, Callable[[Recipe, int], EmptyRound]] = {
    "Dask, threads": dask_threads,
    "Dask, futures": dask_futures,
    "Dask, actors": dask_actors,
    "joblib, processes": joblib_calls,
    "joblib, threads": partial(joblib_calls, prefer="threads"),
    "Ray, tasks": ray_tasks,
    "Ray, actors": ray_actors,
}


def cost(recipe: Recipe, module: ModuleType, workers: int) -> Cost | None:
    """The time of a round of one empty task per worker, of one more task, and of one more byte sent to a task: None if
    that is lost in the noise. No Cost for an engine that cannot be measured without its recipe's work.

    A recipe's own ``empty_round(n, payload=None)`` comes first. One that takes no n has no single tasks."""
    own = getattr(module, "empty_round", None)
    make = ROUNDS.get(recipe.engine or "")
    if own:
        empty_round = own
    elif make:
        empty_round = make(recipe, workers)
    else:
        return None

    def median(*arguments: Any) -> float:
        empty_round(*arguments)
        return float(np.median(measure.sample(measure.clocked(lambda: empty_round(*arguments)))))

    if own and not recipe.functions["empty_round"]:
        return Cost(median())
    one_each, many = median(workers), MANY * workers
    task = (median(many) - one_each) / (many - workers)
    witness = Witness()
    empty_round(1, witness)
    if not witness.sent:  # threads share memory, and for one worker joblib computes in this process
        return Cost(one_each, _known(task))
    payload = np.ones(PAYLOAD, np.uint8)  # zeros would be the same page of memory again and again
    return Cost(one_each, _known(task), _known((median(1, payload) - median(1)) / PAYLOAD))


def _known(seconds: float) -> float | None:
    return seconds if seconds > 0 else None  # a negative time is noise


def warm_up(recipe: Recipe, workers: int) -> int:
    """How many rounds of tiny tasks come before the first that counts: they compile in every process and start CUDA on
    every GPU. Ray's tasks run in any process, with any GPU: 4 processes had met each of 4 GPUs after 8 to 30 rounds."""
    return 15 * workers if recipe.engine == "Ray, tasks" and resource(recipe) == "GPU" else 5


def resource(recipe: Recipe) -> str:
    """The resource that each worker of a recipe needs one of, by Ray's name."""
    return "CPU" if recipe.runs_on == "CPU" else "GPU"


def dask_places() -> set[str]:
    """The addresses of Dask's workers. A worker that was restarted has a new one."""
    import distributed

    # Not client.scheduler_info(): in the moment that its answer is read, a background update, which leaves the workers
    # out, can have taken its place.
    return set(distributed.default_client().nthreads())


def places(framework: str, kind: str) -> int:
    """How many workers of the running engine have a CPU, or a GPU."""
    if framework == "Dask":
        import distributed

        return len(dask_places()) if kind == "CPU" else sum(distributed.default_client().run(sees_gpu).values())
    import ray

    return int(ray.cluster_resources().get(kind, 0))


def held(framework: str, kind: str) -> int:
    """How many workers are reserved by others, which only Ray allows."""
    if framework == "Dask":
        return 0
    import ray

    return places(framework, kind) - int(ray.available_resources().get(kind, 0))


def sees_gpu() -> bool:
    """Whether the CUDA driver finds a GPU for this process, which may have no CUDA package installed."""
    import ctypes

    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return not cuda.cuInit(0) and not cuda.cuDeviceGetCount(ctypes.byref(count)) and count.value > 0


def ray_losses() -> int:
    """How many of Ray's processes have ended unexpectedly."""
    # ray.util.state would say it too, but asks the dashboard, which a recipe's own Ray does not have.
    from ray._private.state import state
    from ray.core.generated import common_pb2, gcs_pb2

    workers = map(gcs_pb2.WorkerTableData.FromString, state._connect_and_get_accessor().get_worker_table())
    return sum(not worker.is_alive and worker.exit_type == common_pb2.SYSTEM_ERROR for worker in workers)


def losses(recipe: Recipe) -> Callable[[], int]:
    """Returns a function that says how many workers have been lost since this call. An engine that cannot continue
    without a worker raises instead."""
    if recipe.framework in ("Ray", "Modin"):  # which starts Ray
        before = ray_losses()
        return lambda: ray_losses() - before
    if recipe.framework == "Dask" and recipe.engine != "Dask, threads":
        places = dask_places()
        return lambda: len(places - dask_places())
    return lambda: 0


@contextlib.contextmanager
def none_lost(say: Callable[..., None]) -> Iterator[None]:
    """multiprocessing.Pool waits forever for the answer of a process that has died; this ends our process instead."""
    done = threading.Event()
    mine = {child.pid for child in multiprocessing.active_children()}

    def watch() -> None:
        while not done.wait(0.5):
            if not {child.pid for child in multiprocessing.active_children()} >= mine and not done.is_set():
                say(ending="a worker was lost, and multiprocessing's pool would wait forever for its answer")
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()  # before the pool ends its processes


def dashboard() -> str | None:
    """The address of Dask's dashboard, if one is served."""
    import distributed

    try:
        client = distributed.default_client()
    except ValueError:
        return None
    return client.dashboard_link if client.scheduler_info()["services"].get("dashboard") else None
