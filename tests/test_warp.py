"""Warp: what the tool sees of its arrays and of what it prints, and what its 32 bits forbid."""

import itertools
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import workloads_of_kernels

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run import manners, memory, runner
from gpu_cookbook.run.contract import steps, takes_axes
from gpu_cookbook.run.loader import Loader

needs_warp = pytest.mark.skipif(not machine.installed("warp"), reason="warp-lang not installed")
RECIPES = {recipe.workload: recipe for recipe in catalogue.recipes() if recipe.technique == "warp"}
ALL_TUNED = {f"{each.workload} tuned": each for each in catalogue.recipes() if each.technique == "warp_tuned"}
TUNED = {name: each for name, each in ALL_TUNED.items() if "upload" in each.functions}  # of arrays
FULL = np.float32(1)  # what arrays too large for any memory are made of: one element, which all others are


def loaded(name):
    recipe = {**RECIPES, **ALL_TUNED}[name]
    module = Loader(recipe).execute()
    return module, *steps(module, catalogue.workload_module(recipe.workload))


def test_there_is_a_recipe_of_each_workload():
    assert set(RECIPES) == workloads_of_kernels()
    assert set(TUNED) == {"multiply tuned", "increment tuned"}


@needs_warp
@pytest.mark.parametrize(
    ("workload", "shape"),
    [
        ("multiply", (2**31,)),
        ("multiply", (2, 2**30)),
        ("multiply", ()),
        ("multiply", (1, 2, 3, 1, 1)),
        ("multiply tuned", (2**31,)),
        ("multiply tuned", (1, 2, 3, 1, 1)),
        ("increment tuned", (2**31,)),
        ("increment tuned", ()),
        ("increment", (2**31,)),
        ("increment", (2, 2, 2**29)),
        ("matmul", ()),
        ("matmul", (2**31, 1)),
        ("matmul", (1, 2**29)),
        ("subset_mean", ()),
        ("subset_mean", (2**31, 1)),
        ("subset_mean", (1, 2**27)),
        ("subset_mean", (3, 2**31 // 3 + 101)),
        ("norm", (2**31,)),
        ("norm", ()),
        ("norm", (1, 2, 3, 1, 1)),
    ],
)
def test_what_warp_cannot_count_is_refused_before_it_is_copied(workload, shape):
    _, upload, *_ = loaded(workload)
    with pytest.raises(ValueError, match="Warp takes") as refused:
        upload(np.broadcast_to(FULL, shape))
    assert str(shape) in str(refused.value)


@needs_warp
def test_rows_that_would_overflow_a_stride_are_refused_by_the_work_too():
    """Beyond 2**31 bytes Warp reads elsewhere, without an error: no memory holds what this array says."""
    import warp

    x = warp.zeros(1, dtype=warp.float64)
    wide = warp.array(ptr=x.ptr, shape=(2, 2**28), dtype=warp.float64, device=x.device)
    _, _, subset_mean, *_ = loaded("subset_mean")
    with pytest.raises(ValueError, match="Warp takes"):
        subset_mean(wide)
    _, _, matmul, *_ = loaded("matmul")
    y = warp.array(ptr=x.ptr, shape=(2, 2**29), dtype=warp.float32, device=x.device)
    with pytest.raises(ValueError, match="Warp takes"):
        matmul(warp.zeros((2, 2), dtype=warp.float32), y)


def of_another_library(x):
    """The same memory as an array with any strides along axes of one element, where they say nothing."""
    import warp

    strides = tuple(98_764 if n == 1 else step for n, step in zip(x.shape, x.strides, strict=True))
    view = warp.array(ptr=x.ptr, shape=x.shape, strides=strides, dtype=x.dtype, device=x.device)
    assert view.is_contiguous == (1 not in x.shape)
    view.owner = x
    return view


@needs_warp
@pytest.mark.parametrize("name", ["multiply", "increment", "matmul", "subset_mean", "norm", *TUNED])
@pytest.mark.parametrize("shape", [(6, 4), (1, 4), (4, 1), (1, 1), (0, 1), (1, 0)])
def test_c_contiguous_arrays_are_taken_whatever_their_strides_say(name, shape):
    module, upload, function, wait, download = loaded(name)
    workload = name.removesuffix(" tuned")
    x = np.arange(math.prod(shape), dtype=np.float64 if workload == "subset_mean" else np.float32).reshape(shape)
    hosts = {"multiply": (x, x), "matmul": (x, x.T)}.get(workload, (x,))
    expected = np.asarray(catalogue.workload_module(workload).reference(*hosts)).astype(x.dtype)
    result = function(*map(of_another_library, upload(*hosts)))
    wait(result)
    np.testing.assert_array_equal(download(result), expected)
    if workload in ("multiply", "matmul"):
        (out,) = map(of_another_library, upload(np.zeros(expected.shape)))
        for run in (function, lambda *arrays: module.prepared(*arrays)()):
            out.owner.zero_()
            assert run(*map(of_another_library, upload(*hosts)), out) is out
            wait(out)
            np.testing.assert_array_equal(download(out), expected)


@needs_warp
@pytest.mark.parametrize("name", ["multiply", "increment", "matmul", "subset_mean", "norm", *TUNED])
@pytest.mark.parametrize(
    "layout", [lambda x: x[::2], lambda x: x[:, :3], lambda x: x[:, ::2], lambda x: x.transpose([1, 0])]
)
def test_arrays_that_are_not_c_contiguous_are_refused(name, layout):
    _, upload, function, *_ = loaded(name)
    workload = name.removesuffix(" tuned")
    view = layout(*upload(np.zeros((4, 6))))
    square = upload(np.zeros(view.shape)) if workload == "multiply" else upload(np.zeros(view.shape[::-1]))
    with pytest.raises(ValueError, match="C-contiguous"):
        function(view, *square) if workload in ("multiply", "matmul") else function(view)


@needs_warp
@pytest.mark.slow
@pytest.mark.parametrize("name", [*RECIPES, *(name for name in ALL_TUNED if name not in TUNED)])
def test_the_kernels_compile_for_a_gpu(name, tmp_path):
    import warp

    module, *_ = loaded(name)
    (compiled,) = {kernel.module for kernel in vars(module).values() if isinstance(kernel, warp.Kernel)}
    before = compiled.options["block_dim"]
    compiled.options["block_dim"] = getattr(module, "THREADS", before)
    try:
        warp.compile_aot_module(compiled, arch=90, module_dir=tmp_path, use_ptx=False)
    finally:
        compiled.options["block_dim"] = before
    (cubin,), (source,) = tmp_path.glob("*.cubin"), tmp_path.glob("*.cu")
    assert cubin.read_bytes()[:4] == b"\x7fELF"
    products = set(re.findall(r"\bdot_\w+", source.read_text(encoding="utf-8")))
    assert len(products) == (name == "matmul"), "each takes many seconds"


@needs_warp
@pytest.mark.slow
@pytest.mark.parametrize("name", TUNED)
@pytest.mark.parametrize("arch", [75, 90])
def test_the_tuned_kernels_load_and_store_16_bytes_at_once(name, arch, tmp_path):
    import warp

    module, *_ = loaded(name)
    before = module.kernel.module.options["block_dim"]
    module.kernel.module.options["block_dim"] = 256
    try:
        warp.compile_aot_module(module.kernel.module, arch=arch, module_dir=tmp_path, use_ptx=True)
    finally:
        module.kernel.module.options["block_dim"] = before
    (ptx,) = tmp_path.glob("*.ptx")
    found = re.findall(r"\b(ld|st)\.global\.(v4\.)?[fb]32", ptx.read_text(encoding="utf-8"))
    loads = 1 if name.startswith("increment") else 2
    # Those of four elements, and those of one: of a slice that starts anywhere, and of the last elements.
    expected = {("ld", "v4."): loads, ("st", "v4."): 1, ("ld", ""): loads, ("st", ""): 1}
    assert {each: found.count(each) for each in found} == expected


@needs_warp
@pytest.mark.parametrize("name", TUNED)
def test_slices_that_start_anywhere_and_the_last_elements_are_right(name):
    module, upload, function, wait, download = loaded(name)
    count = 1 if name.startswith("increment") else 3
    for n in (*range(10), 4095, 4096):
        for starts in itertools.product(range(5), repeat=count) if n in (4, 7) else [count * (0,), count * (1,)]:
            whole = np.arange(n + 12, dtype=np.float32)
            arrays = upload(*count * [whole])
            views = [x[start : start + n] for x, start in zip(arrays, starts, strict=True)]
            hosts = [whole[start : start + n] for start in starts]
            expected = hosts[0] + 1 if count == 1 else hosts[0] * hosts[1]
            wait(function(*views))
            after = np.concatenate([whole[: starts[-1]], expected, whole[starts[-1] + n :]])
            np.testing.assert_array_equal(download(arrays[-1]), after)


@needs_warp
@pytest.mark.parametrize("workload", ["multiply", "multiply tuned", "matmul"])
@pytest.mark.parametrize("elsewhere", range(3))
def test_arrays_on_several_devices_are_refused(workload, elsewhere):
    """Warp gives the kernel every array's address, wherever that is. Nothing else here has an address."""
    import warp

    module, upload, function, *_ = loaded(workload)
    arrays = upload(*3 * [np.zeros((4, 4))])
    names = ("shape", "dtype", "is_contiguous", "strides", "size", "ndim")
    a, b, out = (SimpleNamespace(ptr=1 + i, **{name: getattr(x, name) for name in names}) for i, x in enumerate(arrays))
    for i, x in enumerate((a, b, out)):
        x.device = "cuda:1" if i == elsewhere else warp.get_device("cpu")
    for call in (function, module.prepared):
        with pytest.raises(ValueError, match="on one device.*cuda:1"):
            call(a, b, out)


@needs_warp
@pytest.mark.parametrize(
    ("rows", "columns", "seed"), [(2**16, 2**16 + 1, 0), (100_000, 100_000, 0), (1, 1, 2**32), (1, 1, -1)]
)
def test_more_samples_and_seeds_than_warp_has_are_refused(rows, columns, seed):
    _, _, random_subset_mean, *_ = loaded("random_subset_mean")
    with pytest.raises(ValueError, match=f"not {rows} × {columns} of the seed {seed}"):
        random_subset_mean(rows, columns, seed=seed)


@needs_warp
def test_a_sample_depends_on_its_place_and_not_on_the_chunks():
    _, _, random_subset_mean, wait, download = loaded("random_subset_mean")
    means = []
    for chunk in (1, 2, 7, 16, 40, 2**40):
        mean = random_subset_mean(33, 17, chunk, 5)
        wait(mean)
        means.append(download(mean))
    np.testing.assert_allclose(means, means[0], rtol=1e-14)


def test_the_shapes_line_says_which_arrays_are_refused():
    module = type("module", (), {"__doc__": "Multiply.\n\nShapes: 1 to 4 dimensions, fewer than 2**31 elements\n"})
    takes = [takes_axes(module, [np.zeros((1,) * axes)]) for axes in range(6)]
    assert takes == [False, True, True, True, True, False]
    assert takes_axes(type("module", (), {"__doc__": "Multiply."}), [np.zeros(())])


@needs_warp
@pytest.mark.skipif(bool(machine.gpus()), reason="its arrays are then on the GPU")
def test_arrays_are_read_and_written_where_they_are():
    import warp

    array = warp.array(np.arange(12, dtype=np.float32).reshape(3, 4), device="cpu")
    values = np.full((3, 4), 7, np.float32)
    assert memory.write(array, values)
    np.testing.assert_array_equal(memory.read(array), values)
    back = memory.change_one(array, 1)
    assert array.numpy()[1, 2] == 1
    back()
    np.testing.assert_array_equal(array.numpy(), values)
    assert memory.is_changeable(array) and not memory.is_cuda(array)


@needs_warp
def test_a_setting_that_stays_is_noticed():
    import warp

    before = manners.settings()
    warp.config.max_unroll += 1
    try:
        assert manners.differences(before, manners.settings()) == ["Warp's max_unroll"]
    finally:
        warp.config.max_unroll -= 1
    assert manners.differences(before, manners.settings()) == []


GREETINGS = """Warp 1.19.0 initialized:
   CUDA Toolkit 13.4, Driver 13.0
   Devices:
     "cpu"      : "x86_64"
   Kernel cache:
     /tmp/cache/1.19.0
Module gpu_cookbook.recipes.multiply.with_warp 49ff0bd load on device 'cpu' took 2429.74 ms  (compiled)
"""


def test_what_warp_prints_by_itself_is_not_the_recipes():
    assert runner.printed_by_recipe("Warp", GREETINGS) == ""
    assert runner.printed_by_recipe("Warp", f"{GREETINGS}done\n") == "done\n"
    assert runner.printed_by_recipe("JAX", GREETINGS) == GREETINGS
