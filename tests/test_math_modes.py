"""A recipe that rounds its factors for tensor cores, to TF32 or bfloat16, is checked as that, and never ranked with, or
compared to, those that do not."""

import ctypes
import io
import re
import sys
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from types import ModuleType, SimpleNamespace

import making
import numpy as np
import pytest
from lines import loaded
from making import timing
from rich.console import Console

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import charts, history, tables, text
from gpu_cookbook.results import FirstResult, Metric, Rank, completed, judged, mode_of, ranks, record
from gpu_cookbook.run import compare, manners, memory, precision
from gpu_cookbook.run.contract import for_out
from gpu_cookbook.run.expected import Expected
from recipes import matmul

ROOT = Path(__file__).parents[1]
SMALL, LARGE = matmul.SIZES[0], matmul.SIZES[-1]
RESIDENT, DEVICE = Metric.RESIDENT, Metric.DEVICE
TF32, BFLOAT16 = "TF32 (factors are cut)", "bfloat16 (upload() rounds)"
RECIPES = [recipe for recipe in catalogue.of_workload("matmul") if mode_of(recipe.math)]
HERE = {name: machine.installed(name) for name in ("triton", "torch", "ml_dtypes")}


def result(technique, seconds, size=LARGE, **changes):
    """One of matmul, on a GPU: with the device time and the first result that charts show."""
    found = making.result(technique, size, seconds, seconds / 100, origin=making.BOX, workload="matmul", **changes)
    return replace(
        found, timings=dict(found.timings) | {DEVICE: timing(seconds * 0.9, seconds / 100)}, first=FirstResult(seconds)
    )


def all_of_them(size=LARGE):
    """The two that round are the fastest in everything."""
    return [
        replace(result("numpy", 5.0, size), device="AMD EPYC, 2 cores", driver=None),
        result("triton", 1.0, size),
        result("torch", 2.0, size),
        result("torch_tuned", 0.9, size),
        result("triton_tf32", 0.2, size, math=TF32),
        result("cutile_tf32", 0.3, size, math=TF32),
        result("triton_bf16", 0.1, size, math=BFLOAT16),
    ]


ROUNDED = {"triton_tf32", "cutile_tf32", "triton_bf16"}


def rows(table):
    return [[entry.text for entry in row] for row in table.rows]


# ---- The recipes.


def test_there_are_recipes_in_each_mode_beside_one_in_float32():
    names = {recipe.technique: mode_of(recipe.math) for recipe in RECIPES}
    modes = {"tf32": "TF32", "bf16": "bfloat16"}
    assert names == {f"{each}_{ending}": mode for each in ("triton", "cutile") for ending, mode in modes.items()}
    for name in names:
        plain = catalogue.find("matmul", name.rpartition("_")[0])
        assert plain is not None and plain.math.startswith("float32, TF32 off")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.technique)
def test_a_recipe_differs_from_its_neighbour_in_the_arithmetic_only(recipe):
    """Its kernel loads, sums and stores what the neighbour's does, with the same names and tiles."""
    plain = catalogue.find("matmul", recipe.technique.rpartition("_")[0])
    mine, other = (
        {line for line in each.path.read_text(encoding="utf-8").split('"""')[2].splitlines() if line.strip()}
        for each in (recipe, plain)
    )
    arithmetic = re.compile(r"float(16|32)|tf32|ct\.mma\(|tl\.dot\(|torch\.tensor\(|dtype|assert_allclose|all right")
    assert not [line for line in mine ^ other if not arithmetic.search(line)]
    assert recipe.lane == plain.lane == "idiomatic"


@pytest.mark.skipif(not HERE["triton"], reason="triton is not installed")
@pytest.mark.parametrize(
    ("technique", "element", "instruction"),
    [
        ("triton", "fp32", r"fma\.rn\.f32"),
        ("triton_tf32", "fp32", r"wgmma\.mma_async\S*\.f32\.tf32\.tf32"),
        ("triton_bf16", "bf16", r"wgmma\.mma_async\S*\.f32\.bf16\.bf16"),
    ],
)
def test_tritons_compiler_takes_the_tensor_cores_only_where_the_recipe_says_so(
    technique, element, instruction, monkeypatch
):
    """For a Hopper GPU, which need not be there. In float32 no instruction of tensor cores may be left."""
    import triton
    from triton.backends.compiler import GPUTarget

    if not HERE["torch"]:
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(device=str))
    module = loaded(ROOT / "recipes" / "matmul" / f"with_{technique}.py")
    constants = {name: getattr(module, name) for name in ("M", "N", "K", "GROUP")}
    given = {"a": f"*{element}", "b": f"*{element}", "c": "*fp32"} | dict.fromkeys(("m", "k", "n"), "i32")
    source = triton.compiler.ASTSource(module.kernel, given | dict.fromkeys(constants, "constexpr"), constants)
    ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
    assert re.search(instruction, ptx)
    if technique == "triton":
        assert not re.search(r"mma", ptx)
    assert not re.search(r"cvt\.\w+\.tf32", ptx)  # the docstring says that factors are cut, not rounded


# ---- What the checks ask of them.


def rounded(x, bits):
    """float32 numbers rounded to so many bits."""
    keep = 24 - bits
    whole = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64) + (1 << (keep - 1))
    return (whole >> keep << keep).astype(np.uint32).view(np.float32)


def cut(x, bits):
    """The same, but what is too much is left out, as tensor cores do it with TF32."""
    return (x.view(np.uint32) >> (24 - bits) << (24 - bits)).view(np.float32)


def module_of(factor, end=lambda product: product):
    """A recipe for matmul that does this to its factors, and that to its result."""
    module = ModuleType("made_up")
    module.upload = lambda *arrays: arrays
    module.matmul = lambda a, b: end((factor(a).astype(float) @ factor(b).astype(float)).astype(np.float32))
    module.wait, module.download = lambda result: None, lambda result: result
    return module


def faults(module, math, size):
    """What is wrong with plain inputs, and with those that have one right answer."""
    (recipe,) = catalogue.choose(["matmul"], ["numpy"])
    workload = precision.workload_for(replace(recipe, math=math))
    inputs = workload.inputs(size)
    plain = Expected(workload, inputs).disagreement(module.matmul(*inputs))
    return plain, precision.inexact(module, workload, size)


@pytest.mark.parametrize("size", [(1, 1, 1), (17, 200, 3), (65, 4_099, 33), (200, 200, 200)])
@pytest.mark.parametrize(("math", "bits"), [(TF32, 11), (BFLOAT16, 8)])
def test_factors_with_the_bits_that_a_recipe_declares_are_right_and_with_one_less_are_wrong(math, bits, size):
    for way in (rounded, cut) if math == TF32 else (rounded,):
        assert faults(module_of(lambda x, way=way: way(x, bits)), math, size) == (None, None)
    assert "elements are not exact" in faults(module_of(lambda x: rounded(x, bits - 1)), math, size)[1]
    assert faults(module_of(lambda x: rounded(x, bits)), "float32", size)[0]


@pytest.mark.parametrize("bits", [8, 11])
def test_a_result_that_is_rounded_to_16_bits_in_the_end_is_wrong(bits):
    module = module_of(lambda x: rounded(x, 8), lambda product: rounded(product, bits))
    plain, exact = faults(module, BFLOAT16, (17, 200, 3))
    assert plain is None  # the tolerance for the factors hides it
    assert "elements are not exact" in exact


def test_cut_factors_stay_within_the_tolerance_where_most_elements_are_compared():
    size = (700, 1_024, 700)
    assert faults(module_of(lambda x: cut(x, 11)), TF32, size) == (None, None)


# ---- Arrays of bfloat16, which NumPy lacks.


@pytest.mark.skipif(not HERE["torch"], reason="torch is not installed")
def test_bfloat16_is_rounded_as_pytorch_does_it():
    import torch

    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            rng.standard_normal(10_000).astype(np.float32),
            rng.integers(0, 2**32, 10_000, np.uint32).view(np.float32),
            np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1 + 2**-8, 1 + 3 * 2**-8, 3.4e38, 1e-40]),
        ]
    )
    array = torch.tensor(x.copy()).bfloat16()
    expected = array.float().numpy()
    np.testing.assert_array_equal(memory.as_held(array, x), expected)
    np.testing.assert_array_equal(memory.held(array), expected)
    assert memory.as_held(torch.tensor(x.copy()), x) is x
    assert memory.write(array, -x) and memory.change_one(array, 1) is None
    np.testing.assert_array_equal(array.float().numpy(), -expected)


class Stage:
    """What copies to and from a GPU, whose memory is the host's here."""

    def __init__(self):
        self.array = np.zeros(memory.STAGE // 2**16, np.uint8)
        self.pointer = self.array.ctypes.data

    def copy(self, name, target, source, count):
        ctypes.memmove(target, source, count)


@pytest.mark.parametrize("part", [np.s_[:], np.s_[::2, 1:], np.s_[::-1, ::3], np.s_[:0], np.s_[3]])
def test_bfloat16_on_a_gpu_is_read_and_written_as_float32(part, monkeypatch):
    stage = Stage()
    monkeypatch.setattr(memory, "_stage", lambda: stage)
    monkeypatch.setattr(memory, "STAGE", stage.array.size)
    whole = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)
    bits = memory._rounded(whole)
    there = bits[part]
    interface = {"shape": there.shape, "typestr": "<V2", "data": (there.ctypes.data, False), "strides": there.strides}
    array = SimpleNamespace(__cuda_array_interface__=interface, dtype="torch.bfloat16", shape=there.shape)
    np.testing.assert_array_equal(memory.held(array), memory.as_held(array, whole[part]).reshape(-1))
    assert memory.write(array, 3 * whole[part])
    np.testing.assert_array_equal(memory.read(array), memory.as_held(array, 3 * whole[part]))


@pytest.mark.skipif(not (HERE["torch"] and HERE["ml_dtypes"]), reason="torch and ml_dtypes are not installed")
def test_the_array_interface_of_bfloat16_is_the_one_that_memory_expects():
    import ml_dtypes
    import torch

    assert np.dtype(ml_dtypes.bfloat16).str == torch._tensor._dtype_to_typestr(torch.bfloat16)
    assert np.dtype(torch._tensor._dtype_to_typestr(torch.bfloat16)) == memory.BFLOAT16
    assert memory.is_bfloat16(np.zeros(1, ml_dtypes.bfloat16)) and not memory.is_bfloat16(np.zeros(1, np.float16))


@pytest.mark.skipif(not HERE["torch"], reason="torch is not installed")
def test_an_array_for_out_is_float32_although_upload_rounds():
    import torch

    values = np.full((2, 3), np.nan, np.float32)
    for dtype in (torch.bfloat16, torch.float32):
        out = for_out(lambda x, dtype=dtype: (torch.tensor(x, dtype=dtype),), values)
        assert out.dtype == torch.float32 and out.shape == (2, 3) and out.isnan().all()


# ---- Ranks, ratios and what is named.


def test_the_mode_is_the_first_word_of_the_math_line():
    assert [mode_of(math) for math in (TF32, "bfloat16, sums in float32", "float16", "TF32")] == [
        *("TF32", "bfloat16", "float16", "TF32"),
    ]
    for math in (None, "", "IEEE", "float32, TF32 off (PyTorch's default)", "float32 of three TF32 products"):
        assert mode_of(math) == ""


@pytest.mark.parametrize("metric", [RESIDENT, DEVICE, Metric.FIRST])
def test_a_mode_has_ranks_of_its_own(metric):
    found = ranks(all_of_them(), metric)
    best = {name for name, rank in found.items() if rank == Rank.BEST}
    assert best == {"triton", "torch_tuned", "triton_tf32", "triton_bf16"}
    alone = [each for each in all_of_them() if not each.mode]
    plain = {name: rank for name, rank in found.items() if name not in ROUNDED}
    assert plain == ranks(alone, metric)


def test_a_doubt_about_one_that_rounds_is_none_about_the_others():
    mine = [replace(each, doubts={RESIDENT: "busy"}) if each.mode else each for each in all_of_them()]
    assert ranks(mine, RESIDENT) == {"triton": Rank.BEST, "torch_tuned": Rank.BEST}


def test_numpy_alone_beside_one_that_rounds_is_not_ranked():
    mine = [each for each in all_of_them() if each.technique in ("numpy", "triton_tf32")]
    assert ranks(mine, RESIDENT) == {"triton_tf32": Rank.BEST}


def test_nothing_that_rounds_is_divided_by_numpy():
    every = completed([*all_of_them(SMALL), *all_of_them()])
    for each in every:
        assert bool(each.speedups) == (each.technique not in ROUNDED), each.technique
        assert bool(each.crossings) == (each.technique not in {*ROUNDED, "numpy"}), each.technique
    shown = record(next(each for each in every if each.technique == "triton_tf32"))
    assert shown["math"] == TF32 and not [key for key in shown if "speedup" in key or "beats" in key]


def test_there_is_no_limit_of_tensor_cores_and_no_bandwidth_of_halves():
    """4,096 at 300,000 Gop/s, five times as much as the device does in float32, which is refused there."""
    seconds = matmul.operations(LARGE) / 3e14

    def judgement(math, seconds=seconds):
        probe = {"arithmetic": 50_000.0, "cache_bandwidth": 4_000.0, "cache_bytes": 50 * 2**20}
        return making.result("a", LARGE, seconds, 0, workload="matmul", math=math, **probe)

    assert "multiplies and adds at 50,000 Gop/s" in judgement("IEEE").reason
    assert judgement(TF32).ok and judgement(TF32).rates.bandwidth
    assert judgement(BFLOAT16).ok and judgement(BFLOAT16).rates.bandwidth is None
    assert judgement(BFLOAT16).rates.operations == pytest.approx(3e5)
    moved = matmul.bytes_moved(LARGE)  # with four bytes for each element
    assert judgement(BFLOAT16, moved / 11.9e12).ok and "GB/s is more" in judgement(BFLOAT16, moved / 12.1e12).reason
    assert "GB/s is more" in judgement(TF32, moved / 6.1e12).reason


def test_what_compare_prints_has_the_mode_in_a_heading_below_all_of_float32():
    (table,) = tables.compared(completed(all_of_them()))
    groups = {}
    for row in table.rows:
        if row[0].mark == "group":
            groups[row[0].text.partition(", ")[2]] = []
        else:
            groups[list(groups)[-1]].append((row[0].text, row[table.head.index("resident")].text))
    assert list(groups) == ["idiomatic", "tuned", "idiomatic, TF32", "idiomatic, bfloat16"]
    assert groups["idiomatic"] == [("triton", "*1.00 s"), ("torch", "2.00 s"), ("numpy", "5.00 s")]
    assert groups["idiomatic, TF32"] == [("triton_tf32", "*200 ms"), ("cutile_tf32", "300 ms")]
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(text.terminal([table], 160))
    words = " ".join(console.export_text().split())
    assert "idiomatic, TF32" in words and f"math: triton_bf16: {BFLOAT16}" in words
    assert "It is ranked among recipes that do the same, and not compared with NumPy." in words
    (plain,) = tables.compared([each for each in all_of_them() if not each.mode])
    assert not any("It is ranked among" in note.text for note in plain.notes)


def test_stored_tables_have_the_mode_beside_the_lane_and_those_that_round_last():
    other = [making.result(name, 10**6, 1.0, origin=making.BOX) for name in ("numpy", "triton")]
    overview, *found = tables.measured([*all_of_them(), *other])
    (table,) = (each for each in found if (each.workload, each.metric) == ("matmul", RESIDENT))
    names = [row[0] for row in rows(table)]
    assert set(names[-3:]) == ROUNDED and names[:3] == ["triton", "torch", "numpy"]
    lanes = {row[0]: row[1] for row in rows(table)}
    assert lanes["triton_tf32"] == "idiomatic, TF32" and lanes["triton_bf16"] == "idiomatic, bfloat16"
    assert lanes["triton"] == "idiomatic" and lanes["torch_tuned"] == "tuned"
    assert {row[0]: row[1] for row in rows(overview)}["triton_tf32"] == "idiomatic, TF32"
    best = {each["technique"] for each in table.records if each["rank"] == "best"}
    assert best == {"triton", "torch_tuned", "triton_tf32", "triton_bf16"}
    assert all("idiomatic, TF32" in row for row in rows(table) if row[0].endswith("tf32"))


@pytest.mark.parametrize(
    "draw",
    [charts.by_size, charts.costs, charts.cold_start, charts.roofline],
    ids=lambda draw: draw.__name__,
)
def test_no_chart_shows_or_names_one_that_rounds(draw):
    every = completed([*all_of_them(SMALL), *all_of_them()])
    probe = {"copy_bandwidth": 4_000.0, "cache_bytes": 1_000}
    chart = draw([judged(replace(each, **probe)) for each in every])
    said = chart.text + chart.svg + "".join(cell for row in rows(chart.table) for cell in row)
    assert not [name for name in ROUNDED if name in said] and "torch" in said
    (note,) = (note.text for note in chart.table.notes if "round their factors" in note.text)
    assert "triton_tf32 (TF32)" in note and "triton_bf16 (bfloat16)" in note
    plain = draw([judged(replace(each, **probe)) for each in every if not each.mode])
    assert plain.svg == chart.svg
    assert not any("round their factors" in each.text for each in plain.table.notes)


def test_bars_draw_what_a_page_asks_for():
    every = completed(all_of_them())
    chart = charts.bars(every, [("in TF32", "matmul", "triton_tf32", LARGE, RESIDENT)])
    assert "in TF32" in chart.svg


def test_a_page_that_asks_for_the_fastest_gets_float32(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import stored

    monkeypatch.setattr(stored, "of", lambda machine, workload: all_of_them())
    for lane, best in (("idiomatic", "triton"), ("tuned", "torch_tuned")):
        first, doubtful = stored.best("matmul", lane, LARGE)
        assert [each.technique for each in first] == [best] and not doubtful
    with pytest.raises(stored.NotStored):
        stored.best("matmul", "neither", LARGE)


def test_a_brief_comparison_leaves_them_out_before_the_recipe_in_float32(monkeypatch):
    monkeypatch.setattr(machine, "obstacle", lambda recipe: None)
    monkeypatch.setattr(compare, "MINUTES", 0)
    monkeypatch.setattr(machine, "gpus", list)
    chosen = [catalogue.find("matmul", name) for name in ("triton_bf16", "triton_tf32", "triton")]
    left = compare.brief(compare.Choice(chosen, {"matmul": (SMALL,)}))
    assert [recipe.technique for recipe in left.recipes] == ["triton"]


def test_the_history_has_the_mode_beside_the_lane():
    later = replace(making.BOX, commit="f" * 20, order=(1, 0))
    every = [replace(each, origin=origin) for each in all_of_them() for origin in (making.BOX, later)]
    moved = history.moved(every, RESIDENT)
    lanes = {row[0]: row[2] for row in rows(moved.table)}
    assert lanes["triton_tf32"] == "idiomatic, TF32" and lanes["triton"] == "idiomatic"


@pytest.mark.skipif(not HERE["torch"], reason="torch is not installed")
@pytest.mark.parametrize("name", ["cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul"])
def test_a_precision_that_a_recipe_leaves_changed_by_pytorchs_new_names_is_noticed(name):
    """Reading an old name then raises RuntimeError."""
    import torch

    owner, before = attrgetter(name)(torch.backends), manners.settings()
    old = owner.fp32_precision
    owner.fp32_precision = "ieee" if old == "tf32" else "tf32"
    try:
        assert manners.differences(before, manners.settings()) == ["PyTorch's precision of matrix products"]
    finally:
        owner.fp32_precision = old
    assert manners.differences(before, manners.settings()) == []
