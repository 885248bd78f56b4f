"""The figures of one cell, taken in this process. Times are in seconds; docs/how-we-measure.md has their meaning."""

import threading
import time
from contextlib import nullcontext

import numpy as np

from gpu_cookbook import machine
from gpu_cookbook.run.check import Expected, repeats, round_trip, steps, takes_out
from gpu_cookbook.run.device import Host, Unmeasurable

VERSION = "1"  # of what the figures mean: stored ones of another version are not compared with them
BUDGET = 0.3  # seconds of calls for a figure
MOST_SAMPLES = 10_000  # an increment stays exact for 65,535 calls
SAMPLES = 10  # and at least so many, unless that takes more than four budgets (then 3), or ten (then 1)
COLD_LIMIT = 5  # without an upload a first call that takes longer is the sample; compiling was in the check before
SIGNIFICANCE = 0.8  # of the device's own time: a synchronised call cannot be faster, but for the clocks' spread
AGAIN = 2  # times that both are taken anew before that is said: of a CPU that others use, one may just have been slow
COPY_LIMIT = 1.5  # a copy's bandwidth is half reads; reading alone reached 1.08 of it on an H200 (subset_mean, PyCUDA)


class Refused(Exception):
    """A figure that cannot be true; the message says why."""


class Wrong(Exception):
    """A result that is not the reference's; the message says where."""


def sample(call):
    """Seconds of each call."""
    times = []
    begin = time.perf_counter()
    while True:
        start = time.perf_counter()
        call()
        end = time.perf_counter()
        times.append(end - start)
        spent, count = end - begin, len(times)
        if (
            count >= MOST_SAMPLES
            or (spent >= BUDGET and count >= SAMPLES)
            or (spent >= 4 * BUDGET and count >= 3)
            or spent >= 10 * BUDGET
        ):
            return times


def device_memory_used():
    return sum(used for used, _ in machine.device_memory())


class MemoryPeak:
    """The most NVIDIA device memory in use while it is open, over what was in use at ``base``; all GPUs together."""

    def __init__(self, base):
        self.base = base
        self.bytes = 0

    def __enter__(self):
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def _watch(self):
        while not self.stop.wait(0.002):
            self.look()

    def look(self):
        self.bytes = max(self.bytes, device_memory_used() - self.base)

    def __exit__(self, *_):
        self.look()
        self.stop.set()
        self.thread.join()


def first_result(loader, workload, engine):
    """(module, figures): what a fresh process spends until its first result, at the smallest headline size, by part.

    ``loader``: imports() the frameworks, then execute() gives the recipe's module. ``engine``: an ExitStack that keeps
    what the recipe starts.
    """
    inputs = workload.inputs(workload.SIZES[0])
    marks = [time.perf_counter()]

    def mark():
        marks.append(time.perf_counter())

    loader.imports()
    mark()
    module = loader.execute()
    if hasattr(module, "engine"):
        engine.enter_context(module.engine())
    upload, function, wait, download = steps(module, workload)
    arguments = upload(*inputs)
    mark()
    result = function(*arguments)
    wait(result)
    mark()
    download(result)
    mark()
    parts = ("import", "setup", "call", "download")
    figures = {f"first_{part}_s": b - a for part, a, b in zip(parts, marks, marks[1:], strict=False)}
    return module, {"first_result_s": marks[-1] - marks[0], **figures}


def does_not_fit(workload, size, device):
    """Why the cell is too large for the memory that is free, with the numbers, or None."""
    needed = workload.footprint(size)
    free = device.free_bytes()
    if free is not None and needed > 0.9 * free:
        return f"needs {needed / 1e9:,.1f} GB on the device, where {free / 1e9:,.1f} GB are free"
    if workload.bytes_moved(size):
        needed *= 3  # inputs and result, the reference's and one copy, for engines that share memory between processes
    elif isinstance(device, Host):
        needed *= device.cores  # no arrays are given: what each core makes at a time
    free = machine.host_memory_free()
    if needed > free:
        return f"needs {needed / 1e9:,.1f} GB of host memory, where {free / 1e9:,.1f} GB are free"
    return None


class Calls:
    """A recipe's calls on one input, as they are timed, and the proof that they did the work."""

    def __init__(self, module, workload, size):
        self.upload, self.function, self.wait, self.download = steps(module, workload)
        self.round_trip = round_trip(module, workload)
        self.workload = workload
        self.inputs = workload.inputs(size)
        self.expected = Expected(workload, self.inputs)
        self.in_place = repeats(workload)  # asked once: a timed call does nothing but the work

    def begin(self):
        """The arguments on the device, and no calls yet."""
        self.arguments = self.result = self.back = None  # freed before there are others
        self.options = {}
        self.calls = 0
        self.arguments = self.upload(*self.inputs)

    def poison(self):
        """Where a recipe can write into an array that exists: what the calls after this leave out of it stays NaN."""
        if takes_out(self.function):
            self.result = None
            self.options.clear()
            # A new one each time: upload() need not copy, and then the calls write into this one.
            (self.options["out"],) = self.upload(np.full(self.expected.answer.shape, np.nan, np.float32))

    def call(self):
        self.result = None  # one at a time
        self.result = result = self.function(*self.arguments, **self.options)
        self.calls += 1
        if self.in_place:
            self.arguments = (result,)
        return result

    def synchronised(self):
        self.wait(self.call())

    def verify(self, what=""):
        """Wrong, if the result of the last call is not that of all calls."""
        expected = Expected(self.workload, self.inputs, self.calls) if self.in_place else self.expected
        fault = expected.disagreement(self.download(self.result))
        if fault:
            raise Wrong(what + fault)

    def there_and_back(self):
        self.back = None  # one at a time
        self.back = self.round_trip(*self.inputs)

    def verify_back(self):
        fault = self.expected.disagreement(self.back)
        if fault:
            raise Wrong(f"with transfer: {fault}")


def measure(module, workload, size, device, memory_base):
    """The figures of one cell as a dict; ``samples`` has the seconds of each call. Wrong, Refused, or what the recipe
    raises."""
    figures = {"samples": {}}
    calls = Calls(module, workload, size)

    def spread(name, times):
        low, middle, high = np.percentile(times, (25, 50, 75)).tolist()
        figures.update({f"{name}_s": middle, f"{name}_q1_s": low, f"{name}_q3_s": high, f"{name}_samples": len(times)})
        figures["samples"][name] = times

    with MemoryPeak(memory_base) if memory_base is not None else nullcontext() as peak:
        calls.begin()
        start = time.perf_counter()
        calls.synchronised()
        cold = time.perf_counter() - start
    if peak:
        figures["peak_device_memory_bytes"] = peak.bytes
    uploaded = any(isinstance(x, np.ndarray) for x in calls.inputs)
    resident = [cold]
    if cold <= COLD_LIMIT or uploaded:  # the first call also waits for what upload() has only begun
        calls.poison()
        resident = sample(calls.synchronised)
    calls.verify()
    spread("resident", resident)
    wall = figures["resident_s"]

    try:
        calls.poison()
        device_times = device.device_times(calls.call, wall)
        for _ in range(AGAIN):
            if wall >= SIGNIFICANCE * np.median(device_times):
                break
            calls.poison()
            resident = sample(calls.synchronised)
            calls.verify()
            spread("resident", resident)
            wall = figures["resident_s"]
            calls.poison()
            device_times = device.device_times(calls.call, wall)
    except Unmeasurable as reason:
        figures["device_reason"] = str(reason)
    else:
        calls.wait(calls.result)
        calls.verify("with the queue kept full: ")
        spread("device", device_times)
        own = figures["device_s"]
        if wall < SIGNIFICANCE * own:
            raise Refused(
                f"one synchronised call takes {wall * 1e3:,.4g} ms, and {own * 1e3:,.4g} ms on the device's own clock:"
                " it was not waited for"
            )

    if uploaded:
        calls.options.clear()
        calls.arguments = calls.result = None
        spread("transfer", sample(calls.there_and_back))
        calls.verify_back()
    return figures


def judge(figures, workload, size, probe):
    """GB/s, Gop/s and share of the copy bandwidth, added to the figures. Refused where no device can be that fast.

    ``probe``: what was measured of the device; None in it is not known, and is not judged by.
    """
    moved = workload.bytes_moved(size)
    best = figures.get("device_s", figures["resident_s"])
    figures["device_copy_bandwidth_gb_per_s"] = probe["copy_bandwidth_gb_per_s"]
    figures["device_cache_bytes"] = probe["cache_bytes"]
    figures["operations_g_per_s"] = workload.operations(size) / best / 1e9
    if not moved:
        return figures
    rate = moved / best
    figures["bandwidth_gb_per_s"] = rate / 1e9
    # What fits into the cache is not limited by the memory: its share of the memory's bandwidth says nothing.
    limit = probe["copy_bandwidth_gb_per_s"]
    if None not in (limit, probe["cache_bytes"]) and moved > 2 * probe["cache_bytes"]:
        figures["copy_bandwidth_percent"] = 100 * rate / 1e9 / limit
        if rate / 1e9 > COPY_LIMIT * limit:
            raise Refused(
                f"{rate / 1e9:,.0f} GB/s is more than this device can do: a copy on it runs at {limit:,.0f} GB/s"
            )
    return figures
