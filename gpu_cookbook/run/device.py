"""The devices that recipes run on: their name, their own clock, their copy bandwidth. One class per kind of device."""

import contextlib
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.thread import _WorkItem
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from gpu_cookbook import machine

COPY_BYTES = 2**30
COPIES = 10
BATCHES = 10
LATE_SPIN = 0.1  # seconds: long compared with the time slices of other processes that run checks on the same device


Call = Callable[[], Any]
Wait = Callable[[Any], None]
Right = Callable[[Any], bool]  # whether the memory of a result holds the right answer at this moment


class Unmeasurable(Exception):
    """The metric cannot be measured here; the message says why."""


class Device(Protocol):
    """What measuring needs of each kind of device."""

    name: str

    def late(self, call: Call, wait: Wait, right: Right) -> bool: ...

    def device_times(self, call: Callable[[], Any], wall: float) -> list[float]: ...

    def free_bytes(self) -> int | None: ...

    def copy_bandwidth(self) -> float: ...

    def cache_bytes(self) -> int | None: ...


def _late(occupy: Callable[[float], None], finish: Callable[[], Any], call: Call, wait: Wait, right: Right) -> bool:
    """Whether wait() returns before call() is done on a device that is kept busy meanwhile."""
    for seconds in (LATE_SPIN, 10 * LATE_SPIN):
        finish()
        start = time.perf_counter()
        occupy(seconds)
        with held_up(LATE_SPIN):
            result = call()
            wait(result)
            waited = time.perf_counter() - start
            late = not right(result)
        finish()
        if late or waited > seconds / 2:  # else this process was held up, and the device was free too early
            return late
    return False


@contextlib.contextmanager
def held_up(seconds: float) -> Iterator[None]:
    """Every other thread of this process that starts, or takes up work from a pool, sleeps first."""
    start, run = threading.Thread.start, _WorkItem.run
    me = threading.get_ident()

    def start_later(thread: threading.Thread) -> None:
        begin = thread.run

        def run_later() -> None:
            time.sleep(seconds)
            begin()

        thread.run = run_later  # type: ignore[method-assign]
        start(thread)

    def run_item_later(item: Any) -> None:
        time.sleep(seconds)
        run(item)

    def sleep_once(*_: object) -> None:
        if threading.get_ident() != me:
            sys.setprofile(None)
            time.sleep(seconds)

    threading.Thread.start, _WorkItem.run = start_later, run_item_later  # type: ignore[method-assign,assignment]
    if sys.version_info >= (3, 12):
        threading.setprofile_all_threads(sleep_once)
    try:
        yield
    finally:
        if sys.version_info >= (3, 12):
            threading.setprofile_all_threads(None)
        threading.Thread.start, _WorkItem.run = start, run  # type: ignore[method-assign]


def _by_host_clock(batch: Callable[[int, Call, float], tuple[float, float]], call: Call, wall: float) -> list[float]:
    """Seconds per call: the difference between 2 n calls and n calls, divided by n; all of them are queued before the
    first one runs. ``batch``: of so many calls behind so many seconds of spinning, the seconds until all are queued and
    until all are done. ``wall``: seconds of one synchronised call. Unmeasurable if a call waits for the device by
    itself."""
    count = max(1, min(50, int(0.02 / wall)))
    enqueuing, _ = batch(2 * count, call, 0)
    if enqueuing > 1:
        raise Unmeasurable("queuing the calls takes seconds: they wait for the device by themselves")
    busy = 1e-3 + 2 * enqueuing
    longest = 8 * busy
    times: list[float] = []
    while len(times) < BATCHES and sum(times) * 3 * count < 2:  # seconds
        short, long = batch(count, call, busy), batch(2 * count, call, busy)
        if max(short[0], long[0]) < 0.9 * busy:
            times.append((long[1] - short[1]) / count)
        elif busy < longest:  # the host was delayed: keep the device busy for longer
            busy, times = 2 * busy, []
        else:
            raise Unmeasurable("a call waits for the device by itself, so no queue forms")
    if statistics.median(times) <= 0:
        raise Unmeasurable("a call is too short to be measured with the host's clock")
    return times


class Host:
    """The CPU, whose only clock is the host's."""

    def __init__(self) -> None:
        self.name = machine.processor()
        self.cores = len(os.sched_getaffinity(0))

    def late(self, call: Call, wait: Wait, right: Right) -> bool:
        """Whether wait() returns before call() is done: every thread that it starts or hands work to is held up."""
        with held_up(LATE_SPIN):
            result = call()
            wait(result)
            return not right(result)

    def device_times(self, call: Callable[[], Any], wall: float) -> list[float]:
        raise Unmeasurable("there is no clock other than the host's")

    def free_bytes(self) -> int | None:
        return None

    def copy_bandwidth(self) -> float:
        """Bytes read and written per second by all cores together, each copying blocks of its own."""
        size = min(COPY_BYTES, machine.host_memory_free() // 8) // self.cores
        blocks = [(np.ones(size, np.uint8), np.zeros(size, np.uint8)) for _ in range(self.cores)]
        with ThreadPoolExecutor(self.cores) as pool:
            times = []
            for _ in range(COPIES):
                start = time.perf_counter()
                list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), blocks))
                times.append(time.perf_counter() - start)
        return 2 * size * self.cores / statistics.median(times)

    def cache_bytes(self) -> int | None:
        """The last-level caches of the cores that this process may use, each counted once."""
        caches = {}
        for core in os.sched_getaffinity(0):
            levels = Path(f"/sys/devices/system/cpu/cpu{core}/cache").glob("index*")
            last = max(levels, key=lambda level: int((level / "level").read_text()), default=None)
            if last:
                size = int((last / "size").read_text().strip().removesuffix("K")) * 1024
                caches[(last / "shared_cpu_list").read_text()] = size
        return sum(caches.values()) or None  # not every system reports them


class EveryGpu(Host):
    """All visible NVIDIA GPUs behind an engine: only the host's clock covers all of them."""

    def __init__(self) -> None:
        super().__init__()
        gpus = machine.gpus()
        self.name = f"{len(gpus)} × {gpus[0].name}" if len(gpus) > 1 else gpus[0].name

    def free_bytes(self) -> int | None:
        """The work is divided evenly, so the GPU with the least free memory is the limit."""
        memory = machine.device_memory()
        return len(memory) * min(free for _, free in memory)


class Cuda:
    """The first visible NVIDIA GPU, timed by its own events in the primary context, which every framework shares."""

    # Keeps the GPU busy, so that everything launched in the meantime waits in the queue. It ends by itself: a kernel
    # that waited for the host would never end if a later launch had to wait for the device first.
    SPIN = r"""
    extern "C" __global__ void spin(long long nanoseconds)
    {
        long long start, now;
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
        do
            asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
        while (now - start < nanoseconds);
    }
    """

    def __init__(self) -> None:
        try:
            from cuda.core import LEGACY_DEFAULT_STREAM, Device, EventOptions, Program, ProgramOptions
        except ModuleNotFoundError:
            nvidia = machine.nvidia()
            major = nvidia.cuda[0] if nvidia else 13
            raise Unmeasurable(
                f'gpu-cookbook needs cuda-core to measure on GPUs: pip install "cuda-core[cu{major}]"'
                if major > 11
                else "gpu-cookbook needs cuda-core to measure on GPUs, and that needs a driver for CUDA 12 or newer"
            ) from None

        self.device = Device(0)
        self.device.set_current()
        self.name = self.device.name
        self.stream = LEGACY_DEFAULT_STREAM  # what PyCUDA, CuPy, Numba and PyTorch use, unless told otherwise
        self.own = self.device.create_stream()
        self.timed = EventOptions(timing_enabled=True)
        arch = "".join(map(str, self.device.compute_capability))
        self.kernel = Program(self.SPIN, "c++", ProgramOptions(arch=f"sm_{arch}")).compile("cubin").get_kernel("spin")
        self.spin(1e-3)  # loads the kernel
        self.device.sync()

    def spin(self, seconds: float) -> None:
        from cuda.core import LaunchConfig, launch

        launch(self.stream, LaunchConfig(grid=1, block=1), self.kernel, np.int64(seconds * 1e9))

    def record(self) -> Any:
        return self.stream.record(options=self.timed)

    def late(self, call: Call, wait: Wait, right: Right) -> bool:
        """Whether wait() returns before the device is done with call(), in whatever stream that runs."""
        return _late(self.occupy, self.device.sync, call, wait, right)

    def occupy(self, seconds: float) -> None:
        """Takes every thread of every multiprocessor, in a stream of its own, so that no other kernel can begin."""
        from cuda.core import LaunchConfig, launch

        properties = self.device.properties
        threads = properties.max_threads_per_multiprocessor
        blocks = -(-threads // properties.max_threads_per_block)
        config = LaunchConfig(grid=blocks * properties.multiprocessor_count, block=threads // blocks)
        launch(self.own, config, self.kernel, np.int64(seconds * 1e9))

    def device_times(self, call: Callable[[], Any], wall: float) -> list[float]:
        """Seconds per call, one value per batch of calls that were all queued before the first of them ran.

        ``wall``: seconds of one synchronised call. Unmeasurable if a call waits for the device by itself.
        """
        count = max(1, min(100, int(0.005 / wall)))
        times: list[float] = []
        while len(times) < BATCHES:
            self.device.sync()
            self.spin(1e-3 + 2 * wall * count)
            start = self.record()
            for _ in range(count):
                call()
            stop = self.record()
            queued = not start.is_done
            stop.sync()
            if queued:
                times.append((stop - start) / 1e3 / count)
            elif count > 1:
                count, times = count // 2, []
            else:
                raise Unmeasurable("a call waits for the device by itself, so no queue forms")
            if sum(times) * count > 4:  # seconds
                break
        return times

    def host_times(self, call: Callable[[], Any], wall: float) -> list[float]:
        """device_times() by the host's clock, which knows nothing of the device's."""

        def batch(count: int, call: Call, busy: float) -> tuple[float, float]:
            self.device.sync()
            start = time.perf_counter()
            if busy:
                self.spin(busy)
            for _ in range(count):
                call()
            enqueued = time.perf_counter() - start
            self.device.sync()
            return enqueued, time.perf_counter() - start

        return _by_host_clock(batch, call, wall)

    def free_bytes(self) -> int:
        return machine.device_memory()[0][1]

    def copy_bandwidth(self) -> float:
        """Bytes read and written per second by a copy within the device's memory."""
        size = min(COPY_BYTES, self.free_bytes() // 4)
        source, target = (self.device.allocate(size, stream=self.stream) for _ in range(2))
        source.fill(1, stream=self.stream)
        source.copy_to(target, stream=self.stream)
        times = self.device_times(lambda: source.copy_to(target, stream=self.stream), wall=1e-3)
        return 2 * size / statistics.median(times)

    def cache_bytes(self) -> int | None:
        return self.device.properties.l2_cache_size


class OpenCl:
    """The device behind a PyOpenCL queue."""

    # As in Cuda: keeps the device busy while calls are queued. OpenCL C cannot read a clock, so the number of rounds
    # per second is measured first. (Holding the queue with a user event crashed NVIDIA's driver.)
    SPIN = """
    __kernel void spin(const long rounds, __global float *sink)
    {
        float x = 0;
        for (long i = 0; i < rounds; i++)
            x = x * 0.5f + 1;
        *sink = x;
    }
    """

    def __init__(self, queue: Any) -> None:
        import pyopencl as cl

        self.queue = queue
        self.own = cl.CommandQueue(queue.context, queue.device)
        self.occupied_rounds = 0.0  # per second; measured when it is needed
        self.name = queue.device.name.strip()
        self.kernel = cl.Kernel(cl.Program(queue.context, self.SPIN).build(), "spin")
        self.sink = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 4)
        self.rounds = 100_000
        times = []
        for _ in range(5):
            self.queue.finish()
            start = time.perf_counter()
            self.spin(1)
            self.queue.finish()
            times.append(time.perf_counter() - start)
        # Per second. The first launch may compile, and a busy CPU may delay any of them: the fastest was not delayed.
        self.rounds = int(self.rounds / min(times))

    @classmethod
    def default(cls) -> Self:
        """The device that the recipes use: a GPU if there is one."""
        import pyopencl as cl

        devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
        device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])
        return cls(cl.CommandQueue(cl.Context([device])))

    def spin(self, seconds: float) -> None:
        self.kernel(self.queue, (1,), (1,), np.int64(seconds * self.rounds), self.sink)

    def late(self, call: Call, wait: Wait, right: Right) -> bool:
        """Whether wait() returns before the device is done with call(), in whatever queue that runs."""
        return _late(self.occupy, self.finish, call, wait, right)

    def finish(self) -> None:
        self.queue.finish()
        self.own.finish()

    def occupy(self, seconds: float) -> None:
        """Takes every compute unit, in a queue of its own, so that no other kernel can begin; and the recipe's queue,
        since a CPU's threads may get to its kernels in between."""
        if not self.occupied_rounds:
            times = []
            for _ in range(3):
                start = time.perf_counter()
                self._occupy(self.rounds // 1000)
                self.own.finish()
                times.append(time.perf_counter() - start)
            self.occupied_rounds = self.rounds // 1000 / min(times)
        self._occupy(seconds * self.occupied_rounds)
        self.own.flush()
        self.spin(seconds)
        self.queue.flush()

    def _occupy(self, rounds: float) -> None:
        import pyopencl as cl

        # A GPU's compute unit has room for up to 2,048 work-items. PoCL's threads take up to 32 groups at a time.
        groups, size = (32, 1) if self.queue.device.type & cl.device_type.CPU else (8, 256)
        count = self.queue.device.max_compute_units * groups
        self.kernel(self.own, (count * size,), (size,), np.int64(rounds), self.sink)

    def device_times(self, call: Callable[[], Any], wall: float) -> list[float]:
        """Seconds per call, by the host's clock: OpenCL's own needs a queue that was made for it."""
        return _by_host_clock(self._batch, call, wall)

    def _batch(self, count: int, call: Callable[[], Any], busy: float) -> tuple[float, float]:
        """(seconds until all calls are queued, seconds until all are done), queued after ``busy`` seconds of
        spinning."""
        self.queue.finish()
        start = time.perf_counter()
        self.spin(busy)
        self.queue.flush()
        results = [call() for _ in range(count)]  # kept alive: freeing memory early may wait for the device
        self.queue.flush()
        enqueued = time.perf_counter() - start
        self.queue.finish()
        done = time.perf_counter() - start
        del results
        return enqueued, done

    def free_bytes(self) -> int | None:
        import pyopencl as cl

        device = self.queue.device
        if device.type & cl.device_type.GPU and self.name in {gpu.name for gpu in machine.gpus()}:
            return machine.device_memory()[0][1]
        return device.global_mem_size

    def copy_bandwidth(self) -> float:
        """Bytes read and written per second by a copy within the device's memory; on a CPU by all cores, as in Host,
        because PoCL copies with a single core."""
        import pyopencl as cl

        if self.queue.device.type & cl.device_type.CPU:
            return Host().copy_bandwidth()
        size = min(COPY_BYTES, self.queue.device.max_mem_alloc_size // 2)
        source, target = (cl.Buffer(self.queue.context, cl.mem_flags.READ_WRITE, size) for _ in range(2))
        cl.enqueue_fill_buffer(self.queue, source, np.uint8(1), 0, size)
        cl.enqueue_copy(self.queue, target, source)
        times = self.device_times(lambda: cl.enqueue_copy(self.queue, target, source), wall=0.1)
        return 2 * size / statistics.median(times)

    def cache_bytes(self) -> int | None:
        return self.queue.device.global_mem_cache_size
