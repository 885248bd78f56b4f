"""What a parallel engine costs by itself, and which of its workers are gone: asked of the engine that a recipe has
started, in the recipe's process."""

import contextlib
import multiprocessing
import os
import threading

import numpy as np

from gpu_cookbook.run import measure

MANY = 20  # tasks a worker, from which the time of one more follows
PAYLOAD = 32_000_000  # bytes that go to one task
SAME = 1e-12  # of the mean: so near are two answers for the same samples, whatever the order in which they were added


def nothing(payload=None):
    pass


class Nothing:
    """An actor."""

    def nothing(self, payload=None):
        pass


def dask_threads(module, workers):
    import dask

    task = dask.delayed(nothing, pure=False)
    return lambda n, payload=None: dask.compute(*(task(payload) for _ in range(n)), scheduler="threads")


def dask_futures(module, workers):
    import distributed

    client = distributed.default_client()

    def rounds(n, payload=None):
        if payload is not None:
            # As Dask advises: an argument goes through the scheduler. A hash would take longer than the way.
            payload = client.scatter(payload, hash=False)
        client.gather([client.submit(nothing, payload, pure=False) for _ in range(n)])

    return rounds


def dask_actors(module, workers):
    import distributed

    client = distributed.default_client()
    places = client.scheduler_info(n_workers=-1)["workers"]
    actors = [client.submit(Nothing, actor=True, workers=[place], pure=False).result() for place in places]

    def rounds(n, payload=None):
        for answer in [actors[i % len(actors)].nothing(payload) for i in range(n)]:
            answer.result()

    return rounds


def joblib_processes(module, workers):
    return _joblib(workers, None)


def joblib_threads(module, workers):
    return _joblib(workers, "threads")


def _joblib(workers, prefer):
    from joblib import Parallel, delayed

    return lambda n, payload=None: Parallel(workers, prefer=prefer)(delayed(nothing)(payload) for _ in range(n))


def multiprocessing_pools(module, workers):
    pools = getattr(module, "pools", None) or [module.pool]

    def rounds(n, payload=None):
        for answer in [pools[i % len(pools)].apply_async(nothing, (payload,)) for i in range(n)]:
            answer.get()

    return rounds


def ray_tasks(module, workers):
    import ray

    task = ray.remote(nothing)
    return lambda n, payload=None: ray.get([task.remote(payload) for _ in range(n)])


def ray_actors(module, workers):
    import ray

    actors = [ray.remote(num_cpus=0)(Nothing).remote() for _ in range(workers)]
    return lambda n, payload=None: ray.get([actors[i % workers].nothing.remote(payload) for i in range(n)])


def plain_threads(module, workers):
    return lambda n, payload=None: list(module.threads.map(nothing, [payload] * n))


def ranks(module, workers):
    """All ranks at once: an empty request, a sum by NCCL. There are no single tasks."""

    def rounds(n, payload=None):
        for pipe in module.ranks:
            pipe.send((0, 0, 0, 0))
        module.answers()

    return rounds


IN_PROCESS = (plain_threads, dask_threads, joblib_threads)

# The engine of each technique, in words, and its rounds: None where it has none.
ENGINES = {
    "dask": ("Dask, threads", dask_threads),
    "dask_processes": ("Dask, futures", dask_futures),
    "dask_cuda": ("Dask, futures", dask_futures),
    "dask_cuda_random_state": ("Dask, futures", dask_futures),
    "dask_cuda_tuned": ("Dask, futures", dask_futures),
    "dask_actors_cuda_tuned": ("Dask, actors", dask_actors),
    "joblib": ("joblib, processes", joblib_processes),
    "joblib_cuda": ("joblib, threads", joblib_threads),
    "joblib_cuda_tuned": ("joblib, processes", joblib_processes),
    "joblib_threads_cuda_tuned": ("joblib, threads", joblib_threads),
    "multiprocessing": ("multiprocessing, a pool", multiprocessing_pools),
    "multiprocessing_cuda": ("multiprocessing, a pool a GPU", multiprocessing_pools),
    "ray": ("Ray, tasks", ray_tasks),
    "ray_cuda": ("Ray, actors", ray_actors),
    "ray_cuda_tuned": ("Ray, actors", ray_actors),
    "ray_tasks_cuda_tuned": ("Ray, tasks", ray_tasks),
    "cupy_threads_tuned": ("threads", plain_threads),
    "torch_distributed_tuned": ("torch.distributed, NCCL", ranks),
}


def cost(technique, module, workers):
    """{"round_s", "task_s", "byte_s"}: seconds of a round of one empty task a worker, of one task more, and of one byte
    more that goes to a task, None where that is lost in the noise; without the last two where there are no single tasks
    or nothing is moved. {} without an engine."""
    if technique not in ENGINES:
        return {}
    _, make = ENGINES[technique]
    rounds = make(module, workers)

    def median(n, payload=None):
        rounds(n, payload)
        return float(np.median(measure.sample(lambda: rounds(n, payload))))

    found = {"round_s": median(workers)}
    if make is not ranks:
        many = MANY * workers
        found["task_s"] = (median(many) - found["round_s"]) / (many - workers)
    # Threads move nothing; nor does joblib, which computes for one worker in the process that asks.
    if make not in (ranks, *IN_PROCESS) and (make is not joblib_processes or workers > 1):
        payload = np.ones(PAYLOAD, np.uint8)  # zeros would be one page of memory again and again
        found["byte_s"] = (median(1, payload) - median(1)) / PAYLOAD
    return {name: value if value > 0 else None for name, value in found.items()}  # less than nothing: noise


def warm_up(recipe, workers):
    """Rounds of tiny tasks before the first that counts: they compile in every process, and start CUDA on every GPU.
    Ray's tasks are in any process, with any GPU: 4 processes had met each of 4 GPUs after 8 to 30 rounds."""
    _, make = ENGINES.get(recipe.technique, (None, None))
    return 15 * workers if make is ray_tasks and resource(recipe) == "GPU" else 5


def resource(recipe):
    """What each worker of a recipe needs one of, as Ray calls it."""
    return "CPU" if recipe.runs_on == "CPU" else "GPU"


def dask_places():
    """The addresses of Dask's workers: one that is started again has another."""
    import distributed

    return set(distributed.default_client().scheduler_info(n_workers=-1)["workers"])


def places(framework, kind):
    """How many workers of the running engine have a CPU, or a GPU."""
    if framework == "Dask":
        import distributed

        return len(dask_places()) if kind == "CPU" else sum(distributed.default_client().run(sees_gpu).values())
    import ray

    return int(ray.cluster_resources().get(kind, 0))


def held(framework, kind):
    """How many of them others keep for themselves, as they can in Ray."""
    if framework == "Dask":
        return 0
    import ray

    return places(framework, kind) - int(ray.available_resources().get(kind, 0))


def sees_gpu():
    """Whether CUDA has a GPU for this process, which may have no package to ask."""
    import ctypes

    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return not cuda.cuInit(0) and not cuda.cuDeviceGetCount(ctypes.byref(count)) and count.value > 0


def ray_losses():
    """How many of Ray's processes have ended without being told to."""
    from ray._private.state import state
    from ray.core.generated import common_pb2, gcs_pb2

    workers = map(gcs_pb2.WorkerTableData.FromString, state._connect_and_get_accessor().get_worker_table())
    return sum(not worker.is_alive and worker.exit_type == common_pb2.SYSTEM_ERROR for worker in workers)


def losses(framework, technique):
    """A function that says how many workers were lost since now. An engine that does not go on without one raises."""
    if framework == "Ray":
        before = ray_losses()
        return lambda: ray_losses() - before
    if framework == "Dask" and technique != "dask":
        places = dask_places()
        return lambda: len(places - dask_places())
    return lambda: 0


@contextlib.contextmanager
def none_lost(say):
    """multiprocessing.Pool waits for ever for the answer of a process that is gone: this ends our process instead."""
    done = threading.Event()
    mine = {child.pid for child in multiprocessing.active_children()}

    def watch():
        while not done.wait(0.5):
            if not {child.pid for child in multiprocessing.active_children()} >= mine and not done.is_set():
                say(ending="a worker was lost, and multiprocessing's pool would wait for its answer for ever")
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()  # before the pool ends its processes


def dashboard():
    """The address of Dask's dashboard, where one is served."""
    import distributed

    try:
        client = distributed.default_client()
    except ValueError:
        return None
    return client.dashboard_link if client.scheduler_info()["services"].get("dashboard") else None
