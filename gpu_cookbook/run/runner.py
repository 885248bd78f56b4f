"""Runs each recipe in its own process with a time limit, so that one that crashes loses only its own results."""

import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import msgspec
import psutil

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Probe, Result, Size, Status, Timing
from gpu_cookbook.run import family, rules
from gpu_cookbook.scaling import Answer, Cost, Started
from gpu_cookbook.together import Handover

START_LIMIT = 300  # seconds to import, start engines and compile before the first result
END_LIMIT = 60  # seconds from the last result to the end of the process: Ray needs time to stop its own processes
MARKER = "---- The recipe begins here: what follows is its own output."
LEFT_LIMIT = 10  # seconds that the processes of a recipe have to end after it
LOOK = 1  # seconds after which a silent worker is looked at: it may have ended and left its pipe to a child
LONGEST = 2**24  # bytes of a message: ten thousand samples of each metric are less than a tenth of that
MOST_OUTPUT = 2**26  # bytes on standard output and error, which are kept on the disk
LAST_OUTPUT = 2**16  # bytes, in which the last line is looked for
# What a worker says: {"what": value}, each value of this type.
MESSAGES: dict[str, Any] = {
    "start": Size,
    "device": str,
    "result": Result,
    "engine": Started,
    "answer": Answer,
    "cost": Cost | None,
    "manners": str,
    "imported": str,
    "behind": dict[str, tuple[int, int]],
    "launch": tuple[int, str, Timing | str],  # arguments, what was timed, and the time or why there is none
    "all_reduce": tuple[int, Timing | str],  # elements, and the time or why there is none
    "missing": tuple[str, str],  # a library, and why it cannot be imported
    "begins": tuple[str, str, str],
    "pair": tuple[str, str],
    "handover": Handover,
    "ending": str,
    "done": bool,
}
# What these frameworks print, whatever a recipe does: when they are first used, when they compile, and when the disk is
# nearly full.
PRINTED_BY_RAY = re.compile(r"^.*\(raylet.*\).* file_system_monitor\.cc:.* full, available space: .*\n", re.MULTILINE)
PRINTED_BY_FRAMEWORKS = {
    "Modin": PRINTED_BY_RAY,
    "Ray": PRINTED_BY_RAY,
    "Warp": re.compile(
        r"^(Warp [\d.]+ initialized:\n(?: .*\n)*|Module \S+ \w+ load on device .* took .*\n"
        r"|Warp CUDA warning: Could not find or load the NVIDIA CUDA driver.*\n)",
        re.MULTILINE,
    ),
}
GARBAGE = "wrote something else into the pipe through which gpu-cookbook gets results"
THREADS = {  # variables that limit the threads of NumPy's BLAS, OpenMP and others
    f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "GOTO", "MKL", "BLIS", "NUMBA", "NUMEXPR", "RAYON")
} | {"OMP_THREAD_LIMIT", "POLARS_MAX_THREADS"}
# How long a client keeps looking for an engine that we did not start and that has disappeared; the defaults are 30, 60
# and 20 s.
GIVE_UP = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
    "RAY_NUM_REDIS_GET_RETRIES": "3",
}


def run(
    recipe: catalogue.Recipe,
    action: str,
    sizes: Sequence[Size],
    started: Callable[[catalogue.Recipe, Size], None] = lambda recipe, size: None,
    probe: Probe | None = None,
    spent: Callable[[str], None] = lambda phase: None,
    answers: str | None = None,
) -> Iterator[Result]:
    """Yields one result per size as soon as it is known.

    If something ends the process early, the remaining sizes have failed, with the reason. If none remain, the last one
    has failed, because a recipe that crashes at its end is not safe to paste. ``action``: check or measure.
    ``started`` is called when the work on a size begins. ``probe``: taken for what the device can do, as in tests,
    instead of measuring that before and after each size. ``spent`` is called at the end of each phase of the work.
    ``answers``: the folder with what other recipes of the workload were compared with, see answers.place().
    """
    obstacle = machine.obstacle(recipe)
    if obstacle and not (recipe.fault or rules.never_installed(recipe)):
        yield from (Result.of(recipe, size, Status.SKIPPED, obstacle) for size in sizes)
        return
    refused = recipe.fault or catalogue.workload_fault(recipe.workload) or rules.fault(recipe)
    if refused:
        yield from (Result.of(recipe, size, Status.FAILED, refused) for size in sizes)
        return
    machine.versions(recipe.packages)  # looked up now, not while a worker is measuring
    limit = catalogue.workload_module(recipe.workload).TIME_LIMIT
    checking = action == "check"
    job = {
        "action": action,
        "path": str(recipe.path),
        "sizes": sizes,
        "probe": probe and asdict(probe),
        "answers": answers,
    }
    left = list(sizes)
    held: list[Result] = []  # until the process has ended: the last, and all of a check
    device = ending = fault = None
    with Process(job) as process:
        try:
            for message in process.messages(START_LIMIT, limit):
                match message:
                    case {"start": size} if size in sizes:
                        if device:
                            spent("checking")  # what comes before the first size is
                        started(recipe, size)
                    case {"device": device}:
                        spent("starting")
                    case {"result": result} if result.size in left:
                        spent("measuring")
                        left.remove(result.size)
                        found = _with_conditions(result, recipe, device)
                        if left and not checking:
                            yield found
                        else:
                            held.append(found)
                    case {"manners": fault}:
                        pass
                    case {"ending": reason}:
                        ending = ending or reason
                    case _:
                        ending = GARBAGE
                        break
            if checking and not (left or ending) and all(each.ok for each in held):
                fault = fault or process.left() or process.said(recipe.framework)
        except KeyboardInterrupt:
            yield from held
            raise
    spent("ending")
    if fault:
        held = [replace(each, status=Status.FAILED, reason=fault) for each in held]
    elif held and held[-1].ok and not left and ending:
        held[-1] = replace(held[-1], status=Status.FAILED, reason=f"passed, then: {ending}")
    yield from held
    for number, size in enumerate(left):
        reason = ending if number == 0 else f"not reached: {ending}"
        yield _with_conditions(Result.of(recipe, size, Status.FAILED, reason), recipe, device)


def _understood(line: bytes) -> dict[str, Any] | None:
    """A message with a value of the type that it should have; None if it is none."""
    try:
        ((what, value),) = json.loads(line).items()
        return {what: msgspec.convert(value, MESSAGES[what])}
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError, msgspec.ValidationError):
        return None


def _with_conditions(result: Result, recipe: catalogue.Recipe, device: str | None) -> Result:
    """The result with what this process knows about it; the device's name comes from the worker."""
    nvidia = machine.nvidia() if machine.is_gpu(device) else None
    known = Result.of(recipe, result.size, result.status)
    return replace(
        result,
        workload=known.workload,
        technique=known.technique,
        framework=known.framework,
        lane=known.lane,
        environment=known.environment,
        math=known.math,
        device=device,
        driver=nvidia.driver if nvidia else None,
        cuda=".".join(map(str, nvidia.cuda)) if nvidia else None,
        versions=machine.versions(recipe.packages) if device else None,
    )


def printed_by_recipe(framework: str, text: str) -> str:
    """What was printed, less what the framework prints by itself."""
    greetings = PRINTED_BY_FRAMEWORKS.get(framework)
    return greetings.sub("", text) if greetings else text


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text.strip()[:300])


_running: set["Process"] = set()


def stop_all() -> None:
    """Ends every worker for which another thread is waiting."""
    for process in list(_running):
        process.kill()


class Process:
    """A worker process with empty caches for compiled kernels. Everything that it started ends with it.

    ``cores``: the cores that it may use. ``gpus``: Gpu.visible of the NVIDIA GPUs that it can see.
    """

    def __init__(
        self, job: dict[str, Any], cores: Sequence[int] | None = None, gpus: Sequence[int | str] | None = None
    ) -> None:
        self.job = job
        self.cores = cores
        self.gpus = gpus

    def __enter__(self) -> Self:
        family.require_room()
        self.folder = tempfile.mkdtemp(dir=family.home())
        reading, writing = os.pipe()
        self.pipe = os.fdopen(reading, "rb")
        _running.add(self)
        settings = (GIVE_UP if self.job.get("address") else {}) | environment(self.folder)
        if self.gpus is not None:
            settings |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(map(str, self.gpus))}
        self.errors = Path(self.folder, "stderr")
        with self.errors.open("wb") as errors, _only(self.cores):
            self.popen = subprocess.Popen(
                # The job goes through stdin, because a longer command line shifts addresses in memory: that changed
                # NumPy's increment of 1,000,000 elements from 43 to 57 µs on an AMD EPYC.
                [sys.executable, "-P", "-m", "gpu_cookbook.run.worker", str(writing)],
                pass_fds=[writing],
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                env=settings,
                start_new_session=True,  # Ctrl-C must reach only us; we end the worker
            )
        os.close(writing)
        assert self.popen.stdin
        with contextlib.suppress(BrokenPipeError), self.popen.stdin as stdin:
            stdin.write(json.dumps(self.job | {"parent": os.getpid()}).encode())
        return self

    def messages(self, first_limit: float, limit: float) -> Iterator[dict[str, Any]]:
        """The worker's messages, followed by {"ending": reason} if it did not end normally. See MESSAGES."""
        buffer = b""
        deadline = time.monotonic() + first_limit
        measuring = done = False
        while True:
            ended = self.popen.poll() is not None  # asked first: what it has said by then is read
            ready, _, _ = select.select([self.pipe], [], [], max(0, min(LOOK, deadline - time.monotonic())))
            if not ready:
                if ended:
                    break
                if self.errors.stat().st_size > MOST_OUTPUT:
                    yield {"ending": f"printed more than {MOST_OUTPUT:,} bytes"}
                    return
                if time.monotonic() >= deadline:
                    stopped = "was stopped by a signal, and " if self._is_stopped() else ""
                    yield {"ending": f"{stopped}timed out after {limit if measuring else first_limit} s"}
                    return
                continue
            block = os.read(self.pipe.fileno(), 65536)
            if not block:
                break
            *lines, buffer = (buffer + block).split(b"\n")
            for line in lines:
                message = _understood(line)
                if message is None:
                    yield {"ending": GARBAGE}
                    return
                done = done or "done" in message
                if {"result", "device", "engine", "imported"} & message.keys():
                    measuring = True
                deadline = time.monotonic() + (limit if measuring else first_limit)
                if "done" not in message:
                    yield message
            if len(buffer) > LONGEST:
                yield {"ending": GARBAGE}
                return
        try:
            code = self.popen.wait(END_LIMIT)
        except subprocess.TimeoutExpired:
            yield {"ending": f"did not exit within {END_LIMIT} s of its last result and was stopped"}
        else:
            if code or not done:
                yield {"ending": self._reason(code)}
            elif buffer:
                yield {"ending": GARBAGE}

    def left(self) -> str | None:
        """Which processes stay, in one line, although the worker has ended; None if none do."""
        deadline = time.monotonic() + LEFT_LIMIT
        while names := sorted({_name(each) for each in self.family()} - {""}):
            if time.monotonic() > deadline:
                return f"leaves processes behind: {', '.join(names)}"
            time.sleep(0.05)
        return None

    def said(self, framework: str) -> str | None:
        """What the recipe has printed, in one line; None if nothing but what the framework prints by itself."""
        with self.errors.open("rb") as errors:
            _, text, *_ = (errors.read(MOST_OUTPUT).decode(errors="replace") + MARKER).split(MARKER)
        text = printed_by_recipe(framework, text)
        return f"prints: {_one_line(text)}" if text.strip() else None

    def _is_stopped(self) -> bool:
        with contextlib.suppress(psutil.Error):
            return psutil.Process(self.popen.pid).status() == psutil.STATUS_STOPPED
        return False

    def _reason(self, code: int) -> str:
        """Why the worker ended before it was done, or with this code. OSError if it may be because of a full disk."""
        family.require_room()
        if code == -signal.SIGKILL:
            return "killed by SIGKILL, which the system sends when memory runs out"
        if code < 0:
            try:
                return f"crashed: {signal.Signals(-code).name}"
            except ValueError:  # a real-time signal has no name
                return f"crashed: signal {-code}"
        if code == 0:
            return "ended its process, with exit code 0, before it was done"
        with self.errors.open("rb") as errors:
            errors.seek(max(0, self.errors.stat().st_size - LAST_OUTPUT))
            text = errors.read().decode(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        return f"ended with exit code {code}" + (f": {_one_line(lines[-1])}" if lines else "")

    def family(self) -> Iterator[psutil.Process]:
        return family.members(self.folder)

    def kill(self) -> None:
        family.kill(self.folder)

    def __exit__(self, *_: object) -> None:
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(family.KILL_LIMIT)
        self.pipe.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        _running.discard(self)


def _name(process: psutil.Process) -> str:
    """Its program; '' if it has ended."""
    with contextlib.suppress(psutil.Error):
        return process.name() if process.status() != psutil.STATUS_ZOMBIE else ""
    return ""


@contextlib.contextmanager
def _only(cores: Sequence[int] | None) -> Iterator[None]:
    """While this is open, processes that this thread starts may use only these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def environment(folder: str) -> dict[str, str]:
    """The environment variables of a recipe: ours, but with the caches for compiled kernels in an empty folder, so that
    a first result does not depend on earlier runs; without limits on the threads, or NumPy would have fewer cores than
    its results say; with nvcc on PATH if there is one; and with usage statistics, with warnings, and with what JAX and
    cuDF take of a GPU beforehand turned off; with the Array API in SciPy turned on."""
    settings = {name: value for name, value in os.environ.items() if name not in THREADS}
    for name in (
        "CUDA_CACHE_PATH",
        "CUDA_TILE_CACHE_DIR",
        "CUPY_CACHE_DIR",
        "NUMBA_CACHE_DIR",
        "POCL_CACHE_DIR",
        "TORCHINDUCTOR_CACHE_DIR",
        "TRITON_CACHE_DIR",
        "WARP_CACHE_PATH",
        "XDG_CACHE_HOME",
    ):
        settings[name] = f"{folder}/cache"
    settings.pop("JAX_COMPILATION_CACHE_DIR", None)  # without it, JAX keeps nothing on the disk
    settings[family.MARK] = str(folder)
    # JAX would take three quarters of each GPU as soon as it computes, also while other recipes are checked there.
    settings["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    # cudf.pandas and Polars' GPU engine would take managed memory, most of the GPU's from the start, and move pages.
    settings |= {"CUDF_PANDAS_RMM_MODE": "async", "POLARS_GPU_ENABLE_CUDA_MANAGED_MEMORY": "0"}
    settings["SCIPY_ARRAY_API"] = "1"  # or SciPy and scikit-learn refuse to dispatch to arrays on a GPU
    settings["RAY_USAGE_STATS_ENABLED"] = "0"
    settings["PYTHONWARNINGS"] = "ignore"  # NumPy's, of special values; a recipe cannot warn itself
    nvcc = machine.program("nvcc")
    if nvcc and not shutil.which("nvcc"):
        settings["PATH"] = f"{Path(nvcc).parent}{os.pathsep}{settings.get('PATH', os.defpath)}"
    return settings
