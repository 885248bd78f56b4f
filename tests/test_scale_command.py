"""``gpu-cookbook scale`` as a user starts it: what it says, saves and refuses."""

import csv
import io
import json
import re
import socket
import subprocess
import time

import pytest
from cloning import rewrite
from conftest import HANG, git, invoked
from scaling import HERE, Run, cookbook, keep, plain, row, rows_of, spread_of_pixels

from gpu_cookbook import cli, machine, terminal
from gpu_cookbook.run import scale
from gpu_cookbook.scaling import amount
from gpu_cookbook.store import scaling as store

# ---- Drawings.


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("a.xyz", "a.xyz: its name must end in .png, .svg or .pdf"),
        ("a.eps", "a.eps: its name must end in .png, .svg or .pdf"),
        ("a.png", "There is nothing to draw: a line needs the same recipe on at least two numbers of workers. Give"),
        ("no/a.png", "no/a.png: No such file or directory. Name a"),
        ("/proc/a.png", "Cannot write /proc/a.png: "),
    ],
)
def test_a_drawing_that_cannot_be_is_said_before_anything_is_measured(file, words, tmp_path):
    out, err = invoked("scale", "-t", "numpy", "--plot", str(tmp_path / file), code=2)
    assert words in err and out == "" and not any(tmp_path.iterdir())


# ---- What is said at the end.


def test_the_totals_tell_what_was_skipped_from_what_was_measured(monkeypatch):
    skipped = row(status="skipped", mode=None, reason="no GPU")
    monkeypatch.setattr(scale, "prepare", lambda *_: ([], [skipped, skipped]))
    monkeypatch.setattr(scale, "measure_all", lambda *_: ([row("numpy")], KeyboardInterrupt()))
    _, err = invoked("scale", code=130)
    assert err.endswith("3 rows: 1 ok, 0 failed, 2 skipped; stopped early\n")


# ---- What is kept.


SAVING = ("-t", "numpy", "--size", "500", "--save", "--machine", "m")


def test_saving_outside_of_a_clone_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, err = invoked("scale", *SAVING, code=2)
    assert "run this command inside a clone" in err


def test_saving_what_is_not_committed_is_refused(clone):
    rewrite(clone / "recipes/multiply/with_numpy.py", "# other\n")
    _, err = invoked("scale", *SAVING, code=2)
    assert "commit your changes in recipes, kernels, gpu_cookbook first" in err


def test_saving_under_a_wrong_name_is_refused(clone):
    _, err = invoked("scale", *SAVING[:-1], "../evil", code=2)
    assert "'../evil' is no name of a machine" in err


def test_saving_under_the_name_of_another_machine_is_refused(clone):
    folder = clone / "benchmarks" / "results" / "m"
    folder.mkdir(parents=True)
    (folder / "machine.json").write_text('{"machine": "m", "gpu": "A GPU that is made up", "version": 1}')
    _, err = invoked("scale", *SAVING, code=2)
    assert "m has the results of another machine, with A GPU that is made up; this one has " in err


@pytest.mark.slow
def test_saving_adds_a_line_that_is_shown_again_in_every_format(clone):
    out, _ = cookbook(*SAVING, "--format", "json")
    (line,) = (clone / "benchmarks/results" / store.FILE).read_text().splitlines()
    kept = json.loads(line)
    assert (kept["machine"], kept["processor"], kept["gpus"]) == ("m", machine.processor(), [])
    assert kept["versions"].startswith("Python ") and "numpy " in kept["versions"]
    assert time.strptime(kept["date"], "%Y-%m-%d")
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    assert kept["commit"] == head
    (measured,) = rows_of(out)
    (raw,) = kept["rows"]  # what follows from other rows is not kept
    assert raw.items() <= measured.items()
    assert measured.keys() - raw.keys() == {"table", "speedup_x", "efficiency", "base_workers", "error"}
    shown = {form: cookbook("--machine", "m", "--format", form)[0] for form in terminal.TableFormat}
    assert [each["time_s"] for each in rows_of(shown["json"])] == [measured["time_s"]]
    assert [each["time_s"] for each in csv.DictReader(io.StringIO(shown["csv"]))] == [str(measured["time_s"])]
    for form in ("table", "markdown", "html"):
        assert "numpy" in shown[form] and f"500². m, {head[:8]}" in shown[form]


@pytest.mark.slow
def test_a_machine_has_the_name_of_its_host_if_none_is_given(clone):
    cookbook(*SAVING[:-2])
    assert json.loads((clone / "benchmarks/results" / store.FILE).read_text())["machine"] == socket.gethostname()


def test_a_place_that_cannot_be_written_is_said_before_anything_is_measured(clone):
    (clone / "benchmarks/results" / store.FILE).mkdir(parents=True)
    out, err = invoked("scale", *SAVING, "--format", "json", code=2)
    assert out == "" and re.search(r"Results cannot be stored in .*/benchmarks/results/m: \[Errno 21\] Is a dir", err)


def test_rows_that_cannot_be_kept_in_the_end_are_shown_all_the_same(clone, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "keep", full)
    out, err = invoked("scale", *SAVING, "--format", "json", code=1)
    assert len(rows_of(out)) == 1
    assert "The rows were not saved: [Errno 28] No space left on device" in err


def test_rows_are_kept_before_they_are_shown(clone):
    with Run(*SAVING) as run:
        run.popen.stdout.close()
        run.popen.wait(HANG)
    (line,), _ = store.kept(clone / "benchmarks/results")
    assert [each.technique for each in line.rows] == ["numpy"]


def test_an_unknown_stored_name_is_said(clone):
    keep(clone / "benchmarks/results", "m", [row()], git(clone, "rev-parse", "HEAD"))
    assert invoked("scale", "--machine", "n", code=2)[1] == (
        "No rows are stored for 'n'. There are: m. To store some: gpu-cookbook scale --save --machine n\n"
    )


def test_what_is_stored_can_be_drawn(clone):
    keep(clone / "benchmarks/results", "m", [row(), row(workers=2)], git(clone, "rev-parse", "HEAD"))
    invoked("scale", "--machine", "m", "--plot", "a.png")
    assert spread_of_pixels("a.png") > 0.05


@pytest.mark.parametrize("arguments", [("--machine", "m"), ()], ids=["stored", "measured"])
def test_a_disk_that_gets_full_is_said_of_the_drawing_and_the_rows_are_shown(arguments, clone, monkeypatch):
    keep(clone / "benchmarks/results", "m", [row(), row(workers=2)], git(clone, "rev-parse", "HEAD"))
    (clone / "full.png").symlink_to("/dev/full")
    monkeypatch.setattr(scale, "prepare", lambda *_: ([], []))
    monkeypatch.setattr(scale, "measure_all", lambda *_: ([row(), row(workers=2)], None))
    out, err = invoked("scale", *arguments, "--plot", "full.png", code=1)
    assert " ray " in out and "Cannot write full.png: No space left on device. Name a file that you can write" in err


def test_a_chunk_is_written_as_a_size_is():
    assert [cli.side(word) for word in ("1000", "1_000", "1e3", "2**10")] == [1_000, 1_000, 1_000, 1_024]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device"), "Cannot go on: [Errno 28] No space left on device\n"),
        (OSError(32, ""), ""),
    ],
    ids=["full disk", "closed pipe"],
)
def test_of_stored_rows_that_cannot_be_written_it_says_what_other_commands_say(error, said, clone, monkeypatch):
    def refused(*_):
        raise error

    keep(clone / "benchmarks/results", "m", [row()], git(clone, "rev-parse", "HEAD"))
    monkeypatch.setattr(cli, "write_tables", refused)
    assert invoked("scale", "--machine", "m", code=1)[1] == said


def test_what_matplotlib_cannot_draw_is_said_in_a_line(clone, monkeypatch):
    from matplotlib.figure import Figure

    def broken(*_, **__):
        raise RuntimeError("no such font")

    monkeypatch.setattr(Figure, "savefig", broken)
    keep(clone / "benchmarks/results", "m", [row(), row(workers=2)], git(clone, "rev-parse", "HEAD"))
    _, err = invoked("scale", "--machine", "m", "--plot", "a.png", code=1)
    assert err == "Cannot draw into a.png: no such font\n"


# ---- Bad input.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cores", str(HERE + 1)], f"--cores {HERE + 1}: only {amount(HERE, 'core')} available"),
        (["--cores", "x"], "not 'x'"),
        (["--cores", "-1"], "not '-1'"),
        (["--cores", "²"], "not '²'"),
        (["--cores", "٢"], "not '٢'"),
        (["--cores", "9" * 5_000], "--cores 999"),
        (["--cores", ","], "not ''"),
        (["--cores", ""], "--cores expects numbers of cores, not ''."),
        (["--gpus", ""], "--gpus expects numbers of GPUs, not ''." if machine.gpus() else "no GPUs: omit --gpus"),
        (["--size", str(2**63 - 1)], "its array has more than 2**63 - 1 elements"),
        (["--size", ""], "'' is not a valid size"),
        (["--plot", ""], "Invalid value for '--plot': it is empty: name a file."),
        (["--machine", ""], "To store some: gpu-cookbook scale --save --machine NAME"),
        (["--machine", "../m"], "To store some: gpu-cookbook scale --save --machine NAME"),
        (["--machine", "m", "--cores", ""], "omit --cores, or add --save"),
        (["--scheduler", "127.0.0.1:1", "--cores", ""], "--cores, --gpus and --weak do not apply"),
        (["-t", "numpy", "--lane", "tuned"], "no recipe for random_subset_mean with numpy in the tuned lane."),
        (["-t", "dsak", "--lane", "tuned"], "Unknown technique or engine 'dsak'. Did you mean dask"),
        (
            ["--gpus", "99"],
            f"only {amount(len(machine.gpus()), 'GPU')} available"
            if machine.gpus()
            else "This machine has no GPUs: omit --gpus",
        ),
        (["--size", "abc"], "it is not written as an integer"),
        (["--size", "0"], "it is less than 1"),
        (["--chunk", "0"], "Invalid value for '--chunk': '0' is not a valid size: it is less than 1."),
        (["--chunk", "x"], "it is not written as an integer. Write a positive integer such as 1_000, 1e3 or"),
        (["-t", "dsak"], "Unknown technique or engine 'dsak'. Did you mean dask"),
        (["-t", "nosuch"], "Unknown technique or engine 'nosuch'. There are: cupy, "),
        (["-t", "pyopencl"], "pyopencl does not scale: it runs on one OpenCL device. There are: cupy, "),
        (["-t", "cupy_tuned"], "cupy_tuned does not scale: it runs on one GPU. Did you mean cupy_threads_tuned"),
        (["--scheduler", "127.0.0.1:1", "--weak"], "--cores, --gpus and --weak do not apply to a running cluster"),
        (["--lane", "fast"], "'fast' is not one of 'idiomatic', 'tuned'"),
        (["--format", "yaml"], "'yaml' is not one of"),
        (["--machine", "m", "-t", "ray", "--size", "5", "--weak"], "omit --technique, --size, --weak, or add --save"),
    ],
    ids=lambda value: " ".join(value)[:80] if isinstance(value, list) else "",
)
def test_bad_input_says_what_to_do(arguments, words):
    out, err = invoked("scale", *arguments, code=2)
    assert words in plain(err) and out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cores", "0", "--gpus", "0"], "There is nothing to run: give a number of --cores, of --gpus, or both."),
        (["--cores", "2", "--gpus", "0", "-t", "numpy"], "NumPy was asked for alone"),
        (["-t", "joblib", "--scheduler", "tcp://127.0.0.1:1"], "Only recipes of Dask (--scheduler)"),
        (["--scheduler", ""], "'' is not an address"),
        (["--scheduler", "nonsense"], "'nonsense' is not an address"),
        (["--scheduler", "tcp://127.0.0.1"], "'tcp://127.0.0.1' is not an address"),
        (["--scheduler", "tcp://127.0.0.1:99999"], "'tcp://127.0.0.1:99999' is not an address"),
        (["--scheduler", "tcp://[::1:8786"], "'tcp://[::1:8786' is not an address"),
        (["--scheduler", "tcp://a..b:80"], "'tcp://a..b:80' is not an address"),
        (["--address", "nonsense"], "'nonsense' is not an address"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_run_is_said(arguments, words):
    out, err = invoked("scale", *arguments, code=2)
    assert words in err and out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scheduler", "tcp://127.0.0.1:1"], "dask scheduler"),
        (
            ["--scheduler", "127.0.0.1:1"],
            "dask scheduler --host 127.0.0.1 --port 1 --dashboard-address 127.0.0.1:8787\n",
        ),
        (["--address", "127.0.0.1:1"], "or give another address: docs/scale-out/ray.md has the commands\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_where_nothing_answers_it_says_so(arguments, words):
    with Run(*arguments) as run:
        out, err = run.end(code=1)
        assert f"Nothing answers at {arguments[1]} (Connection refused)" in err and words in err and out == ""
        assert run.family() == []


@pytest.mark.slow
@pytest.mark.parametrize(("option", "framework"), [("--scheduler", "Dask"), ("--address", "Ray")])
def test_something_else_at_an_address_is_said(option, framework):
    with socket.create_server(("127.0.0.1", 0)) as server:  # takes connections, and never says anything
        at = f"127.0.0.1:{server.getsockname()[1]}"
        with Run(option, at) as run:
            _, err = run.end(code=1)
            assert run.family() == []
    assert err.startswith(f"What runs at {at} does not work as {framework}: ")
    assert f" {scale.JOIN_LIMIT} s" in err and err.count("\n") == 1


@pytest.mark.skipif(bool(machine.gpus()), reason="needs a machine without a GPU")
def test_what_cannot_run_here_is_named_with_its_reason():
    out, err = invoked("scale", "-t", "cupy", code=1)
    words = "cupy_threads_tuned: needs an NVIDIA GPU, but this machine has none."
    assert err == f"There is nothing to run. {words}\n" and out == ""
