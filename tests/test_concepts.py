"""docs/concepts and benchmarks/concepts.py: the kernels are right, on the CPU, and what is wrong is found out; the
times are stored, read and shown. The times here are made up."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from concepts_on_host import Host
from conftest import altered, committed, git
from lines import loaded, page_of, require_that_changes_cost_one_line, write

from gpu_cookbook import machine
from gpu_cookbook.render import concepts as shown
from gpu_cookbook.store import commits, transfers
from gpu_cookbook.store.commits import StoreError

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "concepts.py"
KERNELS = ROOT / "docs" / "concepts"
SMALL = {
    **{"ROWS": 300, "COLUMNS": 7, "NUMBERS": 1_024, "DIFFERENT": 64, "STEPS": 20, "READ": 2**14, "EACH": 4},
    **{"IN_L1": 2**13, "IN_L2": 2**15, "IN_MEMORY": 2**16, "NEAR": 1_000, "FAR": 500, "SHARED_EACH": 64},
}

benchmark = loaded(SCRIPT)


@pytest.fixture
def small(monkeypatch):
    if not machine.program("g++"):
        pytest.skip("needs g++")
    for name, value in SMALL.items():
        assert isinstance(getattr(benchmark, name), int)
        monkeypatch.setattr(benchmark, name, value)


@pytest.mark.slow
def test_every_kernel_is_right(small, tmp_path):
    host = Host(KERNELS, tmp_path)
    steps = {step.name: step for step in benchmark.measured(host)}
    assert [step.reason for step in steps.values() if step.reason] == []
    # Eight blocks do not fit, since Host has room for 1,024 threads.
    assert {*steps} == {*shown.CASES} - {"occupancy_8"}
    assert steps["memories_l2_latency"].time.median == pytest.approx(1.1e-3 / 500)
    assert steps["coalescing_rows"].moved == 4 * 300 * 7 and not steps["divergence_mixed"].moved
    # What makes only so many blocks fit, and no more.
    shared = [each + host.reserved for name, _, each in host.asked if name == "twice"]
    assert [host.shared // each for each in shared] == [1, 2, 4]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "right", "wrong", "found"),
    [
        ("coalescing.cu", "(long long)row * columns + column]", "(long long)row * columns]", {"coalescing_rows"}),
        ("coalescing.cu", "column * rows + row]", "column * rows]", {"coalescing_columns"}),
        ("divergence.cu", "% quarter * 4 + thread / quarter;", "% quarter * 4;", {"divergence_sorted"}),
        ("divergence.cu", "x >> 17", "x >> 16", {"divergence_mixed", "divergence_sorted"}),
        ("occupancy.cu", "i < n", "i < n - 1", {"occupancy_1", "occupancy_2", "occupancy_4"}),
        ("memories.cu", "for (int i = 0; i < steps; i++)\n        at = __ldg", "at = __ldg", {"memories_l1_latency"}),
        ("memories.cu", "& mask", "& (mask >> 1)", {"memories_l2_read", "memories_device_read"}),
        ("memories.cu", "k * stride", "k", {"memories_shared_read"}),
        ("memories.cu", "ring + at", "ring + at / 8 * 4", {"memories_shared_latency"}),
    ],
)
def test_a_kernel_that_is_wrong_is_found_out(small, tmp_path, file, right, wrong, found):
    shutil.copytree(KERNELS, tmp_path / "kernels")
    altered(tmp_path / "kernels" / file, right, wrong)
    host = Host(tmp_path / "kernels", tmp_path)
    (group,) = [one for one in ("coalescing", "divergence", "occupancy") if file.startswith(one)] or ["latency"]
    cases = [*getattr(benchmark, group)(host)] if group != "latency" else None
    steps = [benchmark.taken(host, case) for case in cases or (*benchmark.latency(host), *benchmark.bandwidth(host))]
    assert {step.name for step in steps if step.reason} == found
    assert all(step.reason.startswith("Wrong: element ") for step in steps if step.reason)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90", "sm_100"])
@pytest.mark.parametrize("path", sorted(KERNELS.glob("*.cu")), ids=lambda path: path.name)
def test_the_kernels_compile(path, architecture):
    from gpu_cookbook.run.cuda_core import Program, ProgramOptions

    program = Program(path.read_text(encoding="utf-8"), "c++", ProgramOptions(arch=architecture))
    assert program.compile("cubin").code[:4] == b"\x7fELF"


def test_without_a_gpu_it_says_so(tmp_path):
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, SCRIPT], cwd=tmp_path, capture_output=True, text=True, env=hidden)
    assert done.returncode and done.stdout == ""
    assert done.stderr == "What is measured is an NVIDIA GPU, but this machine has none.\n"


def test_a_step_that_was_not_measured_costs_only_its_group(small, tmp_path, monkeypatch):
    def full(count, dtype):
        raise MemoryError("no room")

    host = Host(KERNELS, tmp_path)
    host.unwritten = full
    steps = {step.name: step.reason for step in benchmark.measured(host)}
    assert steps.pop("memories_shared_latency") == ""
    assert steps == dict.fromkeys(
        ("coalescing", "divergence", "occupancy", "latency", "bandwidth"), "MemoryError: no room"
    )


@pytest.mark.slow
def test_a_run_is_stored_and_read_again(small, clone, tmp_path, monkeypatch, capsys):
    results = clone / "benchmarks" / "results"
    monkeypatch.setattr(benchmark, "ROOT", clone)
    monkeypatch.setattr(benchmark, "FILE", results / transfers.CONCEPTS)
    monkeypatch.setattr(benchmark, "Gpu", lambda: Host(KERNELS, tmp_path))
    monkeypatch.setattr(benchmark.machine, "gpus", lambda: (machine.Gpu(0, "A GPU that is made up", 2**36, (9, 0)),))
    monkeypatch.setattr(benchmark.machine, "obstacle", lambda recipe: None)
    benchmark.main("made-up")
    printed = capsys.readouterr().out
    assert "coalescing_rows" in printed and "2,200 ns" in printed
    found, complaints = transfers.kept(results, transfers.CONCEPTS)
    assert complaints == [] and found["made-up"].origin.commit == git(clone, "rev-parse", "HEAD")
    written = json.loads((results / transfers.CONCEPTS).read_text())["steps"]
    assert [transfers.record(step) for step in found["made-up"].steps.values()] == written
    assert found["made-up"].steps["memories_device_read"].moved == 2**16
    assert transfers.kept(results)[0] == {} and transfers.kept(results, transfers.LAUNCHES)[0] == {}
    (clone / "gpu_cookbook").mkdir(exist_ok=True)
    (clone / "gpu_cookbook" / "new.py").write_text("")
    with pytest.raises(StoreError, match="A stored line belongs to a commit"):
        benchmark.main("made-up")


@pytest.mark.parametrize(
    ("ends", "code", "said"), [(ValueError, 1, "Not everything"), (KeyboardInterrupt, 130, "Stop")]
)
def test_what_was_measured_is_shown_whatever_ends_it(ends, code, said, monkeypatch, capsys):
    def failing(gpu):
        yield benchmark.Case("divergence_mixed", lambda: None, lambda: None)
        raise ends

    gpu = SimpleNamespace(times=lambda call: [0.00123])
    for name in ("coalescing", "divergence", "occupancy", "latency", "bandwidth"):
        monkeypatch.setattr(benchmark, name, failing)
        failing.__name__ = "coalescing"
    monkeypatch.setattr(benchmark, "Gpu", lambda: gpu)
    monkeypatch.setattr(benchmark.machine, "gpus", lambda: (machine.Gpu(0, "A GPU that is made up", 2**36, (9, 0)),))
    monkeypatch.setattr(benchmark.machine, "obstacle", lambda recipe: None)
    with pytest.raises(typer.Exit) as ended:
        benchmark.main()
    out, err = capsys.readouterr()
    assert ended.value.exit_code == code and "1.23 ms" in out and err.splitlines()[-1].startswith(said)


def test_every_step_has_a_file_of_kernels():
    for name in shown.CASES:
        assert all((ROOT / path).exists() for path in transfers.sources(name))
    used = {path for name in shown.CASES for path in transfers.sources(name)}
    assert used == {f"docs/concepts/{path.name}" for path in KERNELS.glob("*.cu")}


# ---- The page.


def line(commit):
    """A line with times that nobody measured: 10 µs for the first step, 20 for the second, and so on."""
    steps = []
    for number, name in enumerate(shown.CASES, 1):
        time = number * (1e-8 if name.endswith("_latency") else 1e-5)
        moved = {} if "divergence" in name or name.endswith("_latency") else {"moved_bytes": 10**9}
        steps.append({"step": name, "time_s": time, "q1_s": time, "q3_s": time, "samples": 10} | moved)
    return {
        **{"machine": "nvidia-h200", "device": "A GPU that is made up", "driver": "1.2.3", "processor": "A processor"},
        **{"versions": "Python 3.12.3", "date": "2026-11-26", "commit": commit, "elements": 1, "steps": steps},
    }


def test_a_kernel_is_stale_once_its_file_has_changed(clone, results):
    path = clone / "docs" / "concepts" / "memories.cu"
    write(results / transfers.CONCEPTS, line(committed(path, "int first;\n")))
    path.write_text("int second;\n")
    commits.changed_since.cache_clear()
    steps = transfers.kept(results, transfers.CONCEPTS)[0]["nvidia-h200"].steps
    assert {name for name, step in steps.items() if step.stale} == {name for name in steps if "memories" in name}
    table = shown.table(steps, "")
    assert [row[2].text for row in table.rows if row[0].text == "memories_l1_latency"] == ["†100 ns"]
    assert [note.text for note in table.notes] == ["† The kernel has changed since it was measured."]


def test_a_line_that_was_changed_anywhere_costs_at_most_itself(clone, results):
    require_that_changes_cost_one_line(
        results / transfers.CONCEPTS,
        line(git(clone, "rev-parse", "HEAD")),
        lambda: transfers.every(results, transfers.CONCEPTS),
        lambda run: [shown.stored(run)],
    )


@pytest.mark.slow
@pytest.mark.parametrize("measured", [False, True])
def test_the_page_shows_what_is_stored(measured, tmp_path):
    source, file = tmp_path / "docs", tmp_path / "lines"
    shutil.copytree(KERNELS, source / "concepts")
    (source / "kernels").symlink_to(ROOT / "kernels")
    text = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8").replace("../kernels/", "kernels/")
    (source / "index.md").write_text(text, encoding="utf-8")
    write(file, *[line(git(ROOT, "rev-parse", "HEAD"))] * measured)
    page = page_of(source, "concepts", file, "conceptual", "{run.origin.machine: run for run in runs}")
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))
    assert ("Not measured yet" in words) == (not measured)
    for before, number, after in (
        ("The slow one takes", "0.500 ×", "as long"),
        ("which is", "50,000 GB/s", "."),
        ("A load from L1 takes", "100 ns", ", and"),
        ("With one block it takes", "0.625 ×", "as long"),
    ):
        assert re.search(
            rf"{before} {re.escape(number if measured else '(not measured yet)')} ?{re.escape(after)}", words
        )
    ladder = next(svg for svg in re.findall(r"<svg.*?</svg>", page, re.S) if "latency" in svg)
    assert ("90.0 ns" in ladder) == measured and ladder.count("not measured yet") == 6 * (not measured)


def test_a_kernel_that_nobody_measures_is_an_error(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    stored = importlib.import_module("stored")
    for words in ("coalescing", "occupancy_3", "occupancy_1 share", "memories_l2_read rate rate"):
        with pytest.raises(stored.NotStored, match=r"names nothing that benchmarks/concepts.py measures"):
            stored.concept(words)
