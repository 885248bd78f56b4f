"""Hands arrays from library to library in this process, with the scripts of docs/together, and looks at what arrives.

All libraries work in streams of their own, which no other stream waits for by itself, and the producer's is kept busy
when its array is handed out: so it can be told who waits for it. cuDF's is the default stream, and JAX chooses its own.
"""

import contextlib
import inspect
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run.device import Cuda
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.together import DLPACK, GPU, HOST, INTERFACE, NOBODY, WAYS, Handover
from gpu_cookbook.words import reason

SIZE = 4096  # elements of float32
LEGACY = 1  # the handle of the default stream
BUSY = 0.08  # seconds that the producer's stream is kept busy: a thousand times as long as a handover
ATTRIBUTES = {DLPACK: "__dlpack__", INTERFACE: "__cuda_array_interface__"}
Done = Callable[[], bool]  # whether what a stream had to do is done


class OnlyInterface:
    """An array that shows its CUDA array interface alone, so that nobody takes it by another way."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.array.__cuda_array_interface__


class InterfaceAndLength(OnlyInterface):
    """The same of an array that has a length, which Warp asks for first."""

    def __len__(self) -> int:
        return len(self.array)


def only_interface(array: Any) -> OnlyInterface:
    return InterfaceAndLength(array) if hasattr(array, "__len__") else OnlyInterface(array)


@dataclass
class Library:
    """A script of docs/together, and the stream in which it works."""

    name: str
    module: ModuleType

    def __post_init__(self) -> None:
        self.writes = "out" in inspect.signature(self.module.add_one).parameters

    @cached_property
    def stream(self) -> tuple[Callable[[], Any], int | None]:
        """A context in which it works in its stream, and the handle of that; None if it has none, or only JAX knows."""
        if machine.gpus():
            match self.name:
                case "cupy":
                    stream = self.module.cp.cuda.Stream(non_blocking=True)
                    return lambda: stream, stream.ptr
                case "torch" | "triton":  # which share PyTorch's current stream
                    torch = self.module.torch
                    stream = _of_torch(torch)
                    return lambda: torch.cuda.stream(stream), stream.cuda_stream
                case "warp":
                    wp = self.module.wp
                    stream = wp.Stream("cuda:0")
                    return lambda: wp.ScopedStream(stream, sync_enter=False), stream.cuda_stream
                case "numba":
                    return contextlib.nullcontext, int(self.module.stream)
                case "pycuda" | "cuda_core":
                    return contextlib.nullcontext, int(self.module.stream.handle)
                case "cudf":
                    return contextlib.nullcontext, LEGACY
        return contextlib.nullcontext, None

    def add_in_place(self, x: Any) -> Any:
        """One more than x: in x itself, unless its library never writes into an array."""
        return self.module.add_one(x, out=x) if self.writes else self.module.add_one(x)

    def late(self, x: Any) -> tuple[Any, Done | None]:
        """One more than x, but not before BUSY; None if nothing can be late here."""
        _, handle = self.stream
        if handle is not None:
            from cuda.core import LEGACY_DEFAULT_STREAM, Stream

            stream = LEGACY_DEFAULT_STREAM if handle == LEGACY else Stream.from_handle(handle)
            spin(stream)
            x = self.add_in_place(x)
            event = stream.record()
            return x, lambda: event.is_done
        if self.name == "jax" and machine.gpus():
            x = slowly(x)
            return x, x.is_ready
        return x, None


_made: dict[str, Any] = {}  # once: PyTorch's stream, the kernel, and JAX's products


def _of_torch(torch: ModuleType) -> Any:
    return _made.setdefault("torch", torch.cuda.Stream())


def spin(stream: Any) -> None:
    from gpu_cookbook.run.cuda_core import Device, LaunchConfig, Program, launch

    if "spin" not in _made:
        Device().set_current()
        _made["spin"] = Program(Cuda.SPIN, "c++").compile("cubin").get_kernel("spin")
    launch(stream, LaunchConfig(grid=1, block=1), _made["spin"], np.int64(1e9 * BUSY))


def slowly(x: Any) -> Any:
    """JAX's x + 1 behind as many matrix products as take BUSY."""
    import jax
    import jax.numpy as jnp

    if "jax" not in _made:

        @jax.jit
        def products(m: Any) -> Any:  # of ones, which they stay
            for _ in range(8):
                m = m @ m / m.shape[0]
            return m

        ones = jax.block_until_ready(products(jnp.ones((8192, 8192))))
        start = time.perf_counter()
        jax.block_until_ready(products(ones))
        took = time.perf_counter() - start
        _made["jax"] = products, ones, int(BUSY / took) + 1, jax.jit(lambda x, m: x + m[0, 0])
        jax.block_until_ready(_made["jax"][-1](x, ones))  # which compiles it
    products, m, count, add = _made["jax"]
    for _ in range(count):
        m = products(m)
    return add(x, m)


def ways(producer: Library, consumer: Library) -> Iterator[str]:
    """Those that the one has out and the other one has in."""
    handed = None
    # A framework may raise anything: then it does so again, on the way by the host.
    with contextlib.suppress(Exception):
        handed = producer.module.hand_out(producer.module.from_host(np.zeros(SIZE, np.float32)))
    for way in WAYS:
        if hasattr(consumer.module, f"from_{way}") and (way == HOST or hasattr(handed, ATTRIBUTES[way])):
            yield way


def take(producer: Library, consumer: Library, way: str, x: Any) -> Any:
    if way == HOST:
        return consumer.module.from_host(producer.module.to_host(x))
    handed = producer.module.hand_out(x)
    return getattr(consumer.module, f"from_{way}")(only_interface(handed) if way == INTERFACE else handed)


def address(library: Library, x: Any) -> int | None:
    find = getattr(library.module, "address", None)
    return find(x) if find else None


def hand_over(producer: Library, consumer: Library, way: str) -> Handover:
    """One handover when the producer has been waited for, and one when it is busy."""
    p, c = producer.module, consumer.module
    values = np.arange(SIZE, dtype=np.float32)
    x = p.from_host(values)
    p.wait(x)
    y = take(producer, consumer, way, x)
    shared = way != HOST and address(producer, x) == address(consumer, y)
    if shared and producer.writes:
        producer.add_in_place(x)
        p.wait(x)
    got = c.to_host(y)
    more = c.add_one(y)  # which compiles it, and makes room for the result below
    seen = np.array_equal(got, values + 1) if shared and producer.writes else None
    right = np.array_equal(got, values + (shared and producer.writes)) and np.array_equal(c.to_host(more), got + 1)
    if shared and producer.writes and consumer.writes and not read_only(y):
        consumer.add_in_place(y)
        c.wait(y)
        seen = seen and np.array_equal(p.to_host(x), values + 2)
    waits = who_waits(producer, consumer, way, more)
    return Handover(producer.name, consumer.name, way, "", shared, bool(right), seen, waits)


def read_only(y: Any) -> bool:
    return getattr(y, "readonly", False) is True or getattr(getattr(y, "flags", None), "writeable", True) is False


def who_waits(producer: Library, consumer: Library, way: str, more: Any) -> str | None:
    """Who waits for what the producer's stream is still doing, if anybody does. ``more``: a result of the consumer's,
    which may be overwritten: new memory might make everything wait."""
    p, c = producer.module, consumer.module
    values = np.arange(SIZE, dtype=np.float32)
    x = p.from_host(values)
    p.wait(x)
    late, done = producer.late(x)
    if done is None or done():  # nothing was late: the host has waited for the producer's own work
        return None
    y = take(producer, consumer, way, late)
    result = c.add_one(y, out=more) if consumer.writes else c.add_one(y)
    busy = not done()
    got = c.to_host(result)
    p.wait(late)
    if np.array_equal(got, values + 2):
        return GPU if busy else HOST
    return NOBODY if np.array_equal(got, values + 1) else None


def handed_over(producer: Library, consumer: Library, way: str) -> Handover:
    try:
        with producer.stream[0](), consumer.stream[0]():
            return hand_over(producer, consumer, way)
    except Exception as error:  # a framework may raise anything
        return Handover(producer.name, consumer.name, way, reason(error))


def require_health() -> None:
    """An error of CUDA's may have made all that follows in this process fail, too: then it raises that."""
    if machine.gpus():
        from gpu_cookbook.run.cuda_core import Device

        device = Device()
        device.set_current()
        device.sync()


def pooled(path: Path) -> dict[str, str]:
    """{library that is installed: why it does not allocate from the pool of this script}; '' if it does."""
    script = Loader(catalogue.read(path)).execute()
    pool = script.make_pool()
    found = {}
    for name, allocate in script.LIBRARIES.items():
        if machine.installed(name):
            try:
                found[name] = "" if script.took_from(pool, allocate) else "its memory is not from the pool"
            except Exception as error:  # a framework may raise anything
                found[name] = reason(error)
    return found
