"""From one core to every GPU: random_subset_mean on more and more workers, and the overhead of each engine.

This module plans the runs that are possible here, checks what they need, and runs them; they yield Rows
(gpu_cookbook/scaling.py). Recipes and sizes are those of recipes/random_subset_mean.
"""

import contextlib
import itertools
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gpu_cookbook import catalogue, machine
from gpu_cookbook.catalogue import Recipe
from gpu_cookbook.results import Status, grouped
from gpu_cookbook.run import engines, rules, runner
from gpu_cookbook.scaling import (
    EMPTY,
    NOTHING_TO_DRAW,
    STRONG,
    WEAK,
    WORKLOAD,
    BadInput,
    Row,
    ScaleError,
    amount,
)
from gpu_cookbook.units import memory

KINDS = {"CPU": "core", "every NVIDIA GPU": "GPU"}  # the kind of worker, for recipes that scale
CONTEXT = 2e9  # bytes of GPU memory for the CUDA context, cuRAND's states and NCCL's buffers (0.5 to 1.6 GB were seen)
ANSWER_LIMIT = 3  # seconds within which a running engine must accept a connection
# Seconds within which it must report its workers: on busy cores, Ray needs more than 5. After 15, its client gives up.
JOIN_LIMIT = 10
START = {  # how to start it on this machine only
    "Dask": "dask scheduler --host 127.0.0.1 --port {port} --dashboard-address 127.0.0.1:8787",
    "Ray": "docs/scale-out/ray.md has the commands",
}

Cluster = Mapping[str, tuple[int, int]]  # {"CPU": (workers, those that others hold), "GPU": …}
Say = Callable[[str], None]


@dataclass(frozen=True)
class Work:
    """What each run computes: an array of this size. ``weak``: also one that has as many rows for each worker."""

    size: int
    weak: bool = False
    chunk: int | None = None  # None: the workload's own

    def problems(self, workers: int) -> dict[str, tuple[int, int, int]]:
        """{mode: (rows, columns, chunk)}. On one worker both modes are the same problem."""
        workload = catalogue.workload_module(WORKLOAD)
        rows, columns = workload.shape(self.size)
        chunk = self.chunk or workload.chunk(self.size)
        found = {STRONG: (rows, columns, chunk)}
        if self.weak and workers > 1:
            found[WEAK] = (rows * workers, columns, chunk)
        return found


@dataclass(frozen=True)
class Run:
    """One recipe on a given number of workers."""

    recipe: Recipe
    workers: int  # 0: all workers at the address
    address: str | None = None

    @property
    def kind(self) -> str:
        return "worker" if self.address or self.recipe.fault else KINDS[self.recipe.runs_on]

    @property
    def on(self) -> str:
        return amount(self.workers, self.kind)

    def row(self, status: Status, reason: str | None = None, **more: Any) -> Row:
        return Row(
            technique=self.recipe.technique,
            framework=self.recipe.framework,
            lane=self.recipe.lane,
            engine=self.recipe.engine,
            environment=self.recipe.environment,
            kind=self.kind,
            workers=self.workers,
            status=status,
            reason=reason,
            shared_samples=self.recipe.shares_samples,
            **more,
        )


def prepare(
    work: Work,
    names: Sequence[str] = (),
    lane: str | None = None,
    cores: Sequence[int] | None = None,
    gpus: Sequence[int] | None = None,
    addresses: Mapping[str, str] | None = None,
    draw: bool = False,
) -> tuple[list[Run], list[Row]]:
    """(runs, rows of what was skipped): see recipes() and plan(). If no numbers are given: one core and all, and one
    GPU, its doublings and all. ``draw``: the rows will be drawn.

    BadInput if nothing was asked for that can run anywhere, ScaleError if nothing can run here, or if something that
    the runs need is missing: better now than after minutes."""
    addresses = addresses or {}
    chosen = recipes(names, lane, addresses)
    cores = sorted({1, machine.cores()}) if cores is None else cores
    gpus = doublings(len(machine.gpus())) if gpus is None else gpus
    clusters = {framework: inspect_cluster(framework, address) for framework, address in addresses.items()}
    runs, skipped = plan(chosen, cores, gpus, addresses, clusters)
    if not (runs or addresses or any(cores) or any(gpus)):
        raise BadInput("There is nothing to run: give a number of --cores, of --gpus, or both.")
    if not runs:
        if skipped:
            alike = grouped(skipped, lambda row: row.reason)
            why = "; ".join(f"{', '.join(row.technique for row in those)}: {those[0].reason}" for those in alike)
            raise ScaleError(f"There is nothing to run. {why}.")
        raise BadInput(
            "There is nothing to run: NumPy was asked for alone, and on more than the one core that it uses."
        )
    if draw and max(Counter(run.recipe for run in runs).values()) < 2:
        raise BadInput(f"{NOTHING_TO_DRAW} Give more numbers of --cores or --gpus, or omit --plot.")
    require_free_memory(runs, work)
    return runs, skipped


def recipes(names: Sequence[str] = (), lane: str | None = None, frameworks: Iterable[str] = ()) -> list[Recipe]:
    """The recipes that scale, for these engines. A name is a technique, or the first word of several techniques.
    ``frameworks``: those whose engine is already running; only those of their recipes that can use it are returned."""
    mine = [recipe for recipe in catalogue.choose([WORKLOAD]) if recipe.fault or recipe.runs_on in KINDS]
    known = sorted({name for recipe in mine for name in (recipe.technique, first_word(recipe))})
    for name in names:
        if name not in known:
            if other := catalogue.find(WORKLOAD, name):
                one = other.runs_on.removeprefix("NVIDIA ")
                raise catalogue.UnknownName(
                    f"{name} does not scale: it runs on one {one}. {catalogue.similar(name, known)}"
                )
            raise catalogue.UnknownName(catalogue.nearest("technique or engine", name, known))
    if names:
        mine = [recipe for recipe in mine if {recipe.technique, first_word(recipe)} & set(names)]
    mine = [recipe for recipe in mine if lane in (None, recipe.lane)]
    if not mine:
        raise catalogue.no_recipe([WORKLOAD], names, lane)
    if frameworks:
        mine = [recipe for recipe in mine if recipe.framework in frameworks and recipe.takes_address]
        if not mine:
            raise BadInput(
                "Only recipes of Dask (--scheduler) and of Ray (--address) can use an engine that is already running."
            )
    return mine


def first_word(recipe: Recipe) -> str:
    return recipe.technique.partition("_")[0]


def plan(
    chosen: Iterable[Recipe],
    cores: Iterable[int],
    gpus: Iterable[int],
    addresses: Mapping[str, str],
    clusters: Mapping[str, Cluster],
) -> tuple[list[Run], list[Row]]:
    """(runs, skipped rows): each recipe on each number of workers; NumPy uses only one core. If the framework has an
    address, there is one run per recipe, on all workers of the cluster; ScaleError if others are using some of them."""
    runs, skipped = [], []
    for recipe in chosen:
        address = addresses.get(recipe.framework)
        obstacle = machine.missing(recipe) if address else machine.obstacle(recipe)
        if address and not obstacle:
            kind = engines.resource(recipe)
            workers, held = clusters[recipe.framework][kind]
            if held:
                raise ScaleError(
                    f"Others are using {held} of the {workers} {kind}s behind {address}: wait until they finish."
                )
            if not workers:
                obstacle = f"there is no {kind} behind {address}"
        if recipe.fault or rules.never_installed(recipe):  # a row that failed says so
            runs.append(Run(recipe, 1))
        elif obstacle:
            skipped.append(Run(recipe, 0).row(Status.SKIPPED, obstacle))
        elif address:
            runs.append(Run(recipe, 0, address))
        elif recipe.runs_on == "CPU":
            runs += [Run(recipe, n) for n in cores if n == 1 or recipe.technique != "numpy"]
        else:
            runs += [Run(recipe, n) for n in gpus]
    return runs, skipped


def doublings(most: int) -> list[int]:
    """1, 2, 4, … and the maximum."""
    return sorted({2**n for n in range(most.bit_length())} | {most}) if most else []


# ---- Checks before anything is measured.


def host_and_port(address: str) -> tuple[str, int]:
    """Those of tcp://host:port or host:port; ValueError if it is neither."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if not (parts.hostname and parts.port):
        raise ValueError(address)
    return parts.hostname, parts.port


def check_reachable(address: str) -> None:
    """Raises OSError if nothing accepts a connection at this address; ValueError if it is none."""
    socket.create_connection(host_and_port(address), ANSWER_LIMIT).close()


def unreachable_reason(address: str) -> str | None:
    """Why the address can no longer be reached, in words, or None."""
    try:
        check_reachable(address)
    except OSError as error:
        return f"the engine at {address} can no longer be reached ({error.strerror or error})"
    return None


def lost_reason(address: str) -> str | None:
    """The same after a failure. It is asked twice, because Linux ends the connections of a process that is killed, and
    with them the work, before that process stops listening."""
    if reason := unreachable_reason(address):
        return reason
    time.sleep(1)
    return unreachable_reason(address)


def inspect_cluster(framework: str, address: str) -> Cluster:
    """The workers of a running engine, asked through its own protocol. ScaleError if there is none; BadInput if that is
    no address."""
    try:
        check_reachable(address)
    except ValueError:
        raise BadInput(
            f"'{address}' is not an address, such as tcp://127.0.0.1:8786 of a Dask scheduler or 127.0.0.1:6379 of Ray."
        ) from None
    except OSError as error:
        raise ScaleError(
            f"Nothing answers at {address} ({error.strerror or error}). Start it first, or give another address: "
            f"{START[framework].format(port=host_and_port(address)[1])}"
        ) from None
    with runner.Process({"action": "join", "framework": framework, "address": address}) as process:
        *_, last = process.messages(runner.START_LIMIT, JOIN_LIMIT)
    if "ending" in last:
        raise ScaleError(f"What runs at {address} does not work as {framework}: {last['ending']}")
    if not any(workers for workers, _ in last["behind"].values()):
        raise ScaleError(f"No workers are connected to {address} yet: start some first.")
    return {kind: (workers, held) for kind, (workers, held) in last["behind"].items()}


def require_free_memory(runs: Sequence[Run], work: Work) -> None:
    """ScaleError if the host or a GPU has too little free memory for these runs, or if another program is using the
    GPU."""

    def needed(kind: str) -> float:
        """Bytes that the largest run needs, as the workload counts them: samples, subset, and the generator's own.
        Cores share one memory. Tuned recipes store nothing, except those with samples of their own."""
        chunks = [
            (run.workers if kind == "core" else 1) * min(side, rows) * min(side, columns)
            for run in runs
            if run.kind == kind and not run.recipe.shares_samples
            for rows, columns, side in work.problems(run.workers).values()
        ]
        return 3 * 8 * max(chunks, default=0)

    left = machine.host_memory_free()
    if left < needed("core"):
        raise ScaleError(
            f"{memory(left)} of host memory are free, and this needs {memory(needed('core'))}, one chunk per "
            "core: use a smaller --chunk, fewer --cores, or --lane tuned, which stores nothing."
        )
    on_gpu = needed("GPU") + CONTEXT
    most = max((run.workers for run in runs if run.kind == "GPU"), default=0)
    every = zip(machine.gpus(), machine.device_memory(), machine.processes_on_gpus(), strict=True)
    for gpu, (used, left), others in itertools.islice(every, most):
        if others:
            raise ScaleError(
                f"GPU {gpu.index} ({gpu.name}) is in use by another program: {', '.join(others)}. Wait until it "
                "finishes, or exclude this GPU with CUDA_VISIBLE_DEVICES."
            )
        if left < on_gpu:
            raise ScaleError(
                f"GPU {gpu.index} ({gpu.name}) has {memory(left)} free of {memory(used + left)}, and this "
                f"needs {memory(on_gpu)}: free some, exclude this GPU with CUDA_VISIBLE_DEVICES, or use a smaller "
                "--chunk."
            )


def require_drawable(path: Path) -> None:
    """BadInput if no drawing can be written there; ScaleError if matplotlib is missing."""
    if not machine.installed("matplotlib"):
        raise ScaleError("--plot needs matplotlib: pip install matplotlib")
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise BadInput(f"Cannot draw into {path}: its name must end in .png, .svg or .pdf.")
    there = path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        raise BadInput(
            f"Cannot write {path}: {error.strerror}. Name a file that you can write to, in an existing folder."
        ) from None
    if not there:
        path.unlink()


# ---- The runs.


def measure_all(
    runs: Iterable[Run], work: Work, started: Callable[[Run], None], say: Say
) -> tuple[list[Row], KeyboardInterrupt | OSError | None]:
    """The rows of every run, and what ended the work early: Ctrl-C, or that no process can be started. No process is
    left behind. ``started`` is called before each run."""
    rows = []
    try:
        for run in runs:
            started(run)
            with contextlib.closing(measure(run, work, say)) as found:
                for row in found:
                    rows.append(row)
    except (KeyboardInterrupt, OSError) as error:
        return rows, error
    return rows, None


def measure(run: Run, work: Work, say: Say = lambda text: None) -> Generator[Row, None, None]:
    """Yields the rows of a run as soon as they are measured: one per problem, and one for the engine's own overhead
    (mode "empty").

    ``say`` receives what the user should see at once, such as the address of a dashboard.
    """
    problems = work.problems(run.workers)
    left: list[dict[str, Any]] = [
        {"mode": mode, "size": work.size, "rows": rows, "columns": columns, "chunk": chunk}
        for mode, (rows, columns, chunk) in problems.items()
    ]
    away = run.recipe.fault or rules.fault(run.recipe) or (run.address and unreachable_reason(run.address))
    if away:
        yield from (run.row(Status.FAILED, away, **problem) for problem in left)
        return
    job = {
        "action": "scale",
        "path": str(run.recipe.path),
        "problems": list(problems.values()),
        "workers": run.workers,
        "address": run.address,
    }
    restriction: dict[str, list[Any]] = {}
    if run.kind == "core":
        restriction = {"cores": sorted(os.sched_getaffinity(0))[: run.workers], "gpus": []}
    elif run.kind == "GPU":
        restriction = {"gpus": [gpu.visible for gpu in machine.gpus()][: run.workers]}
    start_s = reason = None
    costed = False
    with runner.Process(job, **restriction) as process:
        for message in process.messages(runner.START_LIMIT, catalogue.workload_module(WORKLOAD).TIME_LIMIT):
            if "engine" in message:
                engine = message["engine"]
                start_s = engine.seconds
                run = replace(run, workers=engine.workers)
                if engine.dashboard:
                    say(f"{run.recipe.technique}: the dashboard is at {engine.dashboard}")
            elif "answer" in message and left:
                answer = message["answer"]
                if answer.status == Status.FAILED and run.address:
                    answer = replace(answer, reason=lost_reason(run.address) or answer.reason)
                yield run.row(start_s=start_s, **left.pop(0), **vars(answer))
            elif "cost" in message:
                costed = True
                if message["cost"]:
                    yield run.row(Status.OK, mode=EMPTY, cost=message["cost"])
            elif "ending" in message:
                reason = reason or message["ending"]
    if reason and run.address:
        reason = lost_reason(run.address) or reason
    for problem in left:
        yield run.row(Status.FAILED, reason, **problem)
    if reason and not left:
        yield run.row(Status.FAILED, f"passed, then at exit: {reason}" if costed else reason, mode=EMPTY)
