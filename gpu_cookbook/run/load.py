"""What disturbed a metric while it was measured: other programs on the same cores or GPU, or a device that slowed down
by itself."""

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pynvml

from gpu_cookbook import machine
from gpu_cookbook.run import family

# Other programs disturb if they use more than half a core, and more than this part of the cores that the recipe may
# use. Linux counts CPU time in ticks of 10 ms, so a metric of 0.3 s cannot show less than some percent of a core.
CORES, SHARE = 0.5, 0.05
PERCENT = 5  # of a GPU's time that another process has, in one of the driver's samples
SLOWED = 0.01  # of the time during which the clock was held down
REASONS = {  # NVML's counters of nanoseconds: why the clock was held down
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN": "heat",
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN": "heat",
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN": "the power supply",
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP": "its power limit",
}


@dataclass
class Watched:
    """What disturbed the measurement, in one line; None if nothing did."""

    seen: str | None = None


@dataclass(frozen=True)
class State:
    """Counters at one moment: they only grow."""

    time: float
    busy: float  # seconds, of the cores that this process may use
    own: float  # seconds of CPU time, of the recipe's processes
    cpu_slowed: int  # how often these cores slowed down because of heat
    gpu_slowed: dict[str, float] = field(default_factory=dict)  # seconds, by reason

    @classmethod
    def now(cls) -> "State":
        return cls(time.monotonic(), busy(), own(), cpu_slowed(), gpu_slowed())


@contextlib.contextmanager
def watched() -> Iterator[Watched]:
    """Looks before and after what is measured, not during: looking costs time itself."""
    found = Watched()
    moment = int(time.time() * 1e6)
    before = State.now()
    yield found
    found.seen = disturbance(before, State.now()) or others_on_gpus(moment)


def disturbance(before: State, after: State) -> str | None:
    """What disturbed the time between two states, in one line, or None."""
    elapsed = after.time - before.time
    cores = len(os.sched_getaffinity(0))
    others = ((after.busy - before.busy) - (after.own - before.own)) / elapsed
    if others > max(CORES, SHARE * cores):
        return f"other programs kept {others:.1f} of {cores} cores busy"
    if after.cpu_slowed > before.cpu_slowed:
        return "the CPU slowed down because of heat"
    for reason, seconds in after.gpu_slowed.items():
        if seconds - before.gpu_slowed.get(reason, seconds) > SLOWED * elapsed:
            return f"the GPU slowed down because of {reason}"
    return None


def busy() -> float:
    """Seconds that the cores of this process have worked, for whomever; a hypervisor that took them counts too."""
    ticks, cores = 0, os.sched_getaffinity(0)
    # psutil.cpu_times() does not say which core is which, and some may be offline.
    for core, times in re.findall(r"^cpu(\d+) (.*)", Path("/proc/stat").read_text(), re.MULTILINE):
        if int(core) in cores:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, times.split()[:8])
            ticks += user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def own() -> float:
    """Seconds of CPU time of this process, of those that the recipe has started, and of their ended children."""
    seconds = 0.0
    for process in _family():
        with contextlib.suppress(psutil.Error):
            seconds += sum(process.cpu_times()[:4])
    return seconds


def cpu_slowed() -> int:
    """How often the cores of this process have slowed down; 0 where Linux does not count it."""
    counts = 0
    for core in os.sched_getaffinity(0):
        with contextlib.suppress(OSError, ValueError):
            folder = Path(f"/sys/devices/system/cpu/cpu{core}/thermal_throttle")
            counts += int((folder / "core_throttle_count").read_text())
    return counts


def gpu_slowed() -> dict[str, float]:
    """{reason: seconds during which it held a GPU's clock down}; nothing where the driver does not count it."""
    found: dict[str, float] = {}
    fields = [getattr(pynvml, name) for name in REASONS]
    for value in _of_each_gpu(lambda handle: pynvml.nvmlDeviceGetFieldValues(handle, fields)):
        for reason, each in zip(REASONS.values(), value, strict=True):
            if each.nvmlReturn == pynvml.NVML_SUCCESS:
                found[reason] = found.get(reason, 0) + each.value.ullVal / 1e9
    return found


def others_on_gpus(since: int) -> str | None:
    """Which other process has computed on a GPU since that moment (in microseconds since 1970), in one line, or None.
    None also in a container that numbers its processes by itself: the driver's numbers mean nothing there."""
    mine = {process.pid for process in _family()}
    for samples in _of_each_gpu(lambda handle: pynvml.nvmlDeviceGetProcessUtilization(handle, since)):
        if not any(each.pid in mine for each in samples):
            continue
        for each in samples:
            if each.pid not in mine and each.timeStamp > since and each.smUtil > PERCENT:
                return f"process {each.pid} used the GPU for {each.smUtil} % of the time"
    return None


def _family() -> list[psutil.Process]:
    folder = os.environ.get(family.MARK)
    return list(family.members(folder)) if folder else [psutil.Process()]


def _of_each_gpu(ask: Callable) -> Iterator:
    """What NVML answers for each visible GPU; those that do not answer are left out."""
    for gpu in machine.gpus():
        with contextlib.suppress(pynvml.NVMLError):
            yield ask(pynvml.nvmlDeviceGetHandleByIndex(gpu.index))
