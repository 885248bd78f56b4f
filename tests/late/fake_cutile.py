"""cuTile's names for device.py, on fake_cupy.py's arrays: ``install()`` puts both where they are found. A block of a
kernel runs as Python, and a tile is an array of NumPy's."""

import sys
from functools import partial
from types import ModuleType

import fake_cupy
import numpy as np
from device import launch as submit


def load(array, index, shape):
    (i,), (n,) = index, shape
    return array[i * n : (i + 1) * n]


def store(array, index, tile):
    (i,), n = index, tile.size
    array[i * n : (i + 1) * n] = tile


def run(kernel, sizes, grid, *memory):
    assert grid == 1, "nobody needed ct.bid yet"
    kernel(*(each[: 4 * n].view(np.float32) for each, n in zip(memory, sizes, strict=True)))


def launch(stream, grid, kernel, arrays):
    (blocks,) = grid
    submit(stream, partial(run, kernel, [x.size for x in arrays]), blocks, [(x.data.ptr, True) for x in arrays])


def install():
    fake_cupy.install()
    tile = ModuleType("cuda.tile")
    tile.kernel, tile.launch, tile.load, tile.store = lambda function: function, launch, load, store
    cuda = sys.modules.setdefault("cuda", ModuleType("cuda"))
    cuda.tile = sys.modules["cuda.tile"] = tile
