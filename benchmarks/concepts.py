"""How fast the memories of a GPU are, and kernels that are right and slow beside others that are right and fast:
``python benchmarks/concepts.py``.

The kernels are in docs/concepts, and docs/concepts.md says what they show. The result of each case is compared with
NumPy's before its times are taken, by the GPU's own events, with everything in the queue before the first launch
begins. The latency of a memory is the time of a load that begins when the one before it is done, by one thread alone.

``--save NAME`` appends a line for a machine of that name to results/concepts.jsonl.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import concepts as shown
from gpu_cookbook.results import Timing
from gpu_cookbook.run.device import Cuda, Unmeasurable
from gpu_cookbook.script import Interruptible, Save, commit_for, finish, run
from gpu_cookbook.store import transfers
from gpu_cookbook.store.transfers import Step
from gpu_cookbook.terminal import complain, fail
from gpu_cookbook.words import reason

ROOT = Path(__file__).parents[1]
KERNELS = ROOT / "docs" / "concepts"
FILE = ROOT / "benchmarks" / "results" / transfers.CONCEPTS
CODE = ("benchmarks/concepts.py", "docs/concepts", "gpu_cookbook")  # what a line depends on

BLOCK = 256  # threads
ROWS, COLUMNS = 2**19, 512  # whose sums are taken
NUMBERS, STEPS = 2**22, 1_000  # how many random numbers, and how often each is replaced by the next
DIFFERENT = 2**12  # of them: NumPy takes long for all
READ = 2**28  # numbers in 1 GiB, which no cache holds
EACH = 64  # vectors of four numbers that a thread reads
IN_L1, IN_L2, IN_MEMORY = 2**14, 2**23, 2**29  # bytes over which the loads go that these memories answer
LINE = 128  # bytes: of a cache, so that no load finds what one before it has brought
NEAR, FAR = 2**20, 2**16  # loads of a launch, from memories on the multiprocessor and from others
SHARED_EACH, STRIDE = 4_096, 33  # vectors that a thread reads from shared memory, and how far one is from the next
BLOCKS = (1, 2, 4, 8)  # on a multiprocessor


class Wrong(Exception):
    """A result that differs from NumPy's."""


@dataclass(frozen=True)
class Case:
    """One kernel with its arguments. ``check`` is called after a launch, and raises Wrong."""

    name: str
    launch: Callable[[], Any]
    check: Callable[[], None]
    moved: int = 0  # bytes, by a launch
    loads: int = 1  # of which a launch consists: the time of one is stored


class Gpu:
    """Arrays, kernels and times by CuPy and gpu_cookbook.run.device."""

    def __init__(self) -> None:
        import cupy as cp

        self.cp, self.timer = cp, Cuda()
        properties = self.timer.device.properties
        self.multiprocessors = properties.multiprocessor_count
        self.threads = properties.max_threads_per_multiprocessor
        self.shared = properties.max_shared_memory_per_multiprocessor
        self.reserved = properties.reserved_shared_memory_per_block

    def upload(self, array: np.ndarray) -> Any:
        return self.cp.asarray(array)

    def unwritten(self, count: int, dtype: type) -> Any:
        """An array of NaN, or of the largest numbers."""
        array = self.cp.empty(count, dtype)
        array.data.memset(255, array.nbytes)
        return array

    def write(self, array: Any, values: np.ndarray) -> None:
        array.set(values)

    def download(self, array: Any) -> np.ndarray:
        return self.cp.asnumpy(array)

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def launcher(
        self, file: str, name: str, blocks: int, threads: int, *arguments: Any, shared: int = 0, full: bool = False
    ) -> Callable[[], Any]:
        """A function that launches a kernel of this file. ``shared``: bytes for each block, besides those that the
        kernel itself names; ``full``: as much of the memory for both as there is is for shared memory, not for L1."""
        kernel = self.cp.RawKernel((KERNELS / file).read_text(encoding="utf-8"), name)
        if shared:  # more than 48 KiB must be asked for
            kernel.max_dynamic_shared_size_bytes = shared
        if full:
            kernel.preferred_shared_memory_carveout = 100
        return lambda: kernel((blocks,), (threads,), arguments, shared_mem=shared)

    def times(self, call: Callable[[], Any]) -> list[float]:
        start = time.perf_counter()
        call()
        self.timer.device.sync()
        return self.timer.device_times(call, time.perf_counter() - start)


def equal(found: np.ndarray, expected: np.ndarray) -> None:
    if not np.array_equal(found, expected):
        wrong = int(np.argmax(found != expected))
        raise Wrong(f"element {wrong:,} is {found[wrong]}, not {expected[wrong]}")


@lru_cache(1)
def numbers(count: int) -> np.ndarray:
    """Whole numbers from 0 to 7: sums of them are exact in any order."""
    return (np.arange(count, dtype=np.uint32) * np.uint32(2_654_435_761) >> np.uint32(29)).astype(np.float32)


def blocks_for(count: int) -> int:
    return -(-count // BLOCK)


# ---- The cases.


def coalescing(gpu: Any) -> Iterator[Case]:
    x = numbers(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    expected = x.sum(axis=1)
    for name, stored in (("rows", x), ("columns", x.T)):
        array, sums = gpu.upload(np.ascontiguousarray(stored).ravel()), gpu.unwritten(ROWS, np.float32)
        arguments = (array, np.int32(ROWS), np.int32(COLUMNS), sums)
        launch = gpu.launcher("coalescing.cu", f"{name}_side_by_side", blocks_for(ROWS), BLOCK, *arguments)
        yield Case(f"coalescing_{name}", launch, partial(check, gpu, sums, expected), x.nbytes)


def advanced(x: np.ndarray) -> np.ndarray:
    """What the generators of divergence.cu make of these numbers."""
    out = x.copy()
    first, second, third, fourth = (out[generator::4] for generator in range(4))
    for _ in range(STEPS):
        first[:] = first * np.uint32(1_664_525) + np.uint32(1_013_904_223)
        second[:] = (second >> np.uint32(1)) ^ (second & np.uint32(1)) * np.uint32(0xA3000000)
        third ^= third << np.uint32(13)
        third ^= third >> np.uint32(17)
        third ^= third << np.uint32(5)
        fourth[:] = (fourth << np.uint32(7) | fourth >> np.uint32(25)) * np.uint32(5) + np.uint32(0xE6546B64)
    return out


def divergence(gpu: Any) -> Iterator[Case]:
    x = np.tile(np.arange(1, DIFFERENT + 1, dtype=np.uint32), NUMBERS // DIFFERENT)
    expected = np.tile(advanced(x[:DIFFERENT]), NUMBERS // DIFFERENT)
    array = gpu.upload(x)
    for name in ("mixed", "sorted"):
        out = gpu.unwritten(NUMBERS, np.uint32)
        arguments = (array, out, np.int32(NUMBERS), np.int32(STEPS))
        launch = gpu.launcher("divergence.cu", name, blocks_for(NUMBERS), BLOCK, *arguments)
        yield Case(f"divergence_{name}", launch, partial(check, gpu, out, expected))


def occupancy(gpu: Any) -> Iterator[Case]:
    """The same kernel with so much shared memory for each block that only a few of them fit on a multiprocessor."""
    x = numbers(READ)
    array, expected = gpu.upload(x), 2 * x
    for blocks in BLOCKS:
        if blocks * BLOCK > gpu.threads:
            return
        shared = gpu.shared // blocks // 1024 * 1024 - gpu.reserved
        out = gpu.unwritten(READ, np.float32)
        arguments = (array, out, np.int64(READ))
        launch = gpu.launcher("occupancy.cu", "twice", blocks_for(READ), BLOCK, *arguments, shared=shared, full=True)
        yield Case(f"occupancy_{blocks}", launch, partial(check, gpu, out, expected), 2 * x.nbytes)


def way_through(count: int) -> np.ndarray:
    """So many places in a random order, the first one first."""
    return np.append(0, 1 + np.random.default_rng(0).permutation(count - 1))


class Chase:
    """The way of one thread from element to element, each of which holds where the next one is."""

    def __init__(self, gpu: Any, kernel: str, array: Any, places: np.ndarray, steps: int) -> None:
        self.gpu, self.places, self.steps, self.launches = gpu, places, steps, 0
        self.array = array  # the elements, which a kernel gets by their addresses alone
        self.state = gpu.upload(places[:1])
        arguments = (self.state, np.int32(steps))
        if kernel == "chase_in_shared":
            arguments = (array, *arguments)
        self.start = gpu.launcher("memories.cu", kernel, 1, 1, *arguments)

    def launch(self) -> None:
        self.launches += 1
        self.start()

    def check(self) -> None:
        passed = self.launches * self.steps % self.places.size
        equal(self.gpu.download(self.state), self.places[passed : passed + 1])


def latency(gpu: Any) -> Iterator[Case]:
    way = way_through(256)
    offsets = np.empty(256, np.uint32)
    offsets[way] = 4 * np.roll(way, -1)
    chased = Chase(gpu, "chase_in_shared", gpu.upload(offsets), 4 * way.astype(np.uint32), NEAR)
    yield Case("memories_shared_latency", chased.launch, chased.check, loads=NEAR)
    for name, kernel, size, steps in (
        ("l1", "chase_through_l1", IN_L1, NEAR),
        ("l2", "chase_past_l1", IN_L2, FAR),
        ("device", "chase_past_l1", IN_MEMORY, FAR),
    ):
        array = gpu.unwritten(size // 8, np.uint64)
        way = way_through(size // LINE)
        addresses = np.uint64(gpu.address(array)) + way.astype(np.uint64) * np.uint64(LINE)
        lines = np.zeros((way.size, LINE // 8), np.uint64)
        lines[way, 0] = np.roll(addresses, -1)
        gpu.write(array, lines.ravel())
        chased = Chase(gpu, kernel, array, addresses, steps)
        yield Case(f"memories_{name}_latency", chased.launch, chased.check, loads=steps)


def bandwidth(gpu: Any) -> Iterator[Case]:
    tile = numbers(READ)[: 4 * 1024]
    vectors = tile.reshape(1024, 4).sum(axis=1)
    blocks = gpu.multiprocessors * gpu.threads // BLOCK
    places = np.arange(BLOCK)[:, None] + STRIDE * np.arange(SHARED_EACH)
    expected = np.tile(vectors[places % 1024].sum(axis=1), blocks)
    sums = gpu.unwritten(blocks * BLOCK, np.float32)
    arguments = (gpu.upload(tile), np.uint32(STRIDE), np.int32(SHARED_EACH), sums)
    launch = gpu.launcher("memories.cu", "read_shared", blocks, BLOCK, *arguments, full=True)
    moved = 16 * SHARED_EACH * blocks * BLOCK
    yield Case("memories_shared_read", launch, partial(check, gpu, sums, expected), moved)

    x = numbers(READ)
    array = gpu.upload(x)
    blocks = READ // (4 * EACH * BLOCK)
    by_thread = x.reshape(blocks, EACH, BLOCK, 4).sum(axis=(1, 3))
    for name, size in (("l2", IN_L2), ("device", x.nbytes)):
        part = size // (16 * EACH * BLOCK)  # blocks that read it once
        expected = np.tile(by_thread[:part].ravel(), blocks // part)
        sums = gpu.unwritten(blocks * BLOCK, np.float32)
        arguments = (array, np.uint32(size // 16 - 1), np.int32(EACH), sums)
        launch = gpu.launcher("memories.cu", "read_past_l1", blocks, BLOCK, *arguments)
        yield Case(f"memories_{name}_read", launch, partial(check, gpu, sums, expected), x.nbytes)


def check(gpu: Any, array: Any, expected: np.ndarray) -> None:
    equal(gpu.download(array), expected)


# ---- The run.


def measured(gpu: Any) -> Iterator[Step]:
    """The time of every case, or why there is none."""
    for group in (coalescing, divergence, occupancy, latency, bandwidth):
        print(group.__name__, file=sys.stderr)
        cases = group(gpu)
        while True:
            try:
                case = next(cases, None)
            except Exception as error:  # CuPy's errors have no common base: for memory, for a kernel that is refused
                yield Step(group.__name__, reason=reason(error))
                break
            if case is None:
                break
            yield taken(gpu, case)


def taken(gpu: Any, case: Case) -> Step:
    try:
        case.launch()
        case.check()
        times = gpu.times(case.launch)
        case.check()
    except Exception as error:  # as above
        return Step(case.name, reason=reason(error))
    return Step(case.name, Timing.of([each / case.loads for each in times]), moved=case.moved)


def main(save: Save = None):
    """Measure the memories of a GPU, and kernels that are slow beside others that are fast."""
    head = commit_for(save, ROOT, CODE, FILE)
    if not machine.gpus():
        fail("What is measured is an NVIDIA GPU, but this machine has none.")
    recipe = catalogue.find("multiply", "cupy")  # it needs the same
    assert recipe
    if obstacle := machine.obstacle(recipe):
        fail(f"CuPy launches the kernels: {obstacle}")
    steps: list[Step] = []
    try:
        gpu = Gpu()
    except Unmeasurable as error:
        fail(str(error))
    with Interruptible() as measuring:
        steps += measured(gpu)
    line = transfers.line(save, head, recipe.packages, 1, steps) if save else None
    finish([shown.table({step.name: step for step in steps}, "Concepts")], FILE, line, measuring.stopped)
    if any(step.reason for step in steps):
        complain(["Not everything could be measured: the table says why."])


if __name__ == "__main__":
    run(main)
