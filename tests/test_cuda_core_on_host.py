"""cuda.core's recipes run without a GPU, in front of a fake that does the work late and on the host."""

import fake_cuda_core
import numpy as np
import pytest
from conftest import altered, ran, require_right_sizes

from gpu_cookbook import catalogue

RECIPES = [recipe for recipe in catalogue.recipes() if recipe.framework == "cuda.core"]
SCRIPT = "on_host.py"


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.workload}-{recipe.technique}")
def test_right_on_the_host(recipe):
    require_right_sizes(SCRIPT, recipe)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "old", "new", "fault"),
    [
        ("multiply", "def wait(c):\n    stream.sync()", "def wait(c):\n    pass", "elements are wrong"),
        ("multiply", "np.int64(a.size))", "a.size)", "for long long n"),
        ("increment", "a.ptr, np.int64(a.size)", "a.ptr, np.int64(a.size - 1)", "elements are wrong"),
        ("multiply", "Buffer.from_handle(c.ptr, out.nbytes, owner=c)", "c.exporting_obj", "no attribute 'copy_to'"),
        ("matmul", "c.ptr, out.nbytes, owner=c", "c.exporting_obj.address, 99, owner=c", "target.size == self.size"),
        ("increment", "(not (x.strides and x.size) or all(c_order))", "x.strides is None", "takes a C-contiguous"),
        (
            "matmul",
            "(not (x.strides and x.size) or all(c_order))",
            "True",
            "in Fortran order, ((6, 4), (4, 5)), array 0",
        ),
        ("increment", "n == 1 or ", "", "takes a C-contiguous"),
        ("subset_mean", "(x.strides and x.size)", "x.strides", "takes a C-contiguous"),
        ("multiply", "x.shape[i + 1 :]", "x.shape[i:]", "takes C-contiguous"),
        ("subset_mean", "x.is_device_accessible and ", "", "whole, ((6, 4),), array 0: no ValueError"),
        ("increment", " or not fits(a)", "", "in Fortran order, ((6, 4),), array 0: no ValueError"),
        ("increment", "if a.readonly", "if False", "whole, ((6, 4),), array 0: no ValueError"),
        ("multiply", "if out.readonly", "if a.readonly", "takes an out that is not read-only"),
        ("matmul", "if out.readonly", "if False", "whole, ((6, 4), (4, 5)), array 2: no ValueError"),
        ("subset_mean", "    partial.exporting_obj.fill(0, stream=stream)\n", "", "instead of"),
        ("norm", "    total.fill(0, stream=stream)\n", "", "instead of"),
        ("norm tuned", "np.int64(x.size)", "np.int64(x.size // 2 * 2)", "instead of"),
        ("multiply tuned", "np.int64(a.size))", "np.int32(a.size))", "for long long n"),
        ("multiply tuned", "(4 * THREADS)", "(8 * THREADS)", "assert each * config.grid * config.block >= n"),
        ("multiply tuned", "replay(kept=(a, b)):", "replay():", "elements are wrong"),
        ("multiply tuned", ".end_building()", "", "no attribute 'recorded'"),
        ("increment tuned", "launch_in(builder, a)", "launch_in(stream, a)", "prepared: call 2: "),
        ("increment tuned", "    launch_in(stream, *upload([0]))", "    pass", "a graph would have to load the kernel"),
        ("multiply tuned", "    launch_in(stream, *upload(*3 * [[0]]))", "    pass", "have to load the kernel"),
        ("matmul tuned", "    launch_in(stream, *upload(*3 * [[[0]]]))", "    pass", "have to load the kernel"),
        ("matmul tuned", "map(np.int32, ", "map(np.int64, ", "for int m"),
        ("matmul tuned", "replay(kept=(a, b)):", "replay():", "elements are wrong"),
        ("matmul tuned", "(k == 0 or (k", "(0 < k and (k", "cuBLAS could not multiply"),
        ("matmul tuned", "each in (b, a, out)", "each in (a, b, out)", "cannot reshape array of size 135267"),
        ("matmul tuned", "byref(one), x, n, y, k", "byref(one), x, k, y, n", "cuBLAS could not multiply"),
        ("matmul tuned", " or library.cublasSetStream_v2(handle, its_stream)", "", "elements are wrong"),
        ("matmul tuned", "20, 16, 256, 224", "20, 16, 512, 224", "k <= most_k"),
        ("subset_mean tuned", "LaunchConfig(grid=blocks,", "LaunchConfig(grid=BLOCKS,", "an illegal memory access"),
        ("random_subset_mean tuned", "np.uint64(seed)", "np.int64(seed)", "for unsigned long long seed"),
        ("random_subset_mean tuned", "np.int64(columns), ", "np.int64(rows), ", "instead of"),
    ],
)
def test_the_fake_finds_what_is_wrong(name, old, new, fault, tmp_path):
    workload, _, tuned = name.partition(" ")
    recipe = catalogue.find(workload, "cuda_core_tuned" if tuned else "cuda_core")
    (tmp_path / "kernels").symlink_to(recipe.path.parents[2] / "kernels")
    changed = altered(recipe.path, old, new, tmp_path / "recipes" / workload)
    assert fault in ran(SCRIPT, changed).stderr


@pytest.mark.parametrize("name", ["Device", "Stream", "Graph", "GraphBuilder"])
def test_the_fake_has_no_names_that_cuda_core_lacks(name):
    module = pytest.importorskip("cuda.core.graph" if "Graph" in name else "cuda.core")
    names = {each for each in vars(getattr(fake_cuda_core, name)) if not each.startswith("_")}
    assert names and not names - {*dir(getattr(module, name))}


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 4), np.float32),
        np.zeros((3, 4), np.float32).T,
        np.zeros((8, 4))[2:, 1:],
        np.zeros((1, 4), order="F"),
        np.zeros((8, 4))[::-1],
        np.zeros((0, 4)),
        np.zeros(()),
    ],
    ids=lambda array: f"{array.shape}-{array.strides}",
)
def test_the_fake_has_the_strides_of_cuda_cores_own_views(array):
    array.flags.writeable = array.ndim > 0
    # The cuda.core of CUDA 11 has other names.
    utils = pytest.importorskip("cuda.core.utils", reason="cuda.core 1 or newer is not installed")
    real = utils.StridedMemoryView.from_dlpack(array, stream_ptr=-1)
    fake = fake_cuda_core.StridedMemoryView.from_dlpack(array, stream_ptr=-1)
    for name in ("ptr", "shape", "strides", "size", "dtype", "readonly"):
        assert getattr(fake, name) == getattr(real, name), name
    assert fake.exporting_obj is real.exporting_obj is array
