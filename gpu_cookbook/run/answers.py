"""The inputs of published sizes and their answers, kept in memory from one recipe to the next of the same workload.

Each recipe has a process of its own, and all of them are given the same arrays: to make those of regression at
100,000×100, with exact answers, took each process 19 s of CPU time, on an AMD EPYC. They are files of a file system in
memory, in a folder that family.py deletes however gpu-cookbook ends. Who reads one gets arrays that
cannot be written to.
"""

import contextlib
import mmap
import os
import pickle
import shutil
import tempfile
import threading
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from gpu_cookbook import machine
from gpu_cookbook.catalogue import Recipe
from gpu_cookbook.results import Size, mode_of
from gpu_cookbook.run import family

if TYPE_CHECKING:  # the command line imports this module, and must not import NumPy
    from gpu_cookbook.run.expected import Expected

# Bytes: arrays that are larger malloc has from the system, and gives back at once. What it has done with smaller ones
# changes what calls take: in a process that had made four pairs of 1,000,000 numbers, NumPy took 383 to 420 µs to
# multiply two, and in one that had read them, 292 to 325 µs (five of each).
LARGE = 2**25
ROOM = 4  # so many times the footprint of each size that may fit must stay free: measure.does_not_fit() wants three
MOST = 1 / 3  # of that file system: Ray wants 30 % of the host's memory there, which is 60 % of what Linux makes it
FACTS, ARRAYS = "facts", "array-*"  # files of a size and seed
UNFINISHED = "unfinished-"  # how the name of a folder begins that a process is still writing
_writing = threading.Lock()  # two seeds of a large size are made at once, and there may be room for one


def place(recipe: Recipe) -> str | None:
    """The folder for those with which this recipe is compared, and no others: what is there for other workloads, or
    was left unfinished, is deleted. None if there is no file system in memory. No recipe may be running."""
    if not (root := family.in_memory()):
        return None
    with contextlib.suppress(OSError):
        clear(root, but=recipe.workload)
        # What is right depends on the digits that a recipe keeps.
        folder = root / recipe.workload / (mode_of(recipe.math) or "IEEE")
        folder.parent.mkdir(exist_ok=True)
        folder.mkdir(exist_ok=True)
        clear(folder, of=f"{UNFINISHED}*")
        return str(folder)
    return None


def clear(folder: Path | None, of: str = "*", but: str = "") -> None:
    """Deletes the folders in it."""
    for each in folder.glob(of) if folder else ():
        if each.name != but:
            shutil.rmtree(each, ignore_errors=True)


def kept(folder: str, workload: ModuleType, size: Size, seed: int) -> "Expected | None":
    """What was kept for this size and seed; None if nothing was."""
    from gpu_cookbook.run.expected import Expected

    path = _path(folder, size, seed)
    try:
        data = (path / FACTS).read_bytes()
        return Expected.known(workload, *pickle.loads(data, buffers=map(_mapped, sorted(path.glob(ARRAYS)))))
    except (OSError, pickle.UnpicklingError):
        return None


def keep(folder: str, workload: ModuleType, size: Size, seed: int, expected: "Expected") -> None:
    """Keeps it if it is large, and if there is room: what is not kept is made again."""
    if max(getattr(x, "nbytes", 0) for x in expected.inputs) <= LARGE:
        return
    buffers: list[pickle.PickleBuffer] = []
    facts = expected.inputs, expected.answer, expected.tolerance
    with contextlib.suppress(OSError, pickle.PicklingError, TypeError, ValueError), _writing:
        data = pickle.dumps(facts, protocol=5, buffer_callback=buffers.append)
        needed = len(data) + sum(buffer.raw().nbytes for buffer in buffers)
        free, disk = machine.host_memory_free(), shutil.disk_usage(folder)
        others = (ROOM * workload.footprint(each) for each in {*workload.SIZES, size})
        if any(free - needed < each <= 2 * free for each in others) or disk.free - needed < (1 - MOST) * disk.total:
            return
        new = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder))
        try:
            for number, buffer in enumerate(buffers):
                (new / ARRAYS.replace("*", f"{number:02}")).write_bytes(buffer.raw())
            (new / FACTS).write_bytes(data)
            new.rename(_path(folder, size, seed))
        except OSError:
            shutil.rmtree(new, ignore_errors=True)


def _path(folder: str, size: Size, seed: int) -> Path:
    return Path(folder, f"{size} {seed}")


def _mapped(path: Path) -> mmap.mmap | bytes:
    with path.open("rb") as file:
        empty = not os.fstat(file.fileno()).st_size
        return b"" if empty else mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
