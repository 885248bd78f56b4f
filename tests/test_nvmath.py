"""nvmath's recipe without a GPU: what it does itself, in front of NumPy, which stands for nvmath and CuPy."""

import gc
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from gpu_cookbook import catalogue
from gpu_cookbook.doctor import facts
from gpu_cookbook.run.loader import Loader

(RECIPE,) = (recipe for recipe in catalogue.recipes() if recipe.framework == "nvmath-python")


@pytest.fixture
def module(monkeypatch):
    cupy = ModuleType("cupy")
    cupy.zeros, cupy.asnumpy, cupy.ascontiguousarray = np.zeros, np.array, np.ascontiguousarray
    cupy.asarray = lambda array, *, blocking: np.array(array, order="C")
    cupy.cuda = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None))
    advanced = ModuleType("nvmath.linalg.advanced")
    advanced.freed = []

    def product_of(a, b):
        """In the order that nvmath takes from the strides of a, of which the first is looked at first."""
        return np.asarray(a @ b, order="F" if a.strides[0] == a.itemsize else "C")

    class Matmul:
        def __init__(self, a, b):
            assert a.size and b.size, "cuBLASLt refuses it"
            self.a, self.b, self.planned = a, b, False

        def plan(self):
            self.planned = True

        def execute(self):
            assert self.planned
            return product_of(self.a, self.b)

        def free(self):
            advanced.freed.append(self)

    def matmul(a, b):
        assert a.size and b.size, "cuBLASLt refuses it"
        return product_of(a, b)

    advanced.Matmul, advanced.matmul = Matmul, matmul
    for name in ("nvmath", "nvmath.linalg"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "nvmath.linalg.advanced", advanced)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    return Loader(RECIPE).execute()


@pytest.mark.parametrize("size", catalogue.workload_module("matmul").EDGE_SIZES)
def test_right_at_every_edge_size(module, size):
    workload = catalogue.workload_module("matmul")
    a, b = workload.inputs(size)
    expected = workload.reference(a, b)
    uploaded = module.upload(a, b)
    for result in (module.matmul(*uploaded), module.prepared(*uploaded)()):
        module.wait(result)
        assert module.download(result).dtype == np.float32
        assert result.flags.c_contiguous, "the next product would refuse it"
        assert np.all(abs(module.download(result) - expected) <= workload.tolerance(expected, a, b))


def test_what_it_refuses(module):
    for function in (module.matmul, module.prepared):
        with pytest.raises(ValueError, match=r"\(3, 4\) and float32 \(5, 6\)"):
            function(np.zeros((3, 4), np.float32), np.zeros((5, 6), np.float32))
        with pytest.raises(ValueError, match="float64"):
            function(np.zeros((3, 4)), np.zeros((4, 6), np.float32))
        x = np.zeros((4, 4), np.float32)
        for view in (x.T, x[::-1], x[:, ::-1], np.broadcast_to(x[0], x.shape), np.tile(x, 2)[:, :4]):
            for arrays in ((view, x), (x, view)):
                with pytest.raises(ValueError, match="C-contiguous"):
                    function(*arrays)


def test_a_plan_is_freed_with_what_replays_it(module):
    a, b = module.upload(np.eye(3), np.eye(3))
    replay = module.prepared(a, b)
    a[:] = 2  # what is in the arrays when it is replayed
    np.testing.assert_array_equal(replay(), a @ b)
    freed = sys.modules["nvmath.linalg.advanced"].freed
    assert freed == []
    del replay
    gc.collect()
    assert len(freed) == 1


def test_doctor_multiplies_with_it(module, monkeypatch):
    """nvmath imports without cuBLASLt, and looks for it when it first multiplies."""
    (probe,) = (framework.tries_gpu for framework in facts.FRAMEWORKS if framework.module == "nvmath")
    monkeypatch.setitem(sys.modules, "gpu_cookbook.recipes.matmul.with_nvmath", module)
    exec(probe, {})

    def missing(a, b):
        raise RuntimeError("Failed to dlopen libcublasLt.so.13")

    monkeypatch.setattr(module, "product", missing)
    with pytest.raises(RuntimeError, match="libcublasLt"):
        exec(probe, {})
