"""The ways from host arrays to a host array, measured beside one another: ``python benchmarks/transfers.py``.

Each script of docs/transfers multiplies the same two arrays, and so do NumPy on one core, PyTorch on all of them, and
the recipes that are tuned for the transfer. All take turns in one process, for a few rounds of a few calls, and so do
bare copies, which are the limit. Every call gets host arrays that were filled just before it, so that nothing can be
left on the GPU, and every result is compared with NumPy's. A copy between two GPUs is measured where there are two.
Before all that, the product of two small matrices is measured in the same manner, and also from matrices that stay as
they are; then the parts of such a call, in as many more calls.

When all times are taken, one more call of each step that is drawn is recorded: PyTorch's profiler (Kineto, on CUPTI)
sees every copy and kernel of the process, whoever started it, and every call of the CUDA runtime. It does not see
NumPy's copies on the host: np.copyto is replaced for this one call by a function that looks at time.time_ns(), the
clock to which Kineto converts its own times. That a span of the profiler around the call begins between two looks at
time.time_ns(), to a fraction of a millisecond, shows that the clocks agree. The zero of all bars is the second look.

``--save NAME`` appends a line for a machine of that name to results/transfers.jsonl.
"""

import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import tables, timelines
from gpu_cookbook.render.format import UNKNOWN
from gpu_cookbook.render.timelines import row_of
from gpu_cookbook.results import Timing, keyed
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.script import Interruptible, Save, commit_for, finish, run
from gpu_cookbook.store import transfers
from gpu_cookbook.store.transfers import Bar, Step
from gpu_cookbook.terminal import fail
from gpu_cookbook.units import digits, seconds
from gpu_cookbook.words import reason

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "docs" / "transfers"
FILE = ROOT / "benchmarks" / "results" / transfers.FILE
CODE = ("benchmarks/transfers.py", "docs/transfers", "recipes", "kernels", "gpu_cookbook")  # what a line depends on

ELEMENTS = 2**28
SIDE = 200  # of the small matrices
ROUNDS, CALLS, SMALL_CALLS = 5, 3, 200  # as many turns, and so many calls in each
GPU_MEMORY = 16 * 2**30  # bytes: the arrays of all steps together, and room for CuPy's pool
MOST_BARS = {"host": 300, "wait": 100}  # of all rows of a kind; of all others together:
MOST_OTHERS = 200
MARK = "the call"
APART = 300  # µs: what the clocks of the profiler and of the host may differ by

ORDINARY, PAGE_LOCKED, UNIFIED = "pageable", "page_locked", "unified"  # kinds of arrays: the script that makes them
STEPS = {  # in the order of the page: the kind of arrays
    "pageable": ORDINARY,
    "page_locked": PAGE_LOCKED,
    "asynchronous": PAGE_LOCKED,
    "in_pieces": PAGE_LOCKED,
    "both_ways": PAGE_LOCKED,
    "zero_copy": PAGE_LOCKED,
    "staged": ORDINARY,
    "registered": ORDINARY,
    "unified": UNIFIED,
    "unified_prefetched": UNIFIED,
}
RECIPES = {  # the tuned ones, which take any arrays
    step: PAGE_LOCKED if step.endswith(PAGE_LOCKED) else ORDINARY
    for step in transfers.RECIPES
    if step.startswith("recipe")
}

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]  # two inputs and what they are multiplied into


class Wrong(Exception):
    """A result that differs from NumPy's."""


@dataclass(frozen=True)
class Way:
    """One step as it is called. ``after`` puts the result into the last array if the call itself has not."""

    name: str
    call: Callable[..., Any]
    arrays: Arrays | tuple[Any, ...]
    module: ModuleType | None = None  # whose copies on the host are recorded
    after: Callable[..., Any] | None = None


# ---- The arrays.


class Work:
    """The inputs, their product, and arrays of every kind, which are filled anew for each call."""

    def __init__(self) -> None:
        self.cores = len(os.sched_getaffinity(0))
        self.a, self.b = catalogue.workload_module("multiply").inputs(ELEMENTS)
        self.product = self.a * self.b

    def everywhere(self, function: Callable[..., Any], *arrays: np.ndarray) -> list[Any]:
        """What the function returns for each part of the arrays, on all cores."""
        bounds = np.linspace(0, arrays[0].size, self.cores + 1).astype(int)
        with ThreadPoolExecutor(self.cores) as pool:
            return list(pool.map(lambda ends: function(*(x[slice(*ends)] for x in arrays)), pairwise(bounds)))

    def fill(self, arrays: Arrays) -> None:
        """Writes the inputs, and NaN where the result is to be."""
        a, b, out = arrays
        self.everywhere(np.copyto, a, self.a)
        self.everywhere(np.copyto, b, self.b)
        self.everywhere(lambda part: part.fill(np.nan), out)

    def check(self, out: np.ndarray) -> None:
        if not all(self.everywhere(np.array_equal, out, self.product)):
            wrong = int(np.argmax(out != self.product))
            raise Wrong(f"element {wrong:,} is {out[wrong]}, not {self.product[wrong]}")


class Products(Work):
    """Small matrices and their product. No threads, which would keep the caches busy."""

    def __init__(self) -> None:
        self.a, self.b = catalogue.workload_module("matmul").inputs(SIDE)
        self.product = np.matmul(self.a, self.b, dtype=np.float64)

    def fill(self, arrays: Arrays) -> None:
        a, b, out = arrays
        np.copyto(a, self.a)
        np.copyto(b, self.b)
        out.fill(np.nan)

    def check(self, out: np.ndarray) -> None:
        if not np.allclose(out, self.product, rtol=0, atol=1e-4):
            raise Wrong(f"a product of two matrices is off by {np.abs(out - self.product).max()}")


# ---- The steps.


def script(name: str) -> ModuleType:
    return Loader(catalogue.read(SCRIPTS / f"{name}.py")).execute()


def recipe(step: str) -> ModuleType:
    """The recipe that a step calls."""
    workload, technique = transfers.RECIPES[step]
    (found,) = catalogue.choose([workload], [technique])
    return Loader(found).execute()


def ways(work: Work) -> Iterator[Way | Step]:
    """Every step of the ladder, and a Step with its reason for each that cannot run."""
    import torch

    modules: dict[str, ModuleType] = {}
    for name in STEPS:
        try:
            modules[name] = script(name)
        except Exception as error:  # a framework may raise anything
            yield Step(name, reason=reason(error))
    kinds: dict[str, Arrays] = {ORDINARY: tuple(np.empty(ELEMENTS, np.float32) for _ in range(3))}
    made, allocations = [], []
    for _ in range(3):
        start = time.perf_counter()
        made.append(modules[PAGE_LOCKED].array(ELEMENTS))
        allocations.append(time.perf_counter() - start)
    yield Step("allocate_page_locked", Timing.of(allocations))
    kinds[PAGE_LOCKED] = tuple(made)
    try:
        kinds[UNIFIED] = tuple(modules[UNIFIED].array(ELEMENTS) for _ in range(3))
    except Exception as error:  # not every system has unified memory
        print(f"unified memory: {reason(error)}", file=sys.stderr)
    yield from limits(kinds[PAGE_LOCKED], work)
    ordinary = kinds[ORDINARY]
    torch.set_num_threads(work.cores)
    tensors = [torch.from_numpy(x) for x in ordinary]
    yield Way("numpy", lambda a, b, out: np.multiply(a, b, out=out), ordinary)
    yield Way("torch_cpu", lambda a, b, out: torch.mul(tensors[0], tensors[1], out=tensors[2]), ordinary)
    for name, module in modules.items():
        if STEPS[name] in kinds:
            yield Way(name, module.multiply, kinds[STEPS[name]], module)
        else:
            yield Step(name, reason=f"no {STEPS[name]} arrays")
    yield from of_recipes(ordinary)
    try:
        yield host_copies(ordinary, recipe("host_copies"), work)
    except Exception as error:  # without CuPy, this step is missing, and no other
        yield Step("host_copies", reason=reason(error))


def host_copies(ordinary: Arrays, module: ModuleType, work: Work) -> Way:
    """The copies that the recipe makes of ordinary arrays, by as many threads, with nothing between."""
    rooms = [module.lane(0, number)[1] for number in range(module.LANES)]
    for room in rooms:
        room[2] = 1.0

    def call(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        def run(first: int) -> None:
            for start in range(first * module.PIECE, a.size, module.LANES * module.PIECE):
                x, y, z = (each[start : start + module.PIECE] for each in (a, b, out))
                np.copyto(rooms[first][0, : x.size], x)
                np.copyto(rooms[first][1, : y.size], y)
                np.copyto(z, rooms[first][2, : z.size])

        with ThreadPoolExecutor(module.LANES) as pool:
            list(pool.map(run, range(module.LANES)))

    def multiplied(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        """The product, if every element of the result was copied."""
        work.everywhere(lambda x, y, part: np.multiply(np.multiply(x, part, out=part), y, out=part), a, b, out)

    return Way("host_copies", call, ordinary, after=multiplied)


def of_recipes(ordinary: Arrays) -> Iterator[Way | Step]:
    """Every tuned recipe, from these arrays, and from page-locked ones that its own framework allocates."""
    modules: dict[tuple[str, str], ModuleType] = {}
    for name, kind in RECIPES.items():
        which = transfers.RECIPES[name]
        try:
            module = modules[which] = modules.get(which) or recipe(name)
            if which[1].startswith("pyopencl") and "NVIDIA" not in module.device.vendor:
                raise RuntimeError(f"OpenCL has only {module.device.name.strip()}")
            arrays = ordinary if kind == ORDINARY else tuple(module.pinned(ELEMENTS) for _ in range(3))
        except Exception as error:  # a framework that is not installed, for instance
            yield Step(name, reason=reason(error))
            continue
        yield Way(name, lambda a, b, out, module=module: module.round_trip(a, b, out=out), arrays, module)


def limits(arrays: Arrays, work: Work) -> Iterator[Way]:
    """One array from page-locked memory to the GPU, one back, and both at once."""
    import cupy as cp

    up, down = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    x, y = cp.empty(ELEMENTS, np.float32), cp.empty(ELEMENTS, np.float32)
    y.set(work.product)
    cp.cuda.get_current_stream().synchronize()  # before the two streams take what this one has written

    def send(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        x.set(a, up)
        up.synchronize()

    def fetch(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        y.get(out=out, stream=down, blocking=False)
        down.synchronize()

    def both(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        x.set(a, up)
        y.get(out=out, stream=down, blocking=False)
        up.synchronize()
        down.synchronize()

    def multiplied(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        """The product of what has arrived, which the next call does not find there."""
        x.get(out=out)
        x.fill(np.nan)
        cp.cuda.get_current_stream().synchronize()
        work.everywhere(lambda part, other: np.multiply(part, other, out=part), out, b)

    def both_there(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        work.check(out)
        multiplied(a, b, out)

    yield Way("limit_up", send, arrays, after=multiplied)
    yield Way("limit_down", fetch, arrays)
    yield Way("limit_both", both, arrays, after=both_there)


def between_gpus(work: Work) -> Iterator[Way | Step]:
    """One array from a GPU to another."""
    import cupy as cp

    names = ("gpu_to_gpu", "gpu_to_gpu_through_host")
    if cp.cuda.runtime.getDeviceCount() < 2:
        yield from (Step(name, reason="there is only one GPU") for name in names)
        return
    module, locked = script("between_gpus"), script(PAGE_LOCKED).array(ELEMENTS)
    x, out = (module.array(ELEMENTS, device) for device in range(2))
    x.set(work.product)

    yield Way(names[0], module.direct, (x, out), module)
    yield Way(names[1], lambda x, out: module.through_host(x, out, locked), (x, out), module)


def small() -> Iterator[Step]:
    """Two small matrices from host to host, and what that is made of."""
    import cupy as cp
    import torch

    work, tuned, stream = Products(), recipe("small"), cp.cuda.get_current_stream()
    ordinary = tuple(np.empty((SIDE, SIDE), np.float32) for _ in range(3))
    tensors = [torch.from_numpy(x) for x in ordinary]
    page_locked, unchanged = (tuple(tuned.pinned((SIDE, SIDE)) for _ in range(3)) for _ in range(2))
    work.fill(unchanged)
    kernel = cp.RawKernel('extern "C" __global__ void empty() {}', "empty")

    def launch(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        kernel((1,), (1,), ())
        stream.synchronize()

    def multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        np.matmul(a, b, out=out)

    def multiply_tensors(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        torch.matmul(tensors[0], tensors[1], out=tensors[2])

    def call(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        tuned.round_trip(a, b, out=out)

    def again(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        tuned.round_trip(*unchanged[:2], out=out)

    every: list[Way | Step] = [
        Way("small_numpy", multiply, ordinary),
        Way("small_torch_cpu", multiply_tensors, ordinary),
        Way("small_launch", launch, ordinary, after=multiply),
        Way("small_unchanged", again, page_locked, tuned),
        Way("small_page_locked", call, page_locked, tuned),
        Way("small", call, ordinary, tuned),
    ]
    try:
        other = recipe("small_torch")
        every.append(Way("small_torch", lambda a, b, out: other.round_trip(a, b, out=out), ordinary, other))
    except Exception as error:  # PyTorch may be one for the CPU only
        every.append(Step("small_torch", reason=reason(error)))
    steps = {step.name: step for step in measure(every, work, SMALL_CALLS)}
    for way in every:
        yield steps[way.name]
        if way.name in ("small", "small_torch"):
            yield from parts(way, steps[way.name], work)


def parts(way: Way | Step, step: Step, work: Work) -> Iterator[Step]:
    """What a call with small ordinary matrices is made of: two copies, the work on the GPU, one copy, and the rest."""
    names = [f"{way.name}_{part}" for part in timelines.PARTS]
    if not isinstance(way, Way) or not step.time:
        yield from (Step(name, reason=step.reason) for name in names)
        return
    found = []
    with watching(way.module) as watched:
        for _ in range(SMALL_CALLS):
            watched.spans.clear()
            took = timed(way, work)
            if len(watched.spans) != 3:  # a GPU of fewer multiprocessors than the product has tiles
                yield from (Step(name, reason="these matrices are not small for this GPU") for name in names)
                return
            first, second, last = ((start / 1e9, end / 1e9) for _, start, end in watched.spans)
            spans = second[1] - first[0], last[0] - second[1], last[1] - last[0]
            found.append((*spans, took - sum(spans)))
    yield from (Step(name, Timing.of(times)) for name, times in zip(names, zip(*found, strict=True), strict=True))


# ---- Measuring.


def prepared(way: Way, work: Work) -> None:
    """Nothing of an earlier call is left, neither in the host's arrays nor on a GPU."""
    out = way.arrays[-1]
    if isinstance(out, np.ndarray):
        work.fill(way.arrays)
    else:
        with out.device as device:
            out.fill(np.nan)
            device.synchronize()


def checked(way: Way, work: Work) -> None:
    if way.after:
        way.after(*way.arrays)
    last = way.arrays[-1]
    work.check(last if isinstance(last, np.ndarray) else last.get())


def timed(way: Way, work: Work) -> float:
    prepared(way, work)
    start = time.perf_counter()
    way.call(*way.arrays)
    took = time.perf_counter() - start
    checked(way, work)
    return took


def measure(every: Iterable[Way | Step], work: Work, calls: int = CALLS) -> Iterator[Step]:
    """The measured steps, in the same order. A Step among them stays as it is."""
    found: dict[str, Way | Step] = {each.name: each for each in every}
    samples: dict[str, list[float]] = {name: [] for name in found}

    def attempt(name: str, action: Callable[[Way], Any]) -> None:
        way = found[name]
        if isinstance(way, Way):
            try:
                action(way)
            except Exception as error:  # a framework may raise anything: the other steps can still be measured
                found[name] = Step(name, reason=reason(error))
                print(f"  {name}: {reason(error)}", file=sys.stderr)

    def turn(way: Way) -> None:
        samples[way.name] += [timed(way, work) for _ in range(calls)]

    print("first calls", file=sys.stderr)
    for name in found:
        attempt(name, lambda way: timed(way, work))
    names = list(found)
    try:
        for number in range(ROUNDS):
            print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
            for name in random.Random(number).sample(names, len(names)):  # nobody always comes after the same neighbour
                attempt(name, turn)
    except KeyboardInterrupt:
        yield from (Step(name, Timing.of(times)) for name, times in samples.items() if times)
        raise
    if any(name in timelines.DRAWN for name in names):
        warm_up()
    for name in names:
        if isinstance(found[name], Way):
            step = Step(name, Timing.of(samples[name]))
            if name not in timelines.DRAWN:
                yield step
                continue
            print(f"recording {name}", file=sys.stderr)
            recorded: list[Step] = []
            attempt(name, lambda way, step=step, into=recorded: into.append(record(way, step, work)))
            found[name] = recorded[0] if recorded else step
        yield found[name]


# ---- Recording.


class Watched:
    """NumPy, except that the spans of its copies are kept."""

    def __init__(self) -> None:
        self.spans: list[tuple[tuple[int, ...], int, int]] = []  # what the thread is called, and the ends in ns

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def watch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            start = time.time_ns()
            try:
                return function(*arguments, **options)
            finally:
                self.spans.append((aliases(), start, time.time_ns()))

        return watched

    @property
    def copyto(self) -> Callable[..., Any]:
        return self.watch(np.copyto)


@contextmanager
def watching(module: ModuleType | None) -> Iterator[Watched]:
    """Meanwhile, the copies on the host that the module does are kept."""
    watched = Watched()
    own = {name: getattr(module, name) for name in ("np", "touch") if hasattr(module, name)}
    try:
        for name, value in own.items():
            setattr(module, name, watched if name == "np" else watched.watch(value))  # touch() reads pages on the host
        yield watched
    finally:
        for name, value in own.items():
            setattr(module, name, value)


def warm_up() -> None:
    """A first recording, which starts CUPTI and is thrown away."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]), record_function(MARK):
        torch.ones(1, device="cuda").add_(1)


def record(way: Way, step: Step, work: Work) -> Step:
    """The step with the bars of one call."""
    from torch.profiler import ProfilerActivity, profile, record_function

    prepared(way, work)
    with watching(way.module) as watched, profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        way.call(*way.arrays)  # the first launch of each kernel in a recording is slow
        prepared(way, work)
        earliest = time.time_ns()
        with record_function(MARK):
            begin = time.time_ns()
            way.call(*way.arrays)
            end = time.time_ns()
    checked(way, work)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        trace = json.loads(path.read_text(encoding="utf-8"))
    events, base = trace["traceEvents"], trace.get("baseTimeNanoseconds", 0)
    (call,) = (each for each in events if each.get("name") == MARK and each.get("cat") == "user_annotation")
    if not earliest - 1e3 * APART <= base + 1e3 * call["ts"] <= begin + 1e3 * APART:
        raise Wrong(f"the profiler's clock is {(base + 1e3 * call['ts'] - begin) / 1e3:,.0f} µs from the host's")
    spans = [(thread, (start - begin) / 1e3, (end - start) / 1e3) for thread, start, end in watched.spans]
    took = (end - begin) / 1e3
    bars = bars_of(events, spans, (begin - base) / 1e3, took)
    drawn, closed = fewer(bars)
    return replace(step, bars=tuple(drawn), traced=took / 1e6, closed=closed, busy=busy(bars))


def bars_of(
    events: list[dict[str, Any]], spans: Iterable[tuple[tuple[int, ...], float, float]], zero: float, took: float
) -> list[Bar]:
    """The bars of a trace and of copies on the host, in µs from the start of the call. ``spans``: (aliases of the
    thread, start, duration); ``zero``: the start in the trace's µs; ``took``: how long the call took."""
    numbers = dict.fromkeys(aliases(), 1)
    bars = []

    def thread(*known: int) -> int:
        number = next((numbers[each] for each in known if each in numbers), max(numbers.values()) + 1)
        numbers.update(dict.fromkeys(known, number))
        return number

    def add(row: str, known: tuple[int, ...], start: float, duration: float) -> None:
        """A bar, if it is of this call, and not of the one before it or of the profiler. The clocks of the host and the
        GPU agree to some µs only: it may seem to begin before the call, or to end after it."""
        first, last = max(0.0, start), min(took, start + duration)
        if first < last:
            bars.append((f"{row} {thread(*known)}" if known else row, first, last - first))

    for known, start, duration in spans:
        add("host", known, start, duration)
    for each in events:
        kind, name = each.get("cat"), str(each.get("name"))
        if kind == "gpu_memcpy":
            row = next((row for word, row in (("HtoD", "up"), ("DtoH", "down")) if word in name), "peer")
        elif kind == "kernel":
            row = "kernel"
        elif kind in ("cuda_runtime", "cuda_driver"):
            row = "wait" if "Synchronize" in name else "host"
        else:
            continue
        add(row, (each["tid"],) if row in ("host", "wait") else (), float(each["ts"]) - zero, float(each["dur"]))
    return bars


def aliases() -> tuple[int, ...]:
    """What a profiler may call this thread: the system's number for it, or its ident, or the lower half of that, with
    a sign or without."""
    ident = threading.get_ident()
    low = ident & 0xFFFFFFFF
    return threading.get_native_id(), ident, low, low - 2**32, 2**32 - low


def joined(bars: Iterable[Bar], gap: float = 0.0) -> list[tuple[float, float]]:
    """(start, end) of the bars of one row, in order, after all gaps of up to this length were closed."""
    found: list[tuple[float, float]] = []
    for _, start, duration in sorted(bars, key=lambda bar: bar[1]):
        end = start + duration
        if found and start - found[-1][1] <= gap:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def busy(bars: Iterable[Bar]) -> dict[str, float]:
    """For how many µs at least one bar of each kind was there."""
    return {
        kind: round(sum(end - start for start, end in joined(those)), 1) for kind, those in groups(bars, row_of).items()
    }


def groups(bars: Iterable[Bar], key: Callable[[Bar], str]) -> dict[str, list[Bar]]:
    return dict(sorted(keyed(bars, key).items()))


def fewer(bars: Iterable[Bar]) -> tuple[list[Bar], float]:
    """Not too many bars, rounded to a tenth of a µs, and the longest gap that was closed for that. The shortest gaps
    are closed first. Those between kernels stay: most of the time there is none. Of several threads only the work is
    left: they wait between it."""
    bars = list(bars)
    if len({row for row, *_ in bars if row.startswith("host")}) > 1:
        bars = [bar for bar in bars if row_of(bar) != "wait"]
    found: list[Bar] = []
    longest = 0.0
    for kind, those in groups(bars, lambda bar: row_of(bar) if row_of(bar) in MOST_BARS else "").items():
        rows = groups(those, lambda bar: bar[0])
        spans = {row: joined(each) for row, each in rows.items()}
        gaps = sorted(
            after[0] - before[1] for row, each in spans.items() if row != "kernel" for before, after in pairwise(each)
        )
        excess = sum(map(len, spans.values())) - MOST_BARS.get(kind, MOST_OTHERS)
        gap = gaps[min(excess, len(gaps)) - 1] if excess > 0 and gaps else 0.0
        longest = max(longest, gap)
        for row, each in rows.items():
            for start, end in joined(each, 0.0 if row == "kernel" else gap):
                found.append((row, round(start, 1), round(end - start, 1)))
    return found, round(longest, 1)


# ---- The run.


def table(steps: dict[str, Step]) -> tables.Table:
    """Each step beside the first, and beside what the bus can do."""
    limit, first = (steps[name].time if name in steps else None for name in ("limit_up", "pageable"))
    rows = []
    for step in steps.values():
        words = [UNKNOWN] * 4
        if step.time:
            words[:2] = [seconds(step.time.median), f"{seconds(step.time.q1)} to {seconds(step.time.q3)}"]
            if first and step.name in (*STEPS, *RECIPES):
                words[2] = f"{digits(first.median / step.time.median)} ×"
            if limit and step.name in (*STEPS, *RECIPES):
                words[3] = f"{200 * limit.median / step.time.median:.0f} %"
        bars = f"{len(step.bars)} bars" if step.bars else step.reason
        rows.append(tuple(map(tables.Entry, (step.name, *words, bars))))
    head = ("step", "time", "quartiles", "× pageable", "of the bus' limit", "")
    return tables.Table(f"Transfers, {ELEMENTS:,} elements of float32", head, "lrrrrl", rows, [], [])


def require_gpu() -> None:
    if not machine.gpus():
        fail("These are transfers to an NVIDIA GPU, but this machine has none.")
    missing = [name for name in ("cupy", "torch") if not machine.installed(name)]
    if missing:
        fail(f'Not installed: {", ".join(missing)}. pip install "cupy-cuda13x[ctk]" torch')
    free = machine.device_memory()[0][1]
    if free < GPU_MEMORY:
        needed = f"{GPU_MEMORY / 2**30:.0f} GiB"
        fail(f"This needs {needed} of the GPU's memory, of which {free / 2**30:.1f} GiB are free.")


def main(save: Save = None):
    """Measure the ways from host arrays to a host array."""
    head = commit_for(save, ROOT, CODE, FILE)
    require_gpu()
    found: list[Step] = []
    with Interruptible() as measuring:
        print("small matrices", file=sys.stderr)
        found += small()
        print("making arrays", file=sys.stderr)
        work = Work()
        found += measure([*ways(work), *between_gpus(work)], work)
    steps = {step.name: step for step in found}
    packages = ("cupy", "numba", "numba_cuda", "numpy", "pycuda", "pyopencl", "torch")
    line = transfers.line(save, head, packages, ELEMENTS, steps.values()) if save else None
    finish([table(steps)], FILE, line, measuring.stopped)


if __name__ == "__main__":
    run(main)
