"""The memory of arrays on any device, read and rewritten by other means than a recipe's own functions.

What reads here waits for nothing that the recipe has queued: it sees what the memory holds at this moment.
"""

import copy
import ctypes
import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import is_dataclass
from functools import cache, partial
from types import ModuleType
from typing import Any, NoReturn, cast

import numpy as np

# Bytes of arrays from which on several threads make and copy their values. Smaller ones are left to one, in which the
# recipe will allocate: what malloc has given and taken back changes what it does later.
TOGETHER = 2**26
STAGE = 2**26  # bytes of page-locked memory through which a CUDA device is read and written
TEXT = ("str", "string", "object")  # dtypes of a table's columns of strings, in small letters
BFLOAT16 = np.dtype("V2")  # which NumPy lacks: what the array interface says of it


class Deferred(Exception):
    """A result that is not there yet; the message says what it is instead."""


def read(result: Any, columns: int = 1) -> np.ndarray | None:
    """A copy of what is in the memory of a result: of an array, a number, of several arrays or handles, or the last so
    many ``columns`` of a table, one after the other. None if other processes hold it. Deferred if work is left, or if
    it cannot be seen whether any is."""
    parts = [_value(leaf) for leaf in leaves(_last(result, columns))]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not parts:
        return None
    return known[0] if len(known) == 1 else np.concatenate([np.ravel(part) for part in known])


def held(array: Any) -> np.ndarray | None:
    """A flat copy of what the memory of an array, or of the parts of one, holds; None if that cannot be seen."""
    parts = _parts(array)
    return np.concatenate([kind.read(part).reshape(-1) for part, kind in parts]) if parts else None


def settle(arrays: Sequence[Any]) -> None:
    """Waits until all work that was begun on these arrays is done. held() waits for nothing: what a kernel has yet to
    write is not there."""
    for part, kind in itertools.chain.from_iterable(_parts(array) or () for array in arrays):
        kind.finish(part)


def write(array: Any, values: np.ndarray) -> bool:
    """Puts values into the memory of an array, or of the parts of one, of the same shape and dtype. False if that is
    not possible, because other processes hold it or it cannot be changed."""
    parts = _parts(array)
    if parts is None or not _writeable(parts):
        return False
    shapes = [np.shape(part) if is_on_host(part) else tuple(part.shape) for part, _ in parts]
    ends = list(itertools.accumulate(map(math.prod, shapes)))
    if len(parts) > 1 and ends[-1] != values.size:
        return False
    for (part, kind), shape, end in zip(parts, shapes, ends, strict=True):
        assert kind.write
        kind.write(part, values if len(parts) == 1 else values.reshape(-1)[end - math.prod(shape) : end].reshape(shape))
    return True


def arrays(arguments: Sequence[Any]) -> list[Any]:
    """The arrays of a recipe's arguments: of a table, its columns."""
    return [column for each in arguments for column in (_columns(each) if _is_table(each) else [each])]


def fill(arguments: Sequence[Any], values: Sequence[np.ndarray]) -> bool:
    """Puts these inputs into the memory of a recipe's arguments. False if that is not possible for all of them: then
    none is changed, since a call whose arguments belong to different inputs would have a result of neither."""
    found = arrays(arguments)
    if len(found) != len(values) or not all(_writeable(_parts(each)) for each in found):
        return False
    return all([write(x, each) for x, each in zip(found, values, strict=True)])


def replace_last(arguments: Sequence[Any], values: np.ndarray) -> bool:
    """Gives the last column of the one table among a recipe's arguments these values, by the table's own means. False
    if there is no such table."""
    if len(arguments) != 1 or not _is_table(arguments[0]) or not hasattr(arguments[0], "columns"):
        return False
    (table,) = arguments
    name = list(table.columns)[-1]
    if type(table).__module__.startswith("polars"):
        table.replace_column(len(table.columns) - 1, sys.modules["polars"].Series(name, values))
    else:
        table[name] = values
    return True


def looks(arguments: Sequence[Any]) -> list[Any]:
    """How the tables and the arrays of strings among a recipe's arguments look: their names, dtypes, index and
    contents, for unchanged()."""
    return [_look(each) for each in arguments]


def unchanged(arguments: Sequence[Any], before: Sequence[Any]) -> bool:
    """Whether all tables and arrays of strings still look as they did."""
    return all(_same(old, _look(each)) for each, old in zip(arguments, before, strict=True))


def _look(value: Any) -> Any:
    if type(value) is np.ndarray and value.dtype.kind == "S":
        return (value.copy(),)
    if not _is_table(value) or not hasattr(value, "columns"):
        return ()
    if type(value).__module__.startswith("polars"):
        return list(value.schema.items()), value.clone()
    attributes = copy.deepcopy(dict(getattr(value, "attrs", {})))
    names = list(value.columns), list(value.columns.names), list(value.index.names)
    return attributes, *names, type(value.index).__name__, [str(dtype) for dtype in value.dtypes], value.copy()


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    if len(one) != len(other) or one[:-1] != other[:-1]:
        return False
    equal = getattr(one[-1], "equals", partial(np.array_equal, one[-1])) if one else None  # of a table, index and all
    return equal is None or bool(equal(other[-1]))


def put(target: np.ndarray, values: np.ndarray | float) -> None:
    """np.copyto, by several threads if there is much to copy."""
    if target.nbytes < TOGETHER or not target.ndim:
        np.copyto(target, values)
        return
    values = np.broadcast_to(values, target.shape)
    rows = -(-len(target) // 64)  # more parts than threads, so that none waits long for the last
    with ThreadPoolExecutor() as pool:
        parts = (slice(start, start + rows) for start in range(0, len(target), rows))
        list(pool.map(lambda part: np.copyto(target[part], values[part]), parts))


def _copied(values: np.ndarray) -> np.ndarray:
    copy = np.empty_like(values)
    put(copy, values)
    return copy


def as_held(array: Any, values: np.ndarray) -> np.ndarray:
    """float32 values as an array holds them: those of bfloat16 are rounded."""
    return _widened(_rounded(values)) if is_bfloat16(array) else values


def is_bfloat16(array: Any) -> bool:
    return str(getattr(array, "dtype", "")).removeprefix("torch.") == "bfloat16"


def change_one(array: Any, value: float) -> Callable[[], None] | None:
    """Changes one element, and returns what changes it back; None if that is not possible, or if the array is not in
    the host's memory."""
    parts = _parts(array)
    view = parts[0][1].view if parts else None
    if view is None or not view.size:
        return None
    place = tuple(n // 2 for n in view.shape)
    before = view[place]
    view[place] = value

    def back() -> None:
        view[place] = before

    return back


def _parts(array: Any) -> list[tuple[Any, "_Kind"]] | None:
    try:
        found = [(leaf, _kind(leaf)) for leaf in leaves(array)]
    except Deferred:
        return None
    return None if any(kind is None for _, kind in found) else cast("list[tuple[Any, _Kind]]", found)


def is_in_order(value: Any) -> bool:
    """Whether it is C-contiguous, if it is an array of NumPy or PyTorch."""
    if type(value) is np.ndarray:
        return value.flags.c_contiguous
    torch = sys.modules.get("torch")
    return not (torch and type(value) is torch.Tensor) or value.is_contiguous()


def is_of_recipe(value: Any) -> bool:
    """Whether its class is one of a recipe's own."""
    return type(value).__module__.startswith("gpu_cookbook")


def is_on_host(value: Any) -> bool:
    """Whether it is an array of NumPy or a number: nothing that computes when it is asked for its values."""
    return type(value) is np.ndarray or (isinstance(value, (int, float, np.generic)) and not isinstance(value, bool))


def is_all_on_host(result: Any) -> bool:
    """Whether a result consists of numbers, NumPy's arrays and tables of them only."""
    try:
        parts = list(leaves(result))
    except Deferred:
        return False
    return bool(parts) and all(map(is_on_host, parts))


def is_changeable(value: Any) -> bool:
    """Whether it is an array whose values its framework lets a caller change."""
    return _writeable(_parts(value)) and not hasattr(value, "__dask_graph__")


def _writeable(parts: "list[tuple[Any, _Kind]] | None") -> bool:
    return bool(parts) and all(kind.write for _, kind in parts or ())


def identity(result: Any) -> set[Any]:
    """What tells the arrays and handles of a result from those of another. A column in several parts is copied to be
    looked at: its copies, whose addresses differ, tell nothing."""
    kept = [list(leaves(_last(result, 1))) for _ in range(2)]
    return _names(kept[0]) & _names(kept[1])


def _names(kept: Sequence[Any]) -> set[Any]:
    found: set[Any] = set()
    for leaf in kept:
        if hasattr(leaf, "__dask_graph__"):
            found |= {id(_data(node)) for node in dict(leaf.__dask_graph__()).values()}
        elif is_jax(leaf):
            found |= {leaf.unsafe_buffer_pointer()} - {0}  # of an empty array
        elif is_cuda(leaf):
            found |= {_interface(leaf)["data"][0]} - {0}
        elif type(leaf) is np.ndarray:
            found |= {leaf.ctypes.data} if leaf.size else set()
        elif type(leaf).__module__.startswith("distributed"):
            found.add(getattr(leaf, "key", leaf))  # all futures of a key have one result
        elif not is_on_host(leaf):
            found.add(leaf)
    return found


def kind_of(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def leaves(result: Any) -> Iterator[Any]:
    """The arrays, numbers and handles that a result consists of; Deferred if it is anything else."""
    if isinstance(result, (list, tuple)):
        for each in result:
            yield from leaves(each)
    elif _kind(result) or _handle(result):
        yield result
    elif _is_table(result):
        yield from leaves(_columns(result))
    elif is_dataclass(result) or is_of_recipe(result):
        if hasattr(result, "__array__"):
            _refuse(result)
        names = vars(result) if hasattr(result, "__dict__") else type(result).__slots__
        for each in (getattr(result, name) for name in names):
            shape = isinstance(each, tuple) and all(isinstance(n, (int, np.integer)) for n in each)
            if not shape and not isinstance(each, (np.dtype, str, type(None))):
                yield from leaves(each)
    else:
        _refuse(result)


def _refuse(result: Any) -> NoReturn:
    raise Deferred(
        f"the result is a {kind_of(result)}, which is not an array in memory: work may be left to download()"
    )


def _value(leaf: Any) -> np.ndarray | None:
    kind = _kind(leaf)
    if kind and not (is_jax(leaf) and not leaf.is_ready()):
        return kind.read(leaf)
    ready, value = _handle(leaf) or (False, None)
    if not ready:
        raise Deferred(f"after wait(), the {type(leaf).__qualname__} that is the result is not done")
    return value


# ---- Tables.


def _is_table(value: Any) -> bool:
    """Whether it is a DataFrame or a Series of these libraries, in the memory of this process. Dask's are handles."""
    named = type(value).__name__ in ("DataFrame", "Series")
    return named and type(value).__module__.partition(".")[0] in ("pandas", "polars", "cudf")


def _columns(table: Any) -> list[Any]:
    """The arrays in which a table has its columns of numbers: on a GPU what has the CUDA array interface; on the host
    read-only ones of NumPy, since copies of a table share their columns until one of them is written to."""
    found = [table[name] for name in table.columns] if hasattr(table, "columns") else [table]
    found = [each for each in found if str(each.dtype).lower() not in TEXT]
    columns = [each if is_cuda(each) else np.asarray(each).view() for each in found]
    for each in columns:
        if type(each) is np.ndarray:
            each.flags.writeable = False
    return columns


def _last(result: Any, columns: int) -> Any:
    """Of a table, the columns that are compared; the others may be those of the table from which it was made."""
    return _columns(result)[-columns:] if _is_table(result) else result


# ---- Arrays.


class _Kind:
    """How the arrays of one kind are read and written, and what waits for the work on them."""

    def __init__(
        self,
        read: Callable[[Any], np.ndarray],
        write: Callable[[Any, np.ndarray], None] | None,
        view: np.ndarray | None = None,
        finish: Callable[[Any], None] = lambda array: None,
    ) -> None:
        """``view``: an array of NumPy in the same memory, if the host can write there."""
        self.read, self.write, self.view, self.finish = read, write, view, finish


def _kind(value: Any) -> _Kind | None:
    # Exact types: a class that is derived from one of them may compute when it is asked for its values.
    if type(value) is np.ndarray and value.dtype.kind == "S":
        return None  # as columns of strings: upload() has made them of numbers
    if is_on_host(value):
        writeable = type(value) is np.ndarray and value.flags.writeable
        read = _copied if type(value) is np.ndarray else np.array
        return _Kind(read, put, value) if writeable else _Kind(read, None)
    torch = sys.modules.get("torch")
    if torch and type(value) is torch.Tensor and value.device.type == "cpu" and is_bfloat16(value):
        bits = value.detach().view(torch.int16).numpy().view(np.uint16)
        return _Kind(lambda x: _widened(bits), lambda x, values: np.copyto(bits, _rounded(values)))
    if torch and type(value) is torch.Tensor and value.device.type == "cpu":
        host = value.detach().numpy()
        return _Kind(lambda x: _copied(host), lambda x, values: put(host, values), host)
    warp = sys.modules.get("warp")
    if warp and type(value) is warp.array and value.device.is_cpu:
        host = value.numpy()
        return _Kind(lambda x: _copied(host), lambda x, values: put(host, values), host)
    if is_jax(value):
        read_jax = _read_cuda if is_cuda(value) else lambda x: np.array(np.from_dlpack(x))
        return _Kind(read_jax, None, finish=lambda x: x.block_until_ready())  # it never changes
    shared = _shared(value)
    if shared is not None:
        return _Kind(lambda x: _copied(shared), lambda x, values: put(shared, values), shared)
    chunks = _chunks(value)
    if chunks is not None:
        return _Kind(_read_chunks, _write_chunks, chunks[0][1] if chunks else None)
    if is_opencl(value):
        return _Kind(_read_opencl, _write_opencl, finish=lambda x: x.queue.finish())
    return _Kind(_read_cuda, _write_cuda, finish=lambda x: _stage().finish()) if is_cuda(value) else None


def is_opencl(value: Any) -> bool:
    array = getattr(sys.modules.get("pyopencl"), "array", None)
    return array is not None and isinstance(value, array.Array)


def is_jax(value: Any) -> bool:
    """Whether it is an array of JAX, on any device, and not what stands for one while a function is traced."""
    return type(value).__name__ == "ArrayImpl" and type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


def is_cuda(value: Any) -> bool:
    """Whether it is a framework's array on an NVIDIA GPU."""
    # On the CPU, the arrays of PyTorch, JAX and Warp have the attribute, too, and raise an AttributeError.
    has_interface = not isinstance(value, type) and hasattr(value, "__cuda_array_interface__")
    return not is_of_recipe(value) and (has_interface or _is_view(value))


def _is_view(value: Any) -> bool:
    """Whether it is cuda.core's view of memory that a GPU can reach, which lacks that interface."""
    view = getattr(sys.modules.get("cuda.core.utils"), "StridedMemoryView", None)
    return view is not None and type(value) is view and value.is_device_accessible


def _interface(array: Any) -> dict[str, Any]:
    """What the CUDA array interface says of an array: its shape, address, … and its strides in bytes."""
    if not _is_view(array):
        return array.__cuda_array_interface__
    strides = None if array.strides is None else tuple(array.dtype.itemsize * count for count in array.strides)
    return {"shape": array.shape, "typestr": array.dtype.str, "data": (array.ptr, array.readonly), "strides": strides}


def _shared(value: Any) -> np.ndarray | None:
    """An array of a recipe's own class in memory that processes share, row by row; None if it is none."""
    if not is_of_recipe(value) or not hasattr(value, "__dict__"):
        return None
    blocks = [each for each in vars(value).values() if _is_shared_memory(each)]
    if len(blocks) != 1 or not (hasattr(value, "shape") and hasattr(value, "dtype")):
        return None
    return np.ndarray(value.shape, value.dtype, blocks[0].buf)


def _is_shared_memory(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "multiprocessing" and hasattr(value, "buf")


def _chunks(value: Any) -> list[tuple[tuple[slice, ...], np.ndarray]] | None:
    """(place, values) of the chunks of a Dask array, if all of them are in the memory of this process; else None."""
    core = sys.modules.get("dask.array.core")
    if core is None or not isinstance(value, core.Array):
        return None
    graph = dict(value.__dask_graph__())
    keys = ((value.name, *index) for index in np.ndindex(value.numblocks))
    found = [_data(graph[key]) if key in graph else None for key in keys]
    arrays = [each for each in found if type(each) is np.ndarray and each.flags.writeable]
    return list(zip(_slices(value.chunks), arrays, strict=True)) if len(arrays) == len(found) else None


def _slices(chunks: Sequence[Sequence[int]]) -> list[tuple[slice, ...]]:
    ends = [list(itertools.accumulate(axis)) for axis in chunks]
    axes = [[slice(end - n, end) for n, end in zip(*each, strict=True)] for each in zip(chunks, ends, strict=True)]
    return list(itertools.product(*axes))


def _read_chunks(array: Any) -> np.ndarray:
    values = np.empty(array.shape, array.dtype)
    for where, chunk in _chunks(array) or ():
        values[where] = chunk
    return values


def _write_chunks(array: Any, values: np.ndarray) -> None:
    for where, chunk in _chunks(array) or ():
        chunk[...] = values[where]


# ---- Numbers of bfloat16: the upper half of a float32's bits.


def _widened(bits: np.ndarray) -> np.ndarray:
    """float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _rounded(values: np.ndarray) -> np.ndarray:
    """Their bits as uint16. Of two numbers that are equally near, the one whose last bit is 0; NaN stays NaN."""
    wide = np.array(values, np.float32, order="C").view(np.uint32)
    near = wide + 0x7FFF + (wide >> 16 & 1)
    return (np.where(np.isnan(values), wide | 0x400000, near) >> 16).astype(np.uint16)


class _Span:
    """The bytes from an array's first element to its last, and the array as a view of a copy of them."""

    def __init__(self, shape: Sequence[int], strides: Sequence[int] | None, dtype: np.dtype) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        self.strides = tuple(strides) if strides is not None else np.empty(shape, np.bool_).strides
        if strides is None:
            self.strides = tuple(stride * dtype.itemsize for stride in self.strides)
        reach = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        empty = 0 in self.shape
        self.first = 0 if empty else sum(step for step in reach if step < 0)
        self.bytes = 0 if empty else sum(map(abs, reach)) + dtype.itemsize

    def view(self, copy: np.ndarray) -> np.ndarray:
        return np.ndarray(self.shape, self.dtype, copy, -self.first, self.strides)


def _read_opencl(array: Any) -> np.ndarray:
    import pyopencl as cl

    span = _Span(array.shape, array.strides, array.dtype)
    copy = np.empty(span.bytes, np.uint8)
    if span.bytes:
        cl.enqueue_copy(_own_queue(array), copy, array.base_data, src_offset=array.offset + span.first)
    return np.asarray(span.view(copy), order="C")  # another copy only of what is not contiguous


def _write_opencl(array: Any, values: np.ndarray) -> None:
    import pyopencl as cl

    span = _Span(array.shape, array.strides, array.dtype)
    if span.bytes:
        copy = np.empty(span.bytes, np.uint8)
        cl.enqueue_copy(_own_queue(array), copy, array.base_data, src_offset=array.offset + span.first)
        span.view(copy)[...] = values
        cl.enqueue_copy(_own_queue(array), array.base_data, copy, dst_offset=array.offset + span.first)


_queues: dict[Any, Any] = {}


def _own_queue(array: Any) -> Any:
    """A queue of ours, in which a copy does not wait for the recipe's."""
    import pyopencl as cl

    queue = array.queue
    if queue is None:
        raise Deferred("the result has no queue, so that its memory cannot be read")
    if queue.context not in _queues:
        _queues[queue.context] = cl.CommandQueue(queue.context, queue.device)
    return _queues[queue.context]


def _read_cuda(array: Any) -> np.ndarray:
    interface = _interface(array)
    dtype = np.dtype(interface["typestr"])
    wide = dtype != BFLOAT16
    span = _Span(interface["shape"], interface.get("strides"), dtype if wide else np.dtype(np.uint16))
    copy = np.empty(span.bytes, np.uint8)
    start = (interface["data"][0] or 0) + span.first
    for offset in range(0, span.bytes, STAGE):
        part = copy[offset : offset + STAGE]
        stage = _stage()
        stage.copy("cuMemcpyDtoHAsync", stage.pointer, start + offset, part.nbytes)
        put(part, stage.array[: part.nbytes])
    values = np.asarray(span.view(copy), order="C")  # another copy only of what is not contiguous
    return values if wide else _widened(values)


def _write_cuda(array: Any, values: np.ndarray) -> None:
    interface = _interface(array)
    dtype = np.dtype(interface["typestr"])
    if dtype == BFLOAT16:
        dtype, values = np.dtype(np.uint16), _rounded(values)
    span = _Span(interface["shape"], interface.get("strides"), dtype)
    contiguous = span.bytes == values.nbytes and span.view(np.empty(span.bytes, np.uint8)).flags.c_contiguous
    if contiguous:
        copy = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    else:
        copy = np.zeros(span.bytes, np.uint8)
        span.view(copy)[...] = values
    start = (interface["data"][0] or 0) + span.first
    for offset in range(0, span.bytes, STAGE):
        part = copy[offset : offset + STAGE]
        stage = _stage()
        put(stage.array[: part.nbytes], part)
        stage.copy("cuMemcpyHtoDAsync", start + offset, stage.pointer, part.nbytes)


class _Stage:
    """Page-locked memory and a stream of ours, which waits for no other: a copy from pageable memory would wait."""

    def __init__(self) -> None:
        from cuda.bindings import driver

        self.driver = driver
        self.pointer = int(self.checked(driver.cuMemHostAlloc(STAGE, driver.CU_MEMHOSTALLOC_PORTABLE)))
        self.array = np.ctypeslib.as_array(ctypes.cast(self.pointer, ctypes.POINTER(ctypes.c_uint8)), (STAGE,))
        self.stream = self.checked(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))

    def copy(self, name: str, target: int, source: int, count: int) -> None:
        self.checked(getattr(self.driver, name)(target, source, count, self.stream))
        self.checked(self.driver.cuStreamSynchronize(self.stream))

    def finish(self) -> None:
        """Waits for all that was begun on the current GPU, in any stream."""
        self.checked(self.driver.cuCtxSynchronize())

    def checked(self, answer: tuple[Any, ...]) -> Any:
        error, *values = answer
        if error:
            raise RuntimeError(f"the memory of the GPU could not be read or written: {error.name}")
        return values[0] if values else None


@cache
def _stage() -> _Stage:
    return _Stage()


# ---- Handles of what other processes or threads hold.


def _handle(value: Any) -> tuple[bool, np.ndarray | None] | None:
    """(whether it is done, its value where that is at hand); None if it is no handle."""
    module = type(value).__module__.partition(".")[0]
    if module == "dask" and hasattr(value, "__dask_graph__"):
        return all(map(_is_data, dict(value.__dask_graph__()).values())), None
    if module == "distributed":
        return value.done(), None
    if module == "ray":
        import ray

        ready = bool(ray.wait([value], timeout=0)[0])
        return ready, np.asarray(ray.get(value)) if ready else None
    if module == "multiprocessing" and hasattr(value, "ready"):
        return value.ready(), np.asarray(value.get()) if value.ready() else None
    if _is_shared_memory(value):
        return True, None
    if module == "concurrent":
        return value.done(), np.asarray(value.result()) if value.done() else None
    return None


def _data(node: Any) -> Any:
    """What a node of Dask's graph holds."""
    return getattr(node, "value", node)


def _is_data(node: Any) -> bool:
    """Whether a node of Dask's graph holds its value, and is not a task."""
    specification: ModuleType | None = sys.modules.get("dask._task_spec")
    if specification and isinstance(node, specification.GraphNode):
        if isinstance(node, specification.Alias):
            return True
        return isinstance(node, specification.DataNode) and _is_data(node.value)
    if type(node).__module__.startswith("distributed"):
        return node.done()
    return not (isinstance(node, tuple) and node and callable(node[0]))
