"""cuda.compute's transformations of several arrays for device.py, on fake_cupy.py's arrays: ``install()`` puts both
where they are found."""

import sys
from types import ModuleType

import fake_cupy
import numpy as np
from device import device


class ZipIterator:
    def __init__(self, *arrays):
        self.arrays = [x.a for x in arrays]


def unary_transform(*, d_in, d_out, op, num_items, stream):
    def run():
        for i in range(num_items):
            values = op([x[i] for x in d_in.arrays])
            assert all(isinstance(each, np.float32) for each in values)
            for x, each in zip(d_out.arrays, values, strict=True):
                x[i] = each

    device.submit(stream, run, *d_in.arrays, *d_out.arrays)


def make_unary_transform(**kinds):
    """``kinds``: of what is given later too, each time, and may be another of the same kind then."""
    assert {*kinds} == {"d_in", "d_out", "op"}
    return unary_transform


def install():
    fake_cupy.install()
    compute = ModuleType("cuda.compute")
    for each in (ZipIterator, unary_transform, make_unary_transform):
        setattr(compute, each.__name__, each)
    cuda = sys.modules.setdefault("cuda", ModuleType("cuda"))
    cuda.compute = sys.modules["cuda.compute"] = compute
