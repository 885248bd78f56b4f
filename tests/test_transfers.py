"""What is demanded of the way from host array to host result: one recipe that is right, and a line of it changed for
each class of faults."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gpu_cookbook import catalogue
from gpu_cookbook.recipes import multiply
from gpu_cookbook.run import runner, transfers
from gpu_cookbook.run.device import Host
from gpu_cookbook.run.loader import Loader

RIGHT = Path(__file__).parent / "right" / "multiply" / "with_pieces.py"
LAST = multiply.EDGE_SIZES[-1]
FEW = f"at {transfers.few_pieces(multiply.MANY_PIECES):,}, "
# {what is wrong: (a line of the recipe, what stands there instead, what is said of it)}
FAULTS = {
    "the ninth piece of 16 MiB": (
        "        pieces = [",
        "        if start >= 8 * 2**22:\n            continue\n        pieces = [",
        f"at {multiply.MANY_PIECES:,}, with transfer: ",
    ),
    "one element behind out": (
        "    return out\n",
        "    if out.base is not None:\n"
        "        np.lib.stride_tricks.as_strided(out.reshape(-1), (out.size + 1,))[-1] = 0\n"
        "    return out\n",
        "with transfer, into an array, parts of larger arrays: the elements around it were overwritten",
    ),
    "one element before out": (
        "    return out\n",
        "    if isinstance(out.base, np.ndarray):\n        out.base.reshape(-1)[1_002:1_003] = 0\n    return out\n",
        "with transfer, into an array, parts of larger arrays: the elements around it were overwritten",
    ),
    "out is cleared first": (
        "    arrays, direct =",
        "    out.fill(0)\n    arrays, direct =",
        "with transfer, into one of the arrays it reads, parts of larger arrays: 255 of 255 elements are wrong",
    ),
    "one page-locked input": (
        "    arrays, direct =",
        "    a = a if is_pinned(a) == is_pinned(b) else b\n    arrays, direct =",
        "with transfer, from ordinary and page-locked arrays: 255 of 255 elements are wrong",
    ),
    "only out is page-locked": (
        "    arrays, direct =",
        "    if is_pinned(out) and not is_pinned(a):\n        return out\n    arrays, direct =",
        "with transfer, into a page-locked array: 255 of 255 elements are wrong",
    ),
    "only out is ordinary": (
        "    arrays, direct =",
        "    if is_pinned(a) and is_pinned(b) and not is_pinned(out):\n        return out\n    arrays, direct =",
        "with transfer, from page-locked arrays: ",
    ),
    "another out": ("    return out\n", "    return out.copy()\n", "into an array: the result is not in it"),
    "works in the caller's arrays": (
        "        np.multiply(a, b, out=c)",
        "        np.multiply(a, b, out=a)\n        c[...] = a",
        "with transfer, from page-locked and ordinary arrays: the caller's own array was changed",
    ),
    "knows arrays by their ends": (
        "    with lock,",
        "    ends = (a.ctypes.data, *a.reshape(-1)[[0, -1]]) if a.size else None\n"
        "    if ends in seen:\n        return seen[ends].copy()\n    seen[ends] = out\n    with lock,",
        "the same arrays with another element: 1 of 255 elements are wrong",
    ),
    "Fortran order": (
        'np.asarray(x, np.float32, order="C") for x in (a, b))\n    out',
        "np.asarray(x, np.float32).ravel(order='K').reshape(x.shape) for x in (a, b))\n    out",
        f"{FEW}with transfer, Fortran order and read-only: ",
    ),
    "the order of the bytes": (
        'np.asarray(x, np.float32, order="C") for x in (a, b))\n    out',
        'np.array(x, order="C", copy=None).view(np.float32 if x.itemsize == 4 else x.dtype) for x in (a, b))\n    out',
        "the other byte order: ",
    ),
    "an out of the other byte order": (
        "out.dtype == np.float32 and",
        "out.dtype.newbyteorder('=') == np.float32 and",
        "round_trip(out=) of >f4: no ValueError",
    ),
    "an out of so many elements": (
        "a.shape == b.shape == out.shape and",
        "a.shape == b.shape and a.size == out.size and",
        "round_trip(out=) of (100003, 1): no ValueError",
    ),
    "any out in pieces": (
        "a.shape == b.shape == out.shape and",
        "a.shape == b.shape == (out := out[: a.size] if a.size > PIECE else out).shape and",
        f"{FEW}round_trip(out=) of ({transfers.few_pieces(multiply.MANY_PIECES) + 1},): no ValueError",
    ),
    "a read-only out is written to": (
        "    if not (a.shape == b.shape == out",
        "    if not out.flags.writeable:\n        out.flags.writeable = True\n    if not (a.shape == b.shape == out",
        "round_trip(out=) of read-only (100003,): no ValueError",
    ),
    "a read-only out is not named": (
        "into a writeable C-contiguous",
        "into a C-contiguous",
        "round_trip(out=) of read-only (100003,): the ValueError does not name it: ",
    ),
    "a wrong out is written to": (
        "    if not (a.shape == b.shape == out",
        "    if out.shape == (5, 7):\n        out[0] = 3\n    if not (a.shape == b.shape == out",
        "round_trip(out=) of (5, 7): it was refused, and written to",
    ),
    "an out that is not contiguous": (
        "out.dtype == np.float32 and out.flags.carray):",
        "out.dtype == np.float32 and out.flags.writeable):",
        "round_trip(out=) of an array in Fortran order: wrong, and no ValueError",
    ),
    "two threads at once": (
        "        np.multiply(a, b, out=c)\n",
        "        sleep(1e-3)\n        np.multiply(a, b, out=c)\n",
        f"{FEW}with transfer, from two threads at once: ",
    ),
    "pinned() gives another class": (
        "    return np.ndarray(shape, np.float32,",
        "    return np.recarray(shape, np.float32,",
        "pinned(): recarray is not a NumPy array",
    ),
    "page-locked memory goes too early": (
        "    return np.ndarray(shape, np.float32, PageLocked(4 * int(np.prod(shape)) or 1))",
        "    n = int(np.prod(shape))\n"
        "    free = freed.setdefault(n, [])\n"
        "    memory = free.pop() if free else np.ndarray(n, np.float32, PageLocked(4 * n or 1))\n"
        "    array = memory.reshape(shape)\n"
        "    finalize(array, free.append, memory)\n"
        "    return array",
        "pinned(): its memory is used again while a part of it is in use",
    ),
}
# The same of what grows from call to call. The leaks in pieces do not show at smaller sizes.
LEAKS = {
    "buffers for each size": (
        "    staged = lane(number)",
        "    staged = lane(number, arrays[0].size)",
        "more bytes of host memory after each call",
    ),
    "each page-locked array": (
        "    return np.ndarray(shape, np.float32, PageLocked(4 * int(np.prod(shape)) or 1))",
        "    kept.append(mmap(-1, 4 * int(np.prod(shape)) or 1))\n"
        "    return np.ndarray(shape, np.float32, PageLocked(4 * int(np.prod(shape)) or 1))",
        "more bytes of page-locked memory after each call",
    ),
    "page-locked memory in pieces": (
        "    staged = lane(number)",
        "    staged = lane(number)\n    if arrays[0].size > PIECE:\n        kept.append(mmap(-1, 4 * PIECE))",
        "more bytes of page-locked memory after each call",
    ),
    "each out in pieces": (
        "    return out\n",
        "    if out.size > PIECE and out.base is not None:\n        kept.append(out[:PIECE].copy())\n    return out\n",
        "more bytes of host memory after each call",
    ),
    "threads in pieces": (
        "    staged = lane(number)",
        "    staged = lane(number)\n"
        "    if arrays[0].size > PIECE and all(direct):\n"
        "        kept.append(ThreadPoolExecutor(1))\n"
        "        kept[-1].submit(len, ())",
        "leaks: 2 more threads after each call",
    ),
    "files in pieces": (
        "    staged = lane(number)",
        "    staged = lane(number)\n    if arrays[0].size > PIECE:\n        kept.append(Path(__file__).open())",
        "more open files after each call",
    ),
}


def changed(what, folder):
    """The right recipe with this fault, in a file."""
    old, new, _ = (FAULTS | LEAKS)[what]
    text = RIGHT.read_text()
    assert text.count(old) == 1, f"{old!r} is in the recipe {text.count(old)} times"
    text = text.replace(old, new)
    if what == "two threads at once":
        text = text.replace("with lock, ", "with ")
    if what == "buffers for each size":
        text = text.replace("def lane(number):", "def lane(number, size):")
        text = text.replace("np.empty((3, PIECE), np.float32)", "np.ones((3, PIECE), np.float32)")
    imports = "from mmap import mmap\nfrom pathlib import Path\nfrom time import sleep\nfrom weakref import finalize\n"
    text = text.replace("\nPIECE,", f"\n{imports}\nseen, freed, kept = {{}}, {{}}, []\nPIECE,")
    path = folder / "multiply" / "with_pieces.py"
    path.parent.mkdir()
    path.write_text(text)
    return catalogue.read(path)


@pytest.fixture
def right():
    return Loader(catalogue.read(RIGHT)).execute()


@pytest.mark.parametrize("size", multiply.EDGE_SIZES[:-1])
def test_the_right_one_passes(size, right):
    assert transfers.check_transfers(right, multiply, size, Host()) is None


@pytest.mark.slow
@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_is_told(what, tmp_path):
    module = Loader(changed(what, tmp_path)).execute()
    found = [transfers.check_transfers(module, multiply, size, Host()) for size in (255, LAST)]
    assert FAULTS[what][2] in (found[0] or found[1] or "it passed"), found


@pytest.mark.slow
@pytest.mark.parametrize("what", LEAKS)
def test_what_grows_in_pieces_is_told(what, tmp_path, whatever_the_rules_say):
    (result,) = runner.run(changed(what, tmp_path), "check", [255])
    assert LEAKS[what][2] in result.reason


@pytest.mark.slow
def test_nothing_grows_in_the_right_one():
    (result,) = runner.run(catalogue.read(RIGHT), "check", [255])
    assert result.ok, result.reason


@pytest.mark.slow
def test_the_right_one_passes_up_to_a_result_that_is_there_too_early(right):
    """The last thing that is looked at, of two kinds of arrays: in many pieces, too."""
    sizes = []

    class Early(Host):
        def late(self, call, wait, right):
            assert not super().late(call, wait, right)
            sizes.append(call().size)
            return len(sizes) == 4

    fault = transfers.check_transfers(right, multiply, LAST, Early())
    early = "with transfer, from page-locked arrays: the result is there before the device is done"
    assert fault == f"at {multiply.MANY_PIECES:,}, {early}"
    assert sizes == [LAST, LAST, multiply.MANY_PIECES, multiply.MANY_PIECES]


class Driver:
    """As much of CUDA's driver as says which memory is page-locked: what lies between two addresses."""

    CUpointer_attribute = SimpleNamespace(CU_POINTER_ATTRIBUTE_MEMORY_TYPE="memory type")
    CUresult = SimpleNamespace(CUDA_SUCCESS=0)
    HOST, DEVICE, INVALID_VALUE = 1, 2, 1

    def __init__(self, first, last, kind=HOST):
        self.first, self.last, self.kind = first, last, kind

    def cuPointerGetAttribute(self, attribute, address):
        assert attribute == "memory type"
        known = self.first <= address <= self.last
        return (0, self.kind) if known else (self.INVALID_VALUE, None)


@pytest.mark.parametrize(
    ("before", "behind", "kind", "answer"),
    [
        (0, 0, Driver.HOST, True),
        (-1, 0, Driver.HOST, False),
        (0, -1, Driver.HOST, False),
        (4_096, 4_096, Driver.HOST, True),
        (-1_000_000, 4_096, Driver.HOST, False),
        (0, 0, Driver.DEVICE, False),
    ],
)
@pytest.mark.parametrize("elements", [1, 1_000_003])
def test_page_locked_is_what_cuda_says_of_every_byte(before, behind, kind, answer, elements, monkeypatch):
    x = np.zeros(elements, np.float32)
    driver = Driver(x.ctypes.data - before, x.ctypes.data + x.nbytes - 1 + behind, kind)
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=driver))
    assert transfers.is_page_locked(x) is answer


def test_page_locked_memory_may_have_no_hole(monkeypatch):
    x = np.zeros(10_000_019, np.float32)

    class Hole(Driver):
        def cuPointerGetAttribute(self, attribute, address):
            hole = x.ctypes.data + x.nbytes // 2
            return super().cuPointerGetAttribute(attribute, 0 if hole <= address < hole + 2**16 else address)

    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace())
    driver = Hole(x.ctypes.data, x.ctypes.data + x.nbytes - 1)
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=driver))
    assert not transfers.is_page_locked(x)
