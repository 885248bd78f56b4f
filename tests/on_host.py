"""A recipe of cuda.core on the host: ``python on_host.py PATH``. NumPy does what its kernels do; tests/test_kernels.py
compiles the kernels."""

import ctypes
import math
import sys
import warnings
from pathlib import Path

import fake_cuda_core
import numpy as np
from fewer import Late, require_right, with_few_special_values
from seeds import fault_of_seeds

from gpu_cookbook import catalogue
from gpu_cookbook.run import distribution, memory
from gpu_cookbook.run.contract import repeats, steps, takes_out
from gpu_cookbook.run.expected import Expected
from gpu_cookbook.run.precision import workload_for
from gpu_cookbook.run.worker import Loader

sys.path.insert(0, str(Path(__file__).with_name("late")))

import fake_cublas  # noqa: E402


class Stage:
    """What reads and writes the memory of the device, which is the host's."""

    array = np.zeros(memory.STAGE, np.uint8)
    pointer = array.ctypes.data

    def copy(self, name, target, source, count):
        ctypes.memmove(target, source, count)

    def finish(self):
        """Here everything is done when its call returns."""


# Arrays with the values of x, as other libraries have them; one with an axis of one element may be C-contiguous in any.
LAYOUTS = {
    "whole": lambda x: x.copy(),
    "part of a larger array": lambda x: np.pad(x, ((1, 1), (0, 0)), constant_values=-99)[1:-1],
    "in Fortran order": lambda x: x.copy(order="F"),
    "some columns": lambda x: np.hstack([x, x])[:, : x.shape[1]],
    "every other row": lambda x: x.repeat(2, axis=0)[::2],
    "backwards": lambda x: np.flip(np.flip(x).copy()),
}
SHAPES = ((6, 4), (1, 4), (4, 1), (1, 1), (0, 4), (4, 0))
FITTING = {  # the shapes of a recipe's arrays
    "multiply": [(shape, shape) for shape in SHAPES],
    "increment": [(shape,) for shape in SHAPES],
    "matmul": [((6, 4), (4, 5)), ((1, 4), (4, 1)), ((4, 1), (1, 4)), ((0, 4), (4, 5)), ((4, 0), (0, 5))],
    "subset_mean": [(shape,) for shape in SHAPES],
    "norm": [(shape,) for shape in SHAPES],
}


def fault_of_view(module, workload, shapes, place, layout):
    """What the recipe does wrong with another library's array in this place; the last place may be out."""
    upload, function, wait, download = steps(module, workload)
    hosts = [np.arange(math.prod(shape), dtype=DTYPE).reshape(shape) for shape in shapes]
    expected = np.asarray(workload.reference(*hosts)).astype(DTYPE)
    hosts.append(np.zeros(expected.shape, DTYPE))
    array = LAYOUTS[layout](hosts[place])
    given = list(upload(*hosts))
    given[place] = view = fake_cuda_core.StridedMemoryView.from_dlpack(array, stream_ptr=-1)
    *inputs, out = given

    def refusal(call, *arguments, why="C-contiguous", **options):
        try:
            call(*arguments, **options)
        except ValueError as error:
            return None if why in str(error) else str(error)
        return "no ValueError"

    options = {"out": out} if place == len(shapes) else {}
    if not array.flags.c_contiguous:
        return refusal(function, *inputs, **options) or (expected.ndim and refusal(download, view))
    written = place == len(shapes) or repeats(workload)
    view.is_device_accessible = False
    fault = refusal(function, *inputs, **options)
    view.is_device_accessible = view.readonly = True
    if written:
        fault = fault or refusal(function, *inputs, why="read-only", **options)
        view.readonly = False
    if fault:
        return fault
    result = function(*inputs, **options)
    wait(result)
    if not np.array_equal(download(result), expected, equal_nan=True):
        fault = "a wrong result"
    if not np.array_equal(array, expected if written else hosts[place]):
        fault = "the array has not what it should"
    if expected.ndim and not np.array_equal(download(view), array):
        fault = "the array is downloaded wrong"
    if layout == "part of a larger array" and not (array.base[[0, -1]] == -99).all():
        fault = "what surrounds the array was changed"
    return fault


def fault_of_prepared(size):
    """What is wrong with what prepared() returns if nobody else has the arrays that it was given, or None. It must not
    depend on what was launched before."""
    if not hasattr(module, "prepared"):
        return None
    expected = Expected(workload, workload.inputs(size))
    replay = module.prepared(*module.upload(*expected.inputs))
    result = replay()
    module.wait(result)
    return expected.disagreement(module.download(result))


memory._stage = Stage
fake_cuda_core.install()
fake_cublas.install(fake_cuda_core, fake_cuda_core.legacy)
warnings.filterwarnings("ignore", category=RuntimeWarning)  # NumPy's, of special values
recipe = catalogue.read(Path(sys.argv[1]))
workload = workload_for(recipe)
module = Loader(recipe).execute()
with_few_special_values(workload)
require_right(module, workload, Late(), before=fault_of_prepared)
DTYPE = np.float64 if recipe.workload == "subset_mean" else np.float32
for shapes in FITTING.get(recipe.workload, ()):
    for place in range(len(shapes) + takes_out(getattr(module, recipe.workload))):
        for layout in LAYOUTS:
            fault = fault_of_view(module, workload, shapes, place, layout)
            assert not fault, f"{layout}, {shapes}, array {place}: {fault}"
if recipe.workload == "matmul" and recipe.lane == "tuned":
    import test_matmul_tuned

    test_matmul_tuned.test_right_around_the_edges_of_tiles(recipe)
    test_matmul_tuned.test_prepared_multiplies_what_its_arrays_hold(recipe)
    test_matmul_tuned.test_prepared_writes_into_out(recipe)
    test_matmul_tuned.test_prepared_refuses_what_matmul_refuses(recipe)
if Expected(workload, workload.inputs(workload.EDGE_SIZES[-1])).answer.ndim:
    buffer = fake_cuda_core.Buffer.new(99)
    first = fake_cuda_core.StridedMemoryView.from_buffer(buffer, (2, 3), dtype=np.dtype(DTYPE))
    np.testing.assert_array_equal(module.download(first), buffer.owner[:24].view(DTYPE).reshape(2, 3))
if recipe.workload == "random_subset_mean":
    fault = distribution.fault(recipe, module, workload)
    fault = fault or fault_of_seeds(module)
    assert fault is None, fault
print(f"{len(workload.EDGE_SIZES)} sizes right")
