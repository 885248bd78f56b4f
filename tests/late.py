"""A recipe for an NVIDIA GPU from host to host, on a device whose streams are late (late/device.py), in pieces of a few
elements; there, it passes check_transfers() as well: ``python late.py PATH``. It prints "right", or what is wrong."""

import gc
import importlib
import itertools
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# The fakes must be found before anything imports a framework: hence the imports below it, and noqa.
sys.path.insert(0, str(Path(__file__).with_name("late")))

import numpy as np  # noqa: E402
from device import Failed, device  # noqa: E402

from gpu_cookbook import catalogue  # noqa: E402
from gpu_cookbook.run.contract import round_trip, takes_out  # noqa: E402
from gpu_cookbook.run.device import Host  # noqa: E402
from gpu_cookbook.run.expected import Expected  # noqa: E402
from gpu_cookbook.run.loader import Loader  # noqa: E402
from gpu_cookbook.run.transfers import check_transfers, placed  # noqa: E402
from gpu_cookbook.words import reason  # noqa: E402

FAKES = {"CuPy": "fake_cupy", "PyCUDA": "fake_pycuda", "Numba": "fake_numba", "PyTorch": "fake_torch"}
# Instead of the recipe's numbers, since each thread of a kernel may be one of Python's. The multiprocessors have a tile
# of a small product each.
SMALLER = {"PIECE": 32, "THREADS": 4, "BLOCKS": 2, "multiprocessors": 2}
PIECES = 30  # at least: each of up to 12 lanes is filled again
SEEDS = 2
THREADS = 4  # that would meet in the same room
FAILURES = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55)  # after so many things that were queued, the next one fails

recipe = catalogue.read(Path(sys.argv[1]))
workload = catalogue.workload_module(recipe.workload)
importlib.import_module(FAKES[recipe.framework]).install()
module = Loader(recipe).execute()
smaller = SMALLER["PIECE"] / module.PIECE
vars(module).update((name, n) for name, n in SMALLER.items() if isinstance(vars(module).get(name), int))
way = round_trip(module, workload)
piece = SMALLER["PIECE"]
if recipe.workload == "subset_mean":  # each row of the subset is more than half a piece: every piece is one row
    sizes, others = [(2 * PIECES + 1, 2 * piece - 3)], [(2 * n + 1, 2 * piece - 5) for n in (1, 2, 2 * PIECES, 5)]
    workload.EDGE_SIZES, workload.MANY_PIECES = ((0, 0), (1, 1), (1, 2), (7, 41), (31, 21)), (151, 21)
elif recipe.workload == "matmul":  # each row of the right factor is a piece; and all three matrices together are one
    sizes, others = [(PIECES + 1, PIECES, piece - 1), (2, 3, 4)], [(2 * PIECES, PIECES, piece - 3)]
    small = itertools.product(range(1, 6), repeat=3)
    others += [(m, k, n) for m, k, n in small if 20 <= m * k + k * n + m * n <= piece]
    workload.EDGE_SIZES = (1, 1, 1), (0, 5, 3), (5, 0, 3), (3, 3, 3), (5, 3, 4), (41, 33, 4), (23, 23, 23)
    workload.MANY_PIECES = 131, 29, 13
else:
    sizes = [PIECES * piece - 5, piece - 3]  # the second: of one piece, without threads
    others = [n * piece - 7 for n in (1, 2, 2 * PIECES, 5)]
    workload.EDGE_SIZES, workload.MANY_PIECES = (0, 1, 2, 13, 1_003), 8_003


def arguments(size, kinds, out, seed):
    device.leave_work()
    expected = Expected(workload, workload.inputs(size, seed))
    given = [placed(module, kind, x) for kind, x in zip(kinds, expected.inputs, strict=True)]
    options = {}
    if out is not None:
        options["out"] = placed(module, out, np.full(expected.answer.shape, np.nan, given[0].dtype))
    return expected, given, options


def fault_of_failure(size, kinds, out, after):
    """What is wrong with a call in which the device fails after so many things that were queued, and with the next."""
    _, given, options = arguments(size, kinds, out, after)
    device.fails_after = after
    try:
        way(*given, **options)
        if device.fails_after < 0:
            return "what fails is not told"
    except Failed:
        if device.under_way([*given, *options.values()]):
            return "the device still reads or writes the caller's arrays"
    finally:
        device.fails_after = None
    return fault_of(size, kinds, out, after + 1)


def fault_of(size, kinds, out, seed):
    """What is wrong with a call. ``kinds``: whether each input is page-locked; ``out``: whether that is, if there is
    one."""
    expected, given, options = arguments(size, kinds, out, seed)
    result = way(*given, **options)
    if fault := expected.disagreement(result):
        return fault
    if device.under_way([*given, *options.values()]):
        return "the device still reads or writes the caller's arrays"
    for x in given:
        x.fill(-7)
    device.synchronize()
    return expected.disagreement(result) and "the result changes after the call"


def fault_of_memory():
    """What is wrong with the page-locked memory that the recipe keeps, after calls with one size and with many, and
    once it is given back as the docstring says."""
    words, bytes_after = " ".join(module.__doc__.split()), []
    stated = re.search(r"(\d+) MiB[^.]* stay ", words)  # of pieces, which are smaller here
    if not stated:
        return "the docstring does not say how many MiB stay"
    for size in sizes:
        bytes_after = [bytes_kept_after([size]) for _ in range(3)]
        if bytes_after[2] > bytes_after[1]:
            return f"{workload.label(size)}: page-locked memory grows with each call, to {bytes_after} bytes"
    if (most := smaller * int(stated[1]) * 2**20) < (found := bytes_kept_after(others)):
        return f"{found} bytes of page-locked memory stay, not up to {most:.0f}: {stated[1]} MiB, with smaller pieces"
    for name in re.findall(r"(\w+)\.cache_clear", words):
        getattr(module, name).cache_clear()
    if found := bytes_kept_after([]):
        return f"{found} bytes of page-locked memory stay after all"
    return None


def bytes_kept_after(several):
    """Calls with these sizes, from and into ordinary arrays and page-locked ones; then the bytes that are page-locked
    while there is no array but the recipe's own."""
    for size, pinned in itertools.product(several, (False, True)):
        fault_of(size, itertools.repeat(pinned, len(workload.inputs(size))), pinned if takes_out(way) else None, 0)
    device.synchronize()
    gc.collect()
    return sum(device.pinned.values())


def described(size, kinds, out):
    return f"{workload.label(size)}, page-locked: inputs {kinds}, out {out}"


def fault():
    try:
        if found := fault_of_memory():
            return found
    except Exception as error:  # a recipe may raise anything
        return reason(error)
    kinds = list(itertools.product((False, True), repeat=len(workload.inputs(sizes[0]))))
    calls = list(itertools.product(sizes, kinds, (None, False, True) if takes_out(way) else (None,)))
    for seed, call in itertools.product(range(SEEDS), calls):
        device.random.seed(seed)
        words = f"{described(*call)}, with seed {seed}"
        try:
            for number in (0, 1):  # the same buffers with other values
                if found := fault_of(*call, 2 * seed + number):
                    return f"{words}: {found}"
            with ThreadPoolExecutor(THREADS) as pool:
                threads = list(pool.map(lambda number, call=call: fault_of(*call, number), range(8)))
            if any(threads):
                return f"{words}, in {THREADS} threads: {next(filter(None, threads))}"
        except Exception as error:  # a recipe may raise anything
            return f"{words}: {reason(error)}"
    for each in workload.EDGE_SIZES:
        if found := check_transfers(module, workload, each, Host()):
            return f"{workload.label(each)}: {found}"
    for number, call in enumerate(calls):
        for after in FAILURES[number % 2 :: 2]:  # each with every other call
            if found := fault_of_failure(*call, after):
                return f"{described(*call)}; a failure after {after} things were queued: {found}"
    return None


if __name__ == "__main__":
    sys.setswitchinterval(1e-5)  # seconds, so that threads of the host are often in between
    print(fault() or "right")
