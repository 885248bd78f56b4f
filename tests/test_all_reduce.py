"""docs/all-reduce and benchmarks/all_reduce.py: the scripts run on three GPUs that are the host's memory
(several_gpus/cupy), JAX's on three CPU devices; what an all-reduce takes is measured, stored, read and drawn. The lines
here are made up."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from conftest import committed
from lines import loaded

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import all_reduce as shown
from gpu_cookbook.render.all_reduce import REDUCED
from gpu_cookbook.results import Timing
from gpu_cookbook.run import all_reduce, measure, runner
from gpu_cookbook.store import commits, transfers
from gpu_cookbook.store.transfers import Step

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "all-reduce"
SCRIPTS = sorted(path.stem.removeprefix("with_") for path in FOLDER.glob("with_*.py"))
SEVERAL = Path(__file__).with_name("several_gpus")
HERE = {  # the scripts that can run as they are. PyTorch's needs NCCL; Ray's actors wait for GPUs.
    **dict.fromkeys(("copies", "cupy", "cupy_kernel", "dask", "multiprocessing"), {}),
    "jax": {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=3"},
}
COUNTS = (1, 6, 1_003)  # elements: fewer than GPUs, and no whole number of vectors

benchmark = loaded(ROOT / "benchmarks" / "all_reduce.py")


# ---- The scripts.


@pytest.fixture
def three(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SEVERAL), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("GPUS_HERE", "3")
    return monkeypatch


def measured(path, gpus=3):
    """{elements: "right", or what is wrong} and how it ended, as the benchmark's process says."""
    job = {"action": "all_reduce", "path": str(path), "gpus": gpus, "counts": COUNTS}
    found, ending = {}, None
    with runner.Process(job) as process:
        for message in process.messages(60, 60):
            match message:
                case {"all_reduce": (count, outcome)}:
                    found[count] = "right" if isinstance(outcome, Timing) else outcome
                case {"ending": ending}:
                    pass
    return found, ending


@pytest.mark.parametrize("name", HERE)
@pytest.mark.slow
def test_a_script_gives_every_gpu_the_sum(name, three):
    if name in ("dask", "jax"):
        package = "distributed" if name == "dask" else name
        pytest.importorskip(package, reason=f"{package} is not installed")
    for variable, value in HERE[name].items():
        three.setenv(variable, value)
    assert measured(FOLDER / f"with_{name}.py") == (dict.fromkeys(COUNTS, "right"), None)


@pytest.mark.parametrize("name", ["copies", "cupy", "cupy_kernel", "multiprocessing"])
def test_a_script_runs_by_itself(name, three):
    command = [sys.executable, FOLDER / f"with_{name}.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and " 3 GPUs" in done.stdout and done.stdout.endswith("all right\n"), done.stderr


NOT_WAITED = "        cp.cuda.Device(gpu).synchronize()\n    return arrays_and"
WRONG = {  # a script, what is in it, what is there instead, and what is then said
    "no wait for NCCL": ("cupy", "        stream.synchronize()\n", "        pass\n", "array of GPU 0 is wrong"),
    "no group": ("cupy", "    nccl.groupStart()", "    pass", "outside of a group"),
    "no wait for the kernel": (
        "cupy_kernel",
        NOT_WAITED,
        "        pass\n    return arrays_and",
        "wrong|SIG",
    ),
    "no rest": ("cupy_kernel", "gpu == GPUS - 1 else", "gpu == GPUS else", "array of GPU 0 is wrong"),
    "an array left out": ("sum_part.cu", "int k = 1; k < count", "int k = 2; k < count", "array of GPU 0 is wrong"),
    "no peer access": ("cupy_kernel", "cp.cuda.runtime.deviceEnablePeerAccess(peer)", "pass", "memory of another GPU"),
    "no wait for copies": ("copies", "        stream.synchronize()\n", "        pass\n", "array of GPU 0 is wrong"),
    "nothing written": ("multiprocessing", 'ask(pipes, "write")', 'ask(pipes, "nothing")', "array of GPU 0 is wrong"),
    "one missing": (
        "multiprocessing",
        "{*range(GPUS)} - {gpu}",
        "{*range(1, GPUS)} - {gpu}",
        "array of GPU 1 is wrong",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_script_that_is_wrong_is_found_out(name, three, tmp_path):
    script, right, wrong, says = WRONG[name]
    path = changed(script, right, wrong, tmp_path)
    found, ending = measured(path)
    assert re.search(says, f"{found} {ending}")


def changed(name, right, wrong, tmp_path):
    """A copy of the script with something else in it; of a kernel's file, the script that launches it."""
    folder = shutil.copytree(FOLDER, tmp_path / "all-reduce")
    path = folder / (name if name.endswith(".cu") else f"with_{name}.py")
    text = path.read_text(encoding="utf-8")
    assert right in text
    path.write_text(text.replace(right, wrong, 1), encoding="utf-8")
    return folder / "with_cupy_kernel.py" if name.endswith(".cu") else path


@pytest.mark.slow
def test_the_processes_of_pytorch_give_every_one_the_sum(tmp_path):
    """On the CPU, where Gloo stands for NCCL."""
    pytest.importorskip("torch", reason="torch is not installed")
    text = (FOLDER / "with_torch.py").read_text(encoding="utf-8")
    for right, wrong in (
        ("GPUS = torch.cuda.device_count()", "GPUS = 2"),
        ("    torch.cuda.set_device(gpu)\n", ""),
        ("            torch.cuda.synchronize()\n", ""),
        ('device="cuda"', 'device="cpu"'),
        ('"nccl"', '"gloo"'),
        ("process.join(10)", "process.join(20)"),  # on a busy machine
        (', device_id=torch.device("cuda", gpu)', ""),
    ):
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    path = tmp_path / "with_torch.py"
    path.write_text(text, encoding="utf-8")
    assert measured(path, 2) == (dict.fromkeys(COUNTS, "right"), None)


def test_gpus_that_cannot_use_each_others_memory_are_refused(three):
    three.setenv("NO_PEERS", "1")
    found, ending = measured(FOLDER / "with_cupy_kernel.py")
    assert found == {} and "GPU 0 cannot use the memory of GPU 1: take NCCL" in ending


def test_a_process_that_ends_is_not_waited_for(three, tmp_path):
    path = changed("multiprocessing", "rows[gpu] = x.get()", "rows[gpu] = [1 / (gpu - 1)]", tmp_path)
    found, _ = measured(path)
    assert re.search("EOFError|BrokenPipeError", found[COUNTS[0]])


# ---- What is measured.


def made_up(gpus, all_reduce=None, download=iter):
    def on_gpus(_, count):
        return [np.resize(np.arange(1_000, dtype=np.float32), count) + gpu for gpu in range(gpus)]

    add_up = all_reduce or (lambda arrays: [sum(arrays) for _ in arrays])
    return SimpleNamespace(engine=contextlib.nullcontext, on_gpus=on_gpus, all_reduce=add_up, download=download)


def test_every_gpu_is_looked_at(monkeypatch):
    monkeypatch.setattr(all_reduce, "BUDGET", 0.01)

    def outcome(module, gpus=2):
        ((count, found),) = all_reduce.outcomes(module, gpus, [2_000])
        assert count == 2_000
        return found if isinstance(found, str) else found.count

    assert all_reduce.LEAST <= outcome(made_up(2)) <= all_reduce.MOST
    assert outcome(made_up(2), gpus=3) == "the array of GPU 0 is wrong"
    assert outcome(made_up(3, download=lambda arrays: iter(arrays[:2])), 3) == "there are arrays on 2 GPUs, not 3"
    assert outcome(made_up(2, lambda arrays: [arrays[0] + arrays[1], arrays[1]])) == "the array of GPU 1 is wrong"

    def refuse(arrays):
        raise MemoryError("no room")

    assert "no room" in outcome(made_up(2, refuse))


def test_calls_are_counted_until_the_budget_is_spent(monkeypatch):
    now = iter(range(10_000))
    monkeypatch.setattr(measure, "clock", lambda: next(now))
    ((_, found),) = all_reduce.outcomes(made_up(2), 2, [10])
    assert (found.median, found.count) == (1, all_reduce.LEAST)


# ---- The benchmark.


def timing(seconds):
    return Timing(seconds, seconds, seconds, 5)


def steps(gpus, copies=4e-3, torch=6e-3):
    """Those of three ways on so many GPUs; the second was measured with the largest arrays only."""
    return [
        *(Step(shown.key("copies", gpus, count), timing(copies * count / REDUCED[-1])) for count in REDUCED),
        Step(shown.key("torch", gpus, REDUCED[0]), reason="the array of GPU 1 is wrong"),
        Step(shown.key("torch", gpus, REDUCED[-1]), timing(torch)),
        Step(shown.key("ray", gpus), reason="ray not installed"),
    ]


@pytest.fixture
def saving(clone, monkeypatch):
    """The benchmark in a clone, with three GPUs and made-up times. Returns the folder of the results."""
    gpus = [machine.Gpu(number, "Made up", 2**36, (9, 0)) for number in range(3)]
    monkeypatch.setattr(machine, "gpus", lambda: gpus)
    monkeypatch.setattr(machine, "nvidia", lambda: SimpleNamespace(gpus=gpus, driver="1.2"))
    monkeypatch.setattr(benchmark, "ROOT", clone)
    results = clone / "benchmarks" / "results"
    monkeypatch.setattr(benchmark, "FILE", results / transfers.ALL_REDUCES)
    return results


def of(name):
    return lambda step: transfers.ALL_REDUCE.fullmatch(step.name)["script"] == name


def test_it_is_stored_for_each_number_of_gpus(saving, monkeypatch, capsys):
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "0")
    # NCCL's may be installed with PyTorch. The module of Python itself stays: what it says is kept for other tests.
    monkeypatch.setattr(benchmark, "metadata", SimpleNamespace(distributions=lambda: []))
    monkeypatch.setattr(benchmark, "measured", lambda name, gpus: iter(filter(of(name), steps(len(gpus)))))
    benchmark.main(save="made-up")
    assert "An all-reduce on 3 GPUs" in capsys.readouterr().out
    lines = (saving / transfers.ALL_REDUCES).read_text().splitlines()[-2:]
    assert [{step["step"].split("_")[-2] for step in json.loads(line)["steps"][:1]} for line in lines] == [{"3"}, {"2"}]
    runs, complaints = transfers.every(saving, transfers.ALL_REDUCES)
    mine = [run for run in runs if run.origin.machine == "made-up"]
    assert not complaints and len(mine) == 2
    ways = transfers.by_way(mine)
    assert {"all_reduce_copies_3", "all_reduce_copies_2", "all_reduce_torch_3", "all_reduce_ray_2"} < {*ways}
    assert ways["all_reduce_copies_3"].versions == machine.versions(("cupy", "torch")) + ", NCCL_NVLS_ENABLE=0"
    assert ways["all_reduce_copies_3"].elements == REDUCED[-1]


def test_ctrl_c_costs_what_is_stored_of_one_number_of_gpus(saving, monkeypatch, capsys):
    def measured(name, gpus):
        yield from filter(of(name), steps(len(gpus)))
        if name == "torch" and len(gpus) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(benchmark, "measured", measured)
    with pytest.raises(typer.Exit) as ended:
        benchmark.main(save="made-up")
    out, err = capsys.readouterr()
    assert ended.value.exit_code == 130 and err.endswith("Stopped early: this was not stored.\n")
    assert "An all-reduce on 3 GPUs" in out and "An all-reduce on 2 GPUs" in out
    (line,) = [
        line for line in map(json.loads, (saving / transfers.ALL_REDUCES).open()) if line["machine"] == "made-up"
    ]
    assert {step["step"] for step in line["steps"]} == {step.name for step in steps(3)}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"names": ["tourch"]}, "Did you mean torch?"),
    ],
)
def test_bad_arguments_are_refused(arguments, says, saving, capsys):
    with pytest.raises(typer.Exit):
        benchmark.main(**arguments)
    assert says in capsys.readouterr().err


def test_one_gpu_is_too_few(monkeypatch, capsys):
    monkeypatch.setattr(machine, "gpus", lambda: [SimpleNamespace(index=0)])
    with pytest.raises(typer.Exit):
        benchmark.main()
    assert "takes at least two NVIDIA GPUs, and this machine has 1" in " ".join(capsys.readouterr().err.split())


def test_what_is_not_installed_says_so(monkeypatch):
    monkeypatch.setattr(machine, "obstacle", lambda script: f"{script.framework} not installed")
    assert [*benchmark.measured("jax", [0, 1])] == [Step("all_reduce_jax_2", reason="JAX not installed")]


# ---- What is shown.


def kept(numbers, **times):
    run = SimpleNamespace
    ways = {}
    for gpus in numbers:
        for step in steps(gpus, **times):
            way = transfers.ALL_REDUCE.fullmatch(step.name)["way"]
            ways.setdefault(way, {})[step.name] = step
    about = {"origin": "made-up, 2026-01-01", "device": "Made up", "driver": "1", "processor": "P", "versions": "V"}
    return {way: run(steps=mine, **about) for way, mine in ways.items()}


def test_bandwidths_are_those_of_nccls_tests():
    found = {step.name: step for step in steps(4)}
    size = 4 * REDUCED[-1]
    assert shown.bandwidth(found, "copies", 4) == pytest.approx(size / 4e-3)
    assert shown.bandwidth(found, "torch", 4) == pytest.approx(2 * 3 / 4 * size / 6e-3)
    assert shown.bandwidth(found, "ray", 4) is None and shown.bandwidth(found, "torch", 2) is None


def test_the_table_has_times_bandwidths_shares_and_reasons():
    table = shown.table({step.name: step for step in steps(4)}, 4, "T")
    rows = {row[0].text: [entry.text for entry in row[1:]] for row in table.rows}
    assert rows["copies from GPU to GPU"][2:] == ["4.00 ms", "268 GB/s", "1.00", ""]
    assert rows["torch.distributed, NCCL"][2:] == ["6.00 ms", "268 GB/s", "1.00", "4.1 kB: the array of GPU 1 is wrong"]
    assert rows["Ray's actors, NCCL"] == ["–", "–", "–", "–", "–", "ray not installed"]


def test_a_time_that_the_copies_cannot_reach_is_refused():
    fast = {step.name: step for step in steps(4, copies=4e-3, torch=2e-3)}  # 3 ms are needed if the switch adds up
    table = shown.table(fast, 4, "T")
    (row,) = [[entry.text for entry in row] for row in table.rows if row[0].text == "torch.distributed, NCCL"]
    assert row[3:6] == ["–"] * 3 and "1.07 GB: 2.00 ms is less than the copies' bandwidth allows" in row[-1]
    assert shown.bandwidth(shown.judged({step.name: step for step in steps(4, torch=3.1e-3)}, 4), "torch", 4)


def test_charts_are_of_the_numbers_whose_copies_were_measured():
    charts = shown.all_reduces(kept([2, 4]))
    assert [chart.table.title for chart in charts] == [
        f"An all-reduce of 1.07 GB on each of {gpus} GPUs: Made up" for gpus in (4, 2)
    ]
    assert "torch.distributed, NCCL 268 GB/s, 1.00 of the copies" in charts[0].text
    assert any("made-up, 2026-01-01; driver 1; P; V" in note.text for note in charts[0].table.notes)
    without = {way: run for way, run in kept([4]).items() if "copies" not in way}
    assert shown.all_reduces(without) == []


def test_every_script_is_on_the_page_and_in_the_table():
    page = (ROOT / "docs" / "all-reduce.md").read_text(encoding="utf-8")
    on_page = {*re.findall(r"^```\{literalinclude\} all-reduce/with_(.+)\.py$", page, re.M)}
    assert {*SCRIPTS} == on_page == {*shown.WAYS}


def test_a_step_is_stale_once_its_script_has_changed(clone):
    assert transfers.sources("all_reduce_cupy_kernel_4_1024") == {
        "docs/all-reduce/with_cupy_kernel.py",
        "docs/all-reduce/sum_part.cu",
    }
    for name in shown.WAYS:
        assert all((ROOT / path).exists() for path in transfers.sources(shown.key(name, 4, REDUCED[0])))
    path = clone / "docs" / "all-reduce" / "with_jax.py"
    head = committed(path, "first = 1\n")
    path.write_text("second = 2\n")
    assert commits.changed_since(clone, head) == {"docs/all-reduce/with_jax.py"}


def test_scripts_say_what_a_recipe_says():
    for name in SCRIPTS:
        script = catalogue.read(FOLDER / f"with_{name}.py")
        assert script.runs_on == ("NVIDIA GPU or CPU" if name == "jax" else "every NVIDIA GPU") and script.install
