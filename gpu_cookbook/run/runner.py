"""Runs each recipe in its own process with a time limit, so that one that crashes loses only its own results."""

import contextlib
import json
import os
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

import psutil

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Probe, Result, Size, Status, from_wire

START_LIMIT = 300  # seconds to import, start engines and compile before the first result
PROBE_LIMIT = 120  # seconds
END_LIMIT = 60  # seconds from the last result to the end of the process: Ray needs time to stop its own processes
KILL_LIMIT = 5  # seconds: a process that is still alive by then is stuck in the driver
MARK = "GPU_COOKBOOK_WORKER"  # the environment variable that identifies the processes of a worker
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
    probes: dict[str, Probe] | None = None,
    started: Callable[[catalogue.Recipe, Size], None] = lambda recipe, size: None,
) -> Iterator[Result]:
    """Yields one result per size as soon as it is known.

    If something ends the process early, the remaining sizes have failed, with the reason. If none remain, the last one
    has failed, because a recipe that crashes at its end is not safe to paste. ``action``: check or measure.
    ``started`` is called when the work on a size begins.
    """
    obstacle = machine.obstacle(recipe)
    if obstacle:
        yield from (Result.of(recipe, size, Status.SKIPPED, obstacle) for size in sizes)
        return
    machine.versions(recipe.packages)  # looked up now, not while a worker is measuring
    limit = catalogue.workload_module(recipe.workload).TIME_LIMIT
    wire = {kind: asdict(probe) for kind, probe in (probes or {}).items()}
    job = {"action": action, "path": str(recipe.path), "sizes": sizes, "probes": wire}
    left = list(sizes)
    device = last = ending = None
    with Process(job) as process:
        try:
            for message in process.messages(START_LIMIT, limit):
                if "start" in message:
                    started(recipe, _size(message["start"]))
                elif "device" in message:
                    device = message["device"]
                elif "result" in message:
                    found = _with_conditions(from_wire(message["result"]), recipe, device)
                    left.remove(found.size)
                    if left:
                        yield found
                    else:
                        last = found  # held back until the process has ended
                else:
                    ending = ending or message["ending"]
        except KeyboardInterrupt:
            if last:
                yield last
            raise
    if last and last.ok and ending:
        last = replace(last, status=Status.FAILED, reason=f"passed, then at exit: {ending}")
    if last:
        yield last
    for number, size in enumerate(left):
        reason = ending if number == 0 else f"not reached: {ending}"
        yield _with_conditions(Result.of(recipe, size, Status.FAILED, reason), recipe, device)


def _size(wire: Any) -> Size:
    return tuple(wire) if isinstance(wire, list) else wire


def _with_conditions(result: Result, recipe: catalogue.Recipe, device: str | None) -> Result:
    """The result with what this process knows about where it ran; the device's name comes from the worker."""
    nvidia = machine.nvidia() if machine.is_gpu(device) else None
    return replace(
        result,
        device=device,
        driver=nvidia.driver if nvidia else None,
        cuda=".".join(map(str, nvidia.cuda)) if nvidia else None,
        versions=machine.versions(recipe.packages) if device else None,
    )


def probe(recipes: Sequence[catalogue.Recipe]) -> dict[str, Probe]:
    """What is measured on each kind of device (host, cuda, opencl) that these recipes run on here."""
    runs_on = {recipe.runs_on for recipe in recipes if not machine.obstacle(recipe)}
    kinds = ["host"]
    if machine.gpus() and runs_on - {"CPU"}:
        kinds.append("cuda")
    if "OpenCL device" in runs_on:
        kinds.append("opencl")
    found: dict[str, Probe] = {}
    for kind in kinds:
        with Process({"action": "probe", "kind": kind}) as process:
            for message in process.messages(PROBE_LIMIT, PROBE_LIMIT):
                if "ending" in message:
                    found.setdefault(kind, Probe(failed=message["ending"]))
                else:
                    found[kind] = Probe(**message["probe"])
    return found


_running: set["Process"] = set()


def stop_all() -> None:
    """Ends every worker for which another thread is waiting."""
    for process in list(_running):
        process.kill()


class Process:
    """A worker process with empty caches for compiled kernels. Everything that it started ends with it.

    ``cores``: the cores that it may use. ``gpus``: the indices of the NVIDIA GPUs that it can see.
    """

    def __init__(
        self, job: dict[str, Any], cores: Sequence[int] | None = None, gpus: Sequence[int] | None = None
    ) -> None:
        self.job = job
        self.cores = cores
        self.gpus = gpus

    def __enter__(self) -> Self:
        self.folder = tempfile.mkdtemp(prefix="gpu-cookbook-")
        reading, writing = os.pipe()
        self.pipe = os.fdopen(reading, "rb")
        _running.add(self)
        settings = (GIVE_UP if self.job.get("address") else {}) | environment(self.folder)
        if self.gpus is not None:
            settings |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(map(str, self.gpus))}
        with Path(self.folder, "stderr").open("wb") as errors, _only(self.cores):
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
            stdin.write(json.dumps(self.job).encode())
        return self

    def messages(self, first_limit: float, limit: float) -> Iterator[dict[str, Any]]:
        """The worker's messages, followed by {"ending": reason} if it did not end normally."""
        buffer = b""
        deadline = time.monotonic() + first_limit
        measuring = False
        while True:
            ready, _, _ = select.select([self.pipe], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                yield {"ending": f"timed out after {limit if measuring else first_limit} s"}
                return
            block = os.read(self.pipe.fileno(), 65536)
            if not block:
                break
            *lines, buffer = (buffer + block).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if {"result", "device", "engine", "imported"} & message.keys():
                    measuring = True
                deadline = time.monotonic() + (limit if measuring else first_limit)
                yield message
        try:
            code = self.popen.wait(END_LIMIT)
        except subprocess.TimeoutExpired:
            yield {"ending": f"did not exit within {END_LIMIT} s of its last result and was stopped"}
        else:
            if code:
                yield {"ending": self._reason(code)}

    def _reason(self, code: int) -> str:
        if code == -signal.SIGKILL:
            return "killed by SIGKILL, which the system sends when memory runs out"
        if code < 0:
            return f"crashed: {signal.Signals(-code).name}"
        with Path(self.folder, "stderr").open(encoding="utf-8", errors="replace") as errors:
            lines = [line.strip() for line in errors if line.strip()]
        return lines[-1][:300] if lines else f"ended with exit code {code}"

    def family(self) -> Iterator[psutil.Process]:
        """The worker and all its descendants, even orphaned ones and those in other sessions: they inherited the folder
        in their environment."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) == self.folder:
                    yield process

    def kill(self) -> None:
        # multiprocessing's resource trackers exit by themselves once they have freed the shared memory of processes
        # that have ended.
        _end(lambda: [process for process in self.family() if "resource_tracker" not in " ".join(_command(process))])
        psutil.wait_procs(list(self.family()), timeout=3)
        _end(self.family)

    def __exit__(self, *_: object) -> None:
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(KILL_LIMIT)
        self.pipe.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        _running.discard(self)


@contextlib.contextmanager
def _only(cores: Sequence[int] | None) -> Iterator[None]:
    """While this is open, processes that this thread starts may use only these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _end(family: Callable[[], Any]) -> None:
    """Kills all processes of a family, including those that they started in the meantime."""
    deadline = time.monotonic() + KILL_LIMIT
    while (processes := list(family())) and time.monotonic() < deadline:
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.01)


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def environment(folder: str) -> dict[str, str]:
    """The environment variables of a recipe: ours, but with the caches for compiled kernels in an empty folder, so that
    a first result does not depend on earlier runs; with nvcc on PATH if there is one; and with usage statistics turned
    off."""
    settings = dict(os.environ)
    for name in (
        "CUDA_CACHE_PATH",
        "CUPY_CACHE_DIR",
        "NUMBA_CACHE_DIR",
        "POCL_CACHE_DIR",
        "TORCHINDUCTOR_CACHE_DIR",
        "TRITON_CACHE_DIR",
        "XDG_CACHE_HOME",
    ):
        settings[name] = f"{folder}/cache"
    settings[MARK] = str(folder)
    settings["RAY_USAGE_STATS_ENABLED"] = "0"
    nvcc = machine.program("nvcc")
    if nvcc and not shutil.which("nvcc"):
        settings["PATH"] = f"{Path(nvcc).parent}{os.pathsep}{settings.get('PATH', os.defpath)}"
    return settings
