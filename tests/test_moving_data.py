"""docs/transfers and benchmarks/transfers.py: the scripts run on a GPU, and everywhere on a CuPy that is as late as
CUDA allows (tests/late); traces become bars, and a line of the store is read or refused. The lines here are made up."""

import copy
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_door import OBEYED, dumped, mutants
from test_moving import run

from gpu_cookbook import catalogue, machine
from gpu_cookbook.store import door, transfers

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "transfers.py"
SCRIPTS = sorted((ROOT / "docs" / "transfers").glob("*.py"))
LATE = Path(__file__).parent / "late"

spec = importlib.util.spec_from_file_location("benchmark_of_transfers", SCRIPT)
benchmark = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = benchmark  # its dataclasses look themselves up there
spec.loader.exec_module(benchmark)


# ---- The scripts.


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, id=script.stem, marks=[pytest.mark.skip(reason=reason)] if reason else [])
        for script in SCRIPTS
        for reason in [machine.obstacle(catalogue.read(script))]
    ],
)
def test_script(script, tmp_path):
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1, done.stdout


def late(text, tmp_path, seed, gpus=2):
    """A script's run with the late CuPy; with small pieces, so that there are many of them."""
    for large, small in (("2**22", "2**12"), ("2**21", "2**11"), ("000_011", "0_011")):
        text = text.replace(large, small)
    path = tmp_path / "script.py"
    path.write_text(text, encoding="utf-8")
    about = os.environ | {"PYTHONPATH": str(LATE), "SEED": str(seed), "GPUS": str(gpus)}
    return subprocess.run([sys.executable, path], env=about, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_waits_for_all_that_it_uses(script, tmp_path):
    for seed in range(3):
        done = late(script.read_text(encoding="utf-8"), tmp_path, seed)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("elements, all right\n")


def test_one_gpu_is_enough_to_be_told_so(tmp_path):
    script = ROOT / "docs" / "transfers" / "between_gpus.py"
    assert late(script.read_text(encoding="utf-8"), tmp_path, 0, gpus=1).stdout == "one GPU: nothing to copy to\n"


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("page_locked", ".get(out=out)", ".get(out=out, blocking=False)"),
        ("asynchronous", "    stream.synchronize()\n    np.testing", "    np.testing"),
        ("asynchronous", "a * b  # this thread", "a * b\n    a[:] = 1  # this thread"),
        ("in_pieces", "        stream.synchronize()\n", ""),
        ("both_ways", "    for stream in streams:\n        stream.synchronize()\n", ""),
        ("both_ways", "rooms[number % 2]", "rooms[0]"),
        ("both_ways", "        with stream:\n            rooms", "        if stream:\n            rooms"),
        ("zero_copy", "    cp.cuda.get_current_stream().synchronize()\n", ""),
        ("zero_copy", "return cupyx.empty_pinned(n, np.float32)", "return np.empty(n, np.float32)"),
        ("staged", "            stream.synchronize()\n", ""),
        ("staged", "lanes[number]", "lanes[0]"),
        ("registered", "            stream.synchronize()\n", "            pass\n"),
        ("registered", "        cp.cuda.runtime.hostUnregister(x.ctypes.data)\n", ""),
        ("unified", "    cp.cuda.get_current_stream().synchronize()\n", ""),
        ("unified_prefetched", "    stream.synchronize()\n", ""),
        ("between_gpus", "    cp.copyto(out, x)\n    cp.cuda.get_current_stream().synchronize()\n", "    pass\n"),
    ],
)
def test_a_script_that_does_not_wait_is_found_out(name, right, wrong, tmp_path):
    text = (ROOT / "docs" / "transfers" / f"{name}.py").read_text(encoding="utf-8")
    assert text.count(right) == 1
    changed = text.replace(right, wrong)
    assert any(late(changed, tmp_path, seed).returncode for seed in range(5))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_form(script):
    text = script.read_text(encoding="utf-8")
    assert "np.testing.assert_array_equal" in text
    assert text.strip().splitlines()[-1].lstrip().startswith("print(")
    assert not catalogue.read(script).fault


def test_the_benchmark_has_every_script():
    assert {*benchmark.STEPS, "between_gpus"} == {script.stem for script in SCRIPTS}
    for name, kind in benchmark.STEPS.items():
        text = (benchmark.SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
        assert ("def array(n):" in text) == (kind != benchmark.ORDINARY)


# ---- The benchmark.


def test_without_a_gpu_it_says_so(tmp_path):
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, SCRIPT], cwd=tmp_path, capture_output=True, text=True, env=hidden)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "These are transfers to an NVIDIA GPU, but this machine has none.\n"


def event(kind, name, start, duration, thread=7):
    return {"ph": "X", "cat": kind, "name": name, "ts": 1000 + start, "dur": duration, "tid": thread}


def test_bars_are_those_of_a_trace():
    main, other = benchmark.aliases(), (70_001, 2**40 + 5, 5, 5 - 2**32, 2**32 - 5)
    events = [
        event("user_annotation", benchmark.MARK, 0, 100, thread=main[0]),
        event("gpu_user_annotation", benchmark.MARK, 3, 80),
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 10, 20),
        event("kernel", "cupy_multiply__float32_float32_float32", 30, 5),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 35, 10),
        event("gpu_memcpy", "Memcpy PtoP (Device -> Device)", 46, 1),
        event("cuda_runtime", "cudaMemcpyAsync", 4, 2, thread=main[2]),
        event("cuda_runtime", "cudaStreamSynchronize", 7, 95, thread=main[2]),
        event("cuda_driver", "cuLaunchKernel", 8, 1, thread=5),
        event("cuda_runtime", "cudaDeviceSynchronize", 101, 5),  # the profiler's own, after the call
        {"ph": "M", "name": "process_name"},
    ]
    bars, took, zero = benchmark.bars_of(events, [(main, 1001.5, 2), (other, 1009, 3)])
    assert (took, zero) == (100, 1000)
    assert sorted(bars) == [
        ("down", 35, 10),
        ("host 1", 1.5, 2),
        ("host 1", 4, 2),
        ("host 2", 8, 1),
        ("host 2", 9, 3),
        ("kernel", 30, 5),
        ("peer", 46, 1),
        ("up", 10, 20),
        ("wait 1", 7, 93),
    ]


def test_only_the_shortest_gaps_are_closed():
    bars = [("up", start, 1.0) for start in (0, 2, 3.5, 9)] + [("kernel", start, 0.1) for start in (0, 0.2, 0.4)]
    assert benchmark.merged(bars, 7) == (sorted(bars), 0)
    found, closed = benchmark.merged(bars, 6)
    assert closed == 0.5
    assert [bar for bar in found if bar[0] == "up"] == [("up", 0, 1), ("up", 2, 2.5), ("up", 9, 1)]
    found, closed = benchmark.merged(bars, 1)  # never a gap between kernels
    assert closed == 4.5 and [bar[0] for bar in found] == 3 * ["kernel"] + ["up"]
    assert benchmark.merged([("up", 0, 5), ("up", 1, 2), ("up", 4, 3)])[0] == [("up", 0, 7)]


# ---- The store.


def measured(name, milliseconds, bars=()):
    time_s = milliseconds / 1e3
    step = {"step": name, "time_s": time_s, "q1_s": 0.99 * time_s, "q3_s": 1.01 * time_s, "samples": 15}
    return step | ({"traced_s": 1.1 * time_s, "closed_us": 3.5, "bars": bars} if bars else {})


def made_up(machine_name="made-up", date="2026-11-23"):
    """A line with times that nobody measured."""
    whole = [["host 1", 5, 9], ["wait 1", 20, 49000], ["up", 30, 40000], ["kernel", 40030, 500], ["down", 41000, 9000]]
    return {
        "machine": machine_name,
        "device": "A GPU that is made up",
        "driver": "1.2.3",
        "processor": "A processor, 16 cores",
        "versions": "Python 3.12.3",
        "date": date,
        "commit": "0" * 40,
        "elements": 2**28,
        "steps": [
            *(measured(name, 20 + number) for number, name in enumerate(("limit_up", "limit_down", "limit_both"))),
            measured("numpy", 300),
            measured("torch_cpu", 43),
            *(measured(name, 300 - 20 * n, whole) for n, name in enumerate((*benchmark.STEPS, *benchmark.RECIPES))),
            {"step": "gpu_to_gpu", "reason": "there is only one GPU"},
            {"step": "gpu_to_gpu_through_host", "reason": "there is only one GPU"},
        ],
    }


def write(folder, *lines):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / transfers.FILE).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder


def test_a_line_is_read_as_it_was_written(tmp_path):
    line = made_up()
    found, complaints = transfers.kept(write(tmp_path, made_up(date="2026-11-20"), line, made_up("other")))
    assert complaints == [] and list(found) == ["made-up", "other"]
    kept = found["made-up"]
    assert kept.origin.date == "2026-11-23" and kept.elements == 2**28
    assert [transfers.record(step) for step in kept.steps.values()] == [
        {key: [tuple(bar) for bar in value] if key == "bars" else value for key, value in step.items()}
        | ({"bars": tuple(map(tuple, step["bars"]))} if "bars" in step else {})
        for step in line["steps"]
    ]
    assert kept.seconds("numpy") == 0.3 and kept.seconds("gpu_to_gpu") is None and kept.seconds("nosuch") is None


def test_a_line_in_a_machine_s_own_folder_counts(tmp_path):
    write(tmp_path, made_up("mine", "2026-11-20"))
    write(tmp_path / "mine", made_up("mine", "2026-11-22"))
    write(tmp_path / "yours", made_up("mine", "2026-11-24"))
    found, (complaint,) = transfers.kept(tmp_path)
    assert found["mine"].origin.date == "2026-11-22"
    assert complaint.endswith("line 1: belongs to mine, not to yours")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda steps: steps[5].pop("q1_s"), '"q1_s" is a required property'),
        (lambda steps: steps[5].update(q1_s=1.0), "the quartiles of pageable do not enclose its median"),
        (lambda steps: steps[5].pop("traced_s"), '"traced_s" is a required property'),
        (lambda steps: steps[5]["bars"].append(["up", 400_000, 1]), "a bar of pageable ends after its call"),
        (lambda steps: steps[5]["bars"].append(["sideways", 1, 1]), "does not match"),
        (lambda steps: steps[5]["bars"].append(["up", 1]), "has less than 3 items"),
        (lambda steps: steps.append(steps[0]), "has a step twice"),
    ],
)
def test_what_makes_no_sense_costs_its_line(change, words, tmp_path):
    line = copy.deepcopy(made_up())
    change(line["steps"])
    found, (complaint,) = transfers.kept(write(tmp_path, line, made_up("other")))
    assert list(found) == ["other"]
    assert f"{transfers.FILE}, line 1: " in complaint and words in complaint


def test_a_line_that_was_changed_anywhere_costs_at_most_itself(tmp_path):
    refused = 0
    for at, value, changed in mutants(made_up(), 300):
        (tmp_path / transfers.FILE).write_text(f"{dumped(changed)}\n{json.dumps(made_up('good'))}\n")
        found, complaints = transfers.kept(tmp_path)
        assert "good" in found and len(complaints) <= 1, (at, value)
        assert not any(OBEYED.search(complaint) for complaint in complaints)
        refused += len(complaints)
    assert refused > 100


def test_what_is_stored_can_be_read():
    found, complaints = transfers.kept(ROOT / "benchmarks" / "results")
    assert complaints == []
    for line in found.values():
        assert door.fit(json.dumps({"machine": line.origin.machine}).encode(), "machine")
