"""The devices that recipes run on: their name, their own clock, what they can do. One class per kind of device."""

import contextlib
import json
import mmap
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.thread import _WorkItem
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import psutil
from numpy.lib.stride_tricks import as_strided

from gpu_cookbook import machine
from gpu_cookbook.results import Probe
from gpu_cookbook.run import memory

COPY_BYTES = 2**30  # from one half of a GPU's buffer to the other: far beyond any cache
BATCHES = 10
WAITS = "a call waits for the device by itself, so no queue forms"
PROBED = 5  # how often each figure of a GPU is measured in a probe, which gives the best
PROBE_LIMIT = 120  # seconds
BEYOND_CACHE = 4  # bytes that a probe of the CPU changes in place, for each byte of cache
# Bytes: twice that fit into the innermost cache of every CPU, and copies of fewer take longer per byte.
INNERMOST = 12 * 1024
# Gop/s of a core: what NumPy's matmul reaches at least, if its library uses vectors at all. Eight operations per cycle
# at 2 GHz; the reference BLAS does a few.
VECTORS = 16
LATE_SPIN = 0.1  # seconds: long compared with the time slices of other processes that run checks on the same device
HELD = 0.05  # seconds for which an engine's processes are stopped


Call = Callable[[], Any]
Wait = Callable[[Any], None]
Right = Callable[[Any], bool]  # whether the memory of a result holds the right answer at this moment


class Unmeasurable(Exception):
    """The metric cannot be measured here; the message says why."""


class Device(Protocol):
    """What measuring needs of each kind of device."""

    name: str
    page_locks: bool  # whether page-locked memory of the host makes a difference to it

    def late(self, call: Call, wait: Wait, right: Right) -> bool: ...

    def device_times(self, call: Call, wall: float) -> list[float]: ...

    def free_bytes(self) -> int | None: ...

    def probe(self) -> Probe: ...


def _late(occupy: Callable[[float], None], finish: Call, call: Call, wait: Wait, right: Right) -> bool:
    """Whether wait() returns before call() is done on a device that is kept busy meanwhile."""
    for seconds in (LATE_SPIN, 10 * LATE_SPIN):
        finish()
        start = time.perf_counter()
        occupy(seconds)
        with held_up():
            result = call()
            wait(result)
            waited = time.perf_counter() - start
            late = not right(result)
        finish()
        if late or waited > seconds / 2:  # else this process was held up, and the device was free too early
            return late
    return False


@contextlib.contextmanager
def processes_held_up(
    seconds: float, half: int | None = None
) -> Iterator[tuple[list[psutil.Process], threading.Event]]:
    """Stops the processes that work for this one for so many seconds, or until this is closed: all of them, or every
    other one of those without children, the first or the second of each pair. Gives those that were stopped, and an
    event that is set when they are resumed."""
    workers = psutil.Process().children(recursive=True)
    if half is not None:
        workers = [each for each in workers if not _children(each)][half::2]
    stopped: list[psutil.Process] = []
    released = threading.Event()

    def resume() -> None:
        released.set()
        for each in workers:
            with contextlib.suppress(psutil.Error):
                each.resume()

    timer = threading.Timer(seconds, resume)
    try:
        for each in workers:
            with contextlib.suppress(psutil.Error):
                each.suspend()
                stopped.append(each)
        timer.start()
        yield stopped, released
    finally:
        timer.cancel()
        resume()
        if timer.ident:
            timer.join()


def has_processes() -> bool:
    """Whether any process works for this one."""
    return bool(psutil.Process().children())


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children()
    except psutil.Error:
        return []


@contextlib.contextmanager
def held_up() -> Iterator[None]:
    """Every other thread of this process that starts, or takes up work from a pool, sleeps first."""
    start, run = threading.Thread.start, _WorkItem.run
    me = threading.get_ident()

    def start_later(thread: threading.Thread) -> None:
        begin = thread.run

        def run_later() -> None:
            time.sleep(LATE_SPIN)
            begin()

        thread.run = run_later  # type: ignore[method-assign]
        start(thread)

    def run_item_later(item: Any) -> None:
        time.sleep(LATE_SPIN)
        run(item)

    def sleep_once(*_: object) -> None:
        if threading.get_ident() != me:
            sys.setprofile(None)
            time.sleep(LATE_SPIN)

    threading.Thread.start, _WorkItem.run = start_later, run_item_later  # type: ignore[method-assign,assignment]
    if sys.version_info >= (3, 12):
        threading.setprofile_all_threads(sleep_once)
    try:
        yield
    finally:
        if sys.version_info >= (3, 12):
            threading.setprofile_all_threads(None)
        threading.Thread.start, _WorkItem.run = start, run  # type: ignore[method-assign]


def _by_host_clock(
    batch: Callable[[int, Call, float], tuple[float, float]], call: Call, wall: float, most: int = 50
) -> list[float]:
    """Seconds per call: the difference between 2 n calls and n calls, divided by n; all of them are queued before the
    first one runs. ``batch``: of so many calls behind so many seconds of spinning, the seconds until all are queued and
    until all are done. ``wall``: seconds of one synchronised call. ``most``: of n. Unmeasurable if a call waits for the
    device by itself."""
    count = max(1, min(most, int(0.02 / wall)))
    enqueuing, _ = batch(2 * count, call, 0)
    if enqueuing > 1:
        raise Unmeasurable("queuing the calls takes seconds: they wait for the device by themselves")
    busy = 1e-3 + 2 * enqueuing
    longest = 8 * busy
    times: list[float] = []
    while len(times) < BATCHES and sum(times) * 3 * count < 1.5:  # seconds
        short, long = batch(count, call, busy), batch(2 * count, call, busy)
        if max(short[0], long[0]) < 0.9 * busy:
            times.append((long[1] - short[1]) / count)
        elif busy < longest:  # the host was delayed: keep the device busy for longer
            busy, times = 2 * busy, []
        else:
            raise Unmeasurable(WAITS)
    if statistics.median(times) <= 0:
        raise Unmeasurable("a call is too short to be measured with the host's clock")
    return times


def _part_of(cache_bytes: int) -> tuple[int, int]:
    """(vectors of 16 bytes in an eighth of a cache, or fewer, a power of two; how far apart steps through them are)."""
    n = 1 << max(10, (cache_bytes // 8 // 16).bit_length() - 1)
    return n, int(0.618 * n) // 32 * 32  # far from the last few steps, whose vectors a smaller cache may still have


def _fastest(call: Call, seconds: float = 0.02) -> float:
    """The seconds of the fastest call, which nothing else on this machine has delayed, of those in so many seconds."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _memory(size: int) -> np.ndarray:
    """So many bytes, which begin with a page and go back to the system as soon as nothing refers to them."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a system without large pages
        memory.madvise(mmap.MADV_HUGEPAGE)  # as NumPy's arrays
    return np.frombuffer(memory, np.uint8)


class Host:
    """The CPU, whose only clock is the host's."""

    page_locks = False

    def __init__(self) -> None:
        self.name = machine.processor()
        self.cores = len(os.sched_getaffinity(0))

    def late(self, call: Call, wait: Wait, right: Right) -> bool:
        """Whether wait() returns before call() is done: every thread that it starts or hands work to is held up."""
        with held_up():
            result = call()
            wait(result)
            return not right(result)

    def device_times(self, call: Call, wall: float) -> list[float]:
        raise Unmeasurable("there is no clock other than the host's")

    def free_bytes(self) -> int | None:
        return None

    def probe(self) -> Probe:
        """In about 0.1 s. Nothing of it stays: its memory comes from the system itself, so that malloc does not change
        what it does for the recipe."""
        return Probe(
            self.name,
            self.copy_bandwidth() / 1e9,
            self.cache_bytes(),
            cache_bandwidth=self.cache_bandwidth() / 1e9,
            arithmetic=self.arithmetic(),
        )

    def copy_bandwidth(self) -> float:
        """Bytes read and written per second by all cores together, each in memory of its own, in place: a copy to
        elsewhere also reads what it overwrites, which nobody counts."""
        wanted = max(2**26, BEYOND_CACHE * (self.cache_bytes() or 2**26))
        size = min(wanted, machine.host_memory_free() // 8) // (4 * self.cores)  # of a core's memory
        blocks = _memory(4 * self.cores * size).view(np.float32).reshape(self.cores, size)
        with ThreadPoolExecutor(self.cores) as pool:
            list(pool.map(lambda mine: mine.fill(1), blocks))  # a page lies near the core that first writes it
            best = _fastest(lambda: list(pool.map(lambda mine: np.negative(mine, out=mine), blocks)), 0.1)
        return 2 * blocks.nbytes / best

    def cache_bandwidth(self) -> float:
        """Bytes per second of a copy within the innermost cache, times the number of cores: no cache is faster. One
        core is measured, since a call that starts threads would mostly wait for them."""
        halves = _memory(2 * INNERMOST).reshape(2, INNERMOST)
        halves.fill(1)
        again = 2**20 // INNERMOST
        source, target = (as_strided(half.view(f"V{INNERMOST}"), (again,), (0,)) for half in halves)
        return 2 * again * INNERMOST * self.cores / _fastest(lambda: np.copyto(target, source))

    def arithmetic(self) -> float | None:
        """Billions of multiplications and additions in float32 per second in short products, which a library computes
        on one core, times the number of cores: no more are done at once. None if NumPy's library is slow."""
        a, b = np.ones((8, 64, 64), np.float32), np.ones((64, 64), np.float32)
        product = np.empty_like(a)
        rate = 2 * 64 * a.size / _fastest(lambda: np.matmul(a, b, out=product)) / 1e9
        return rate * self.cores if rate > VECTORS else None

    def cache_bytes(self) -> int | None:
        """The last-level caches of the cores that this process may use, each counted once."""
        caches = {}
        for core in os.sched_getaffinity(0):
            levels = Path(f"/sys/devices/system/cpu/cpu{core}/cache").glob("index*")
            with contextlib.suppress(OSError, ValueError):  # not every system reports them
                last = max(levels, key=lambda level: int((level / "level").read_text()))
                size = int((last / "size").read_text().strip().removesuffix("K")) * 1024
                caches[(last / "shared_cpu_list").read_text()] = size
        return sum(caches.values()) or None


class EveryGpu(Host):
    """All visible NVIDIA GPUs behind an engine: only the host's clock covers all of them."""

    page_locks = True

    def __init__(self) -> None:
        super().__init__()
        gpus = machine.gpus()
        self.name = f"{len(gpus)} × {gpus[0].name}" if len(gpus) > 1 else gpus[0].name

    def free_bytes(self) -> int | None:
        """The work is divided evenly, so the GPU with the least free memory is the limit."""
        memory = machine.device_memory()
        return len(memory) * min(free for _, free in memory)

    def probe(self) -> Probe:
        """The first GPU's, times their number. In a process of its own: what an engine forks later could not use CUDA
        if this one did."""
        code = "import json; from gpu_cookbook.run.device import Cuda; print(json.dumps(vars(Cuda().probe())))"
        command = [sys.executable, "-P", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_LIMIT, check=False)
        if done.returncode:
            raise Unmeasurable((done.stderr.strip().splitlines() or ["no answer"])[-1])
        one = json.loads(done.stdout)
        count = len(machine.gpus())
        rates = ("copy_bandwidth", "cache_bytes", "cache_bandwidth", "arithmetic")
        return Probe(self.name, **{rate: one[rate] and count * one[rate] for rate in rates})


class Cuda:
    """The first visible NVIDIA GPU, timed by its own events in the primary context, which every framework shares."""

    page_locks = True

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
    # What a probe runs. In touch(), each of ``steps`` takes the threads of a grid to another place of the n vectors (a
    # power of two), and .cg passes by the caches of the multiprocessors. The results go nowhere, since no sum is that.
    WORK = r"""
    extern "C" __global__ void touch(const float4 *source, float4 *target, unsigned n, unsigned steps, unsigned stride,
                                     int store)
    {
        unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
        float sum = 0;
        for (unsigned step = 0; step < steps; step += 4) {
            float4 x[4];
            #pragma unroll
            for (unsigned k = 0; k < 4; k++)
                asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(x[k].x), "=f"(x[k].y), "=f"(x[k].z), "=f"(x[k].w)
                             : "l"(source + ((id + (step + k) * stride) & (n - 1))));
            #pragma unroll
            for (unsigned k = 0; k < 4; k++)
                if (store)
                    asm volatile("st.global.cg.v4.f32 [%0], {%1, %2, %3, %4};"
                                 :: "l"(target + ((id + (step + k) * stride) & (n - 1))),
                                    "f"(x[k].x), "f"(x[k].y), "f"(x[k].z), "f"(x[k].w)
                                 : "memory");
                else
                    sum += x[k].x + x[k].y + x[k].z + x[k].w;
        }
        if (sum == 0.12345f)
            target[0].x = sum;
    }

    extern "C" __global__ void multiply_add(float a, float b, int rounds, float *sink)
    {
        float x[8];
        for (int k = 0; k < 8; k++)
            x[k] = threadIdx.x + k;
        #pragma unroll 8
        for (int i = 0; i < rounds; i++)
            for (int k = 0; k < 8; k++)
                x[k] = fmaf(x[k], a, b);
        float sum = 0;
        for (int k = 0; k < 8; k++)
            sum += x[k];
        if (sum == 0.12345f)
            *sink = sum;
    }

    extern "C" __global__ void empty() {}
    """

    def __init__(self) -> None:
        try:
            from gpu_cookbook.run.cuda_core import LEGACY_DEFAULT_STREAM, TIMED, Device, Program, ProgramOptions
        except ModuleNotFoundError:
            install = machine.for_cuda('pip install "cuda-core[cu13]"', machine.newest_cuda(machine.nvidia()))
            raise Unmeasurable(f"gpu-cookbook needs cuda-core to measure on GPUs: {install}") from None

        self.device = Device(0)
        self.device.set_current()
        self.name = self.device.name
        self.stream = LEGACY_DEFAULT_STREAM  # what PyCUDA, CuPy, Numba and PyTorch use, unless told otherwise
        self.own = self.device.create_stream()
        self.timed = TIMED
        arch = "".join(map(str, self.device.compute_capability))
        self.compiled = lambda code: Program(code, "c++", ProgramOptions(arch=f"sm_{arch}")).compile("cubin")
        self.kernel = self.compiled(self.SPIN).get_kernel("spin")
        self.spin(1e-3)  # loads the kernel
        self.device.sync()

    def spin(self, seconds: float) -> None:
        from gpu_cookbook.run.cuda_core import LaunchConfig, launch

        launch(self.stream, LaunchConfig(grid=1, block=1), self.kernel, np.int64(seconds * 1e9))

    def record(self) -> Any:
        return self.stream.record(options=self.timed)

    def late(self, call: Call, wait: Wait, right: Right) -> bool:
        """Whether wait() returns before the device is done with call(), in whatever stream that runs."""
        return _late(self.occupy, self.device.sync, call, wait, right)

    def occupy(self, seconds: float) -> None:
        """Takes every thread of every multiprocessor, in a stream of its own, so that no other kernel can begin."""
        from gpu_cookbook.run.cuda_core import LaunchConfig, launch

        blocks, threads = self.everywhere()
        launch(self.own, LaunchConfig(grid=blocks, block=threads), self.kernel, np.int64(seconds * 1e9))

    def everywhere(self) -> tuple[int, int]:
        """(blocks, threads of each) that take every thread of every multiprocessor."""
        properties = self.device.properties
        threads = properties.max_threads_per_multiprocessor
        blocks = -(-threads // properties.max_threads_per_block)
        return blocks * properties.multiprocessor_count, threads // blocks

    def device_times(self, call: Call, wall: float) -> list[float]:
        """Seconds per call, one value per batch of calls that were all queued before the first of them ran.

        ``wall``: seconds of one synchronised call. Unmeasurable if a call waits for the device by itself, as one whose
        result is on the host does, perhaps in streams that do not wait for the one whose clock is read.
        """
        if memory.is_all_on_host(call()):
            raise Unmeasurable(WAITS)
        count = max(1, min(100, int(0.005 / wall)))
        times: list[float] = []
        while len(times) < BATCHES:
            seconds = self.behind(1e-3 + 2 * wall * count, call, count)
            if seconds is not None:
                times.append(seconds)
            elif count > 1:
                count, times = count // 2, []
            else:
                raise Unmeasurable(WAITS)
            if sum(times) * count > 1.5:  # seconds
                break
        return times

    def behind(self, busy: float, call: Call, count: int) -> float | None:
        """Seconds per call of so many calls behind so many seconds of spinning, by the device's clock; None if the
        first of them ran before all were queued."""
        self.device.sync()
        self.spin(busy)
        start = self.record()
        for _ in range(count):
            call()
        stop = self.record()
        queued = not start.is_done
        stop.sync()
        return (stop - start) / 1e3 / count if queued else None

    def host_times(self, call: Call, wall: float) -> list[float]:
        """device_times() by the host's clock, which knows nothing of the device's."""
        return _by_host_clock(partial(self._batch, self.spin), call, wall)

    def _batch(self, hold: Callable[[float], None], count: int, call: Call, busy: float) -> tuple[float, float]:
        """(seconds until all calls are queued, seconds until all are done), queued after ``hold(busy)``."""
        self.device.sync()
        start = time.perf_counter()
        if busy:
            hold(busy)
        for _ in range(count):
            call()
        enqueued = time.perf_counter() - start
        self.device.sync()
        return enqueued, time.perf_counter() - start

    def free_bytes(self) -> int:
        return machine.device_memory()[0][1]

    def probe(self) -> Probe:
        """In some 30 ms. Nothing of it stays: what comes from the device's pool of memory would stay in the pool."""
        from cuda.bindings import driver

        def checked(answer: tuple[Any, ...]) -> Any:
            error, *values = answer
            if error:
                raise Unmeasurable(error.name)
            return values[0] if values else None

        half = min(COPY_BYTES, self.free_bytes() // 4 // 2**20 * 2**20)
        buffer = checked(driver.cuMemAlloc(2 * half))
        source, target = int(buffer), int(buffer) + half
        try:
            checked(driver.cuMemsetD8Async(buffer, 0, 2 * half, self.stream.handle))
            copy = self.fastest(lambda: checked(driver.cuMemcpyDtoDAsync(target, source, half, self.stream.handle)))
            return Probe(
                self.name,
                2 * half / copy / 1e9 if copy else None,
                self.device.properties.l2_cache_size,
                self.cache_bandwidth(source, target),
                self.arithmetic(target),
                self.fastest(self.starter("empty", 1, 1), 50),
            )
        finally:
            checked(driver.cuMemFree(buffer))

    @cached_property
    def work(self) -> Any:
        return self.compiled(self.WORK)

    def starter(self, name: str, blocks: int, threads: int, *arguments: Any) -> Callable[[], None]:
        """A function that starts a kernel of WORK."""
        from gpu_cookbook.run.cuda_core import LaunchConfig, launch

        kernel, config = self.work.get_kernel(name), LaunchConfig(grid=blocks, block=threads)
        return lambda: launch(self.stream, config, kernel, *arguments)

    def fastest(self, call: Call, count: int = 1) -> float | None:
        """Seconds of one of ``count`` calls that were all queued before the first of them ran, the fewest of PROBED
        times; None if the host is too busy to queue them."""
        busy, times = 1e-3, []
        for _ in range(2 * PROBED):
            seconds = self.behind(busy, call, count)
            if seconds is not None:
                times.append(seconds)
            else:
                busy *= 2
            if len(times) == PROBED:
                break
        return min(times, default=None)

    def cache_bandwidth(self, source: int, target: int) -> float | None:
        """GB/s of reading vectors from the L2 cache again and again, or of copying them if that is more."""
        n, stride = _part_of(self.device.properties.l2_cache_size)
        blocks, threads = self.everywhere()
        steps = 256
        numbers = (np.uint64(source), np.uint64(target), np.uint32(n), np.uint32(steps), np.uint32(stride))
        read, copy = (
            self.fastest(self.starter("touch", blocks, threads, *numbers, np.int32(store))) for store in (0, 1)
        )
        moved = 16 * blocks * threads * steps / 1e9
        return max(moved / read, 2 * moved / copy) if read and copy else None

    def arithmetic(self, sink: int) -> float | None:
        """Billions of multiplications and additions in float32 per second, without tensor cores."""
        blocks, threads = self.everywhere()
        rounds = 2048
        numbers = (np.float32(0.5), np.float32(1), np.int32(rounds), np.uint64(sink))
        took = self.fastest(self.starter("multiply_add", blocks, threads, *numbers))
        return 2 * 8 * rounds * blocks * threads / took / 1e9 if took else None


class CudaOfJax(Cuda):
    """The same GPU, for JAX, which computes in a stream of its own that it shows to nobody: no event can be recorded
    there, and no kernel put before a call. So the calls wait until the multiprocessors are free, and the host's clock
    times them."""

    # Once 32 computations are under way, JAX waits until one of them is done.
    MOST = 15

    def device_times(self, call: Call, wall: float) -> list[float]:
        return _by_host_clock(partial(self._batch, self.occupy), call, wall, self.MOST)

    def host_times(self, call: Call, wall: float) -> list[float]:
        raise Unmeasurable("the device times are the host's already")


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
    # As in Cuda. OpenCL C cannot pass by a cache, but the steps lead away from what is in a small one.
    WORK = """
    __kernel void touch(__global const float4 *source, __global float4 *target, const uint n, const uint steps,
                        const uint stride, const int store)
    {
        uint id = get_global_id(0);
        float4 sum = 0;
        for (uint step = 0; step < steps; step += 4) {
            uint i = (id + step * stride) & (n - 1), j = (i + stride) & (n - 1);
            uint k = (j + stride) & (n - 1), l = (k + stride) & (n - 1);
            float4 a = source[i], b = source[j], c = source[k], d = source[l];
            if (store) {
                target[i] = a;
                target[j] = b;
                target[k] = c;
                target[l] = d;
            } else
                sum += a + b + c + d;
        }
        if (sum.x + sum.y + sum.z + sum.w == 0.12345f)
            target[0] = sum;
    }

    __kernel void multiply_add(const float a, const float b, const int rounds, __global float *sink)
    {
        float4 x = (float)get_local_id(0), y = x + 1;
        for (int i = 0; i < rounds; i += 8) {
            #define ONCE x = mad(x, a, b); y = mad(y, a, b);
            ONCE ONCE ONCE ONCE ONCE ONCE ONCE ONCE
        }
        x += y;
        if (x.x + x.y + x.z + x.w == 0.12345f)
            *sink = x.x;
    }

    __kernel void empty() {}
    """

    def __init__(self, queue: Any) -> None:
        import pyopencl as cl

        self.queue = queue
        self.own = cl.CommandQueue(queue.context, queue.device)
        self.occupied_rounds = 0.0  # per second; measured when it is needed
        self.name = queue.device.name.strip()
        self.page_locks = not queue.device.type & cl.device_type.CPU
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

    def device_times(self, call: Call, wall: float) -> list[float]:
        """Seconds per call, by the host's clock: OpenCL's own needs a queue that was made for it."""
        return _by_host_clock(self._batch, call, wall)

    def _batch(self, count: int, call: Call, busy: float) -> tuple[float, float]:
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
        names = [gpu.name for gpu in machine.gpus()]
        if device.type & cl.device_type.GPU and self.name in names:
            return machine.device_memory()[names.index(self.name)][1]
        return device.global_mem_size

    def probe(self) -> Probe:
        """On a CPU that of Host: PoCL copies with a single core."""
        import pyopencl as cl

        if self.queue.device.type & cl.device_type.CPU:
            return replace(Host().probe(), device=self.name)
        return self.probe_kernels()

    def probe_kernels(self) -> Probe:
        """Each kernel's time is that of its own event. Nothing stays of it."""
        import pyopencl as cl

        device, context = self.queue.device, self.queue.context
        timed = cl.CommandQueue(context, device, properties=cl.command_queue_properties.PROFILING_ENABLE)
        work = cl.Program(context, self.WORK).build()
        size = min(COPY_BYTES, device.max_mem_alloc_size // 2)
        source, target = (cl.Buffer(context, cl.mem_flags.READ_WRITE, size) for _ in range(2))
        cl.enqueue_fill_buffer(timed, source, np.uint8(0), 0, size)

        def fastest(start: Callable[..., Any], *arguments: Any) -> float:
            times = []
            for _ in range(PROBED):
                event = start(timed, *arguments)
                event.wait()
                times.append((event.profile.end - event.profile.start) * 1e-9)
            return min(times)

        copy = fastest(cl.enqueue_copy, target, source)
        n, stride = _part_of(min(self.cache_bytes(), size))
        items, steps, rounds = 8 * 256 * device.max_compute_units, 256, 2048
        places = ((items,), (256,), source, target, np.uint32(n), np.uint32(steps), np.uint32(stride))
        read, both = (fastest(cl.Kernel(work, "touch"), *places, np.int32(store)) for store in (0, 1))
        moved = 16 * items * steps / 1e9
        numbers = ((items,), (256,), np.float32(0.5), np.float32(1), np.int32(rounds), target)
        adding = fastest(cl.Kernel(work, "multiply_add"), *numbers)
        source.release()
        target.release()
        return Probe(
            self.name,
            2 * size / copy / 1e9,
            self.cache_bytes(),
            max(moved / read, 2 * moved / both),
            2 * 8 * rounds * items / adding / 1e9,
            self.empty_kernel(cl.Kernel(work, "empty")),
        )

    def empty_kernel(self, kernel: Any) -> float | None:
        """Seconds of one, as in device_times, the fewest of some; None if that is lost in the noise."""
        count, busy, times = 50, 2e-3, []
        for _ in range(PROBED):
            short, long = (self._batch(n, lambda: kernel(self.queue, (1,), (1,)), busy) for n in (count, 2 * count))
            if max(short[0], long[0]) < 0.9 * busy:
                times.append((long[1] - short[1]) / count)
        least = min(times, default=0)
        return least if least > 0 else None

    def cache_bytes(self) -> int:
        """The last-level cache: of NVIDIA's GPUs, OpenCL names a smaller one, and CUDA does without a context."""
        names = [gpu.name for gpu in machine.gpus()]
        with contextlib.suppress(ImportError):
            if self.name in names:
                from gpu_cookbook.run.cuda_core import Device

                return Device(names.index(self.name)).properties.l2_cache_size
        return self.queue.device.global_mem_cache_size
