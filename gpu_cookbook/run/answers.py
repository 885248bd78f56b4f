"""The inputs of published sizes and their answers, kept in memory from one recipe to the next of the same workload.

Each recipe has a process of its own, and all of them are given the same arrays: to make those of the largest
subset_mean, 13 GB, takes NumPy longer than most recipes are measured. They are files of a file system in memory, in a
folder that family.py deletes however gpu-cookbook ends. Who reads one gets arrays that cannot be written to.
"""

import contextlib
import mmap
import os
import pickle
import shutil
import tempfile
from pathlib import Path
from types import ModuleType

import numpy as np

from gpu_cookbook import machine
from gpu_cookbook.catalogue import Recipe
from gpu_cookbook.results import Size, mode_of
from gpu_cookbook.run import family
from gpu_cookbook.run.check import Expected

ROOM = 4  # so many times the footprint of each size that may fit must stay free: measure.does_not_fit() wants three
FACTS, ARRAYS = "facts", "array-*"  # files of a size and seed
MOST = 1 / 3  # of that file system: Ray wants 30 % of the host's memory there, which is 60 % of what Linux makes it


def place(recipe: Recipe) -> str | None:
    """The folder for those with which this recipe is compared, and no others: what is there for other workloads is
    deleted. None if there is no file system in memory."""
    if not (root := family.in_memory()):
        return None
    with contextlib.suppress(OSError):
        for other in root.iterdir():
            if other.name != recipe.workload:
                shutil.rmtree(other, ignore_errors=True)
        # What is right depends on the digits that a recipe keeps.
        folder = root / recipe.workload / (mode_of(recipe.math) or "IEEE")
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)
    return None


def kept(folder: str, workload: ModuleType, size: Size, seed: int) -> Expected | None:
    """What was kept for this size and seed; None if nothing was."""
    path = _path(folder, size, seed)
    try:
        data = (path / FACTS).read_bytes()
        return Expected.known(workload, *pickle.loads(data, buffers=map(_mapped, sorted(path.glob(ARRAYS)))))
    except OSError:
        return None


def keep(folder: str, workload: ModuleType, size: Size, seed: int, expected: Expected) -> None:
    """Keeps it, unless memory is short: what is not kept is made again."""
    if not any(isinstance(x, np.ndarray) for x in expected.inputs):
        return
    buffers: list[pickle.PickleBuffer] = []
    facts = expected.inputs, expected.answer, expected.tolerance
    data = pickle.dumps(facts, protocol=5, buffer_callback=buffers.append)
    needed = sum(buffer.raw().nbytes for buffer in buffers)
    free = machine.host_memory_free()
    short = any(free - needed < ROOM * workload.footprint(each) <= 2 * free for each in workload.SIZES)
    with contextlib.suppress(OSError):
        disk = shutil.disk_usage(folder)
        if short or disk.free - needed < (1 - MOST) * disk.total:
            return
        new = Path(tempfile.mkdtemp(dir=folder))
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
