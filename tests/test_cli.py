"""The commands, run as a user runs them."""

import csv
import importlib.metadata
import io
import json
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import typer.main
from conftest import HANG, UNPROBED, has_ended, in_opencl, interruptible, invoked, until
from rich.console import Console

from gpu_cookbook import catalogue, cli, machine, sizes, terminal
from gpu_cookbook.run import compare

COMMAND = str(Path(sys.executable).with_name("gpu-cookbook"))
FIGURES = ("resident_s", "transfer_s", "bandwidth_gb_per_s", "operations_g_per_s")


def cookbook(*arguments, code=0, command=(COMMAND,)):
    """(standard output, standard error) of a run that ends with ``code`` and shows nobody a traceback."""
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=2 * HANG)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout, done.stderr


def unprobed(*arguments, code=0):
    return cookbook(*arguments, code=code, command=UNPROBED)


def test_help_names_every_command():
    out, _ = cookbook("--help")
    for command in ("list", "doctor", "choose", "show", "check", "compare"):
        assert command in out
        assert "--help" in invoked(command, "--help")[0]


def test_one_thing_has_one_name_in_all_commands():
    """The same option has the same letter, and a format is never a flag of its own."""
    commands = typer.main.get_command(cli.app).commands
    found = {}
    for command in commands.values():
        for option in command.params:
            found.setdefault(max(option.opts, key=len), set()).add(tuple(sorted(option.opts)))
    assert {"--format", "--machine", "--output", "--size", "--technique"} <= found.keys()
    assert not [name for name, kinds in found.items() if len(kinds) > 1 and name.startswith("--")]
    assert not {f"--{form}" for form in terminal.TableFormat} & found.keys()


def test_list_has_every_recipe_with_its_reason():
    out, _ = cookbook("list", "--format", "json")
    rows = {(row["workload"], row["technique"]): row for row in json.loads(out)}
    assert set(rows) == {(recipe.workload, recipe.technique) for recipe in catalogue.recipes()}
    for recipe in catalogue.recipes():
        row = rows[recipe.workload, recipe.technique]
        assert row["reason"] == machine.obstacle(recipe)
        assert row["runs_here"] is (row["reason"] is None)
    table, _ = cookbook("list")
    assert all(recipe.technique in table for recipe in catalogue.recipes())


@pytest.mark.parametrize("lane", ["idiomatic", "tuned"])
def test_list_of_one_lane(lane):
    wanted = {(r.workload, r.technique) for r in catalogue.recipes() if r.lane == lane}
    out, _ = invoked("list", "--lane", lane, "--format", "json")
    assert {(row["workload"], row["technique"]) for row in json.loads(out)} == wanted
    assert {row["lane"] for row in json.loads(out)} == {lane}
    table, _ = invoked("list", "--lane", lane)
    *_, workload, technique = table.split()
    assert (workload, technique) in wanted
    assert f"{len(wanted)} recipes" in table


@pytest.mark.slow
def test_check_of_one_lane():
    """Which recipes a lane has: test_list_of_one_lane."""
    out, _ = cookbook("check", "increment", "-t", "numpy", "-t", "cupy_tuned", "--lane", "tuned", "--format", "json")
    assert {(row["technique"], row["lane"]) for row in json.loads(out)} == {("cupy_tuned", "tuned")}


@pytest.mark.slow
def test_compare_of_one_lane_has_numpy_too():
    tuned = next(each for each in catalogue.of_workload("increment") if each.lane == "tuned")
    arguments = ("increment", "-s", "1000", "-t", "torch", "-t", tuned.technique, "--lane", "tuned")
    out, _ = unprobed("compare", *arguments, "--format", "json", code=1 if machine.obstacle(tuned) else 0)
    assert [row["technique"] for row in json.loads(out)] == ["numpy", tuned.technique]


@pytest.mark.slow
def test_tables_of_one_lane():
    def stored(*arguments):
        out, _ = invoked("tables", "--format", "json", *arguments)
        rows = [row for table in json.loads(out) for row in table["rows"] if row["table"] == "measured"]
        return {(row["technique"], row["lane"]) for row in rows}

    every = stored()
    assert stored("--lane", "idiomatic") == {row for row in every if row[1] == "idiomatic"}
    assert stored("--lane", "tuned") == {row for row in every if row[1] == "tuned" or row[0] == "numpy"}


def test_list_counts_what_runs_here(monkeypatch):
    monkeypatch.setattr(machine, "obstacle", lambda recipe: None if recipe.technique == "numpy" else "no GPU")
    number = len(catalogue.of_workload("multiply"))
    assert f"{number} recipes, 1 of which runs here" in " ".join(invoked("list", "multiply")[0].split())
    number = len(catalogue.recipes())
    assert re.search(rf"{number} recipes, \d+ of which run here", " ".join(invoked("list")[0].split()))


def test_where_nothing_was_measured_no_time_is_shared_out(capsys):
    cli.leave(compare.Outcome(spent={"checking": 0.001}))
    assert capsys.readouterr().err == "0 results: 0 ok, 0 failed, 0 refused, 0 skipped\n"
    cli.leave(compare.Outcome(spent={"checking": 1.0, "timing": 3.0}, measured=2))
    assert capsys.readouterr().err.endswith("\n4 s, 2.0 s per result: 75% timing, 25% checking\n")


def test_list_takes_workloads():
    rows = json.loads(invoked("list", "multiply", "matmul", "--format", "json")[0])
    assert {row["workload"] for row in rows} == {"multiply", "matmul"}


@pytest.mark.parametrize("width", [80, 60, 40])
def test_list_never_cuts_a_name_and_leaves_no_column_out(width, monkeypatch, capsys):
    monkeypatch.setattr(cli, "console", lambda: Console(highlight=False, width=width))
    cli.list_recipes()
    out = capsys.readouterr().out
    assert "…" not in out and max(map(len, out.splitlines())) <= width
    if width > 40:  # where the longest workload has no room beside the longest technique
        assert not re.search(r"^\s*[,:]", out, re.MULTILINE)
    assert out.endswith("\n    gpu-cookbook show multiply numpy\n")  # whole, to be copied
    techniques = {recipe.technique for recipe in catalogue.recipes()}
    assert techniques <= set(out.split())
    firsts = [found[1] for line in out.splitlines() if (found := re.match(r" (\w+) ", line)) and found[1] in techniques]
    assert len(firsts) == (1 if width == 80 else 2) * len(techniques)  # beside each part of the table
    reason = "belongstotheenvironment" if machine.gpus() else "needsanNVIDIAGPU"
    assert all(word in "".join(out.split()) for word in ("idiomatic", "tuned", "multiply", reason))


@pytest.mark.slow
def test_tables_of_chosen_recipes():
    def stored(*arguments):
        tables = json.loads(invoked("tables", "--format", "json", *arguments)[0])
        return {(row["table"], row.get("workload"), row.get("technique")) for table in tables for row in table["rows"]}

    chosen = stored("multiply", "-t", "cupy")
    assert chosen == {("measured", "multiply", "numpy"), ("measured", "multiply", "cupy")}
    assert stored("multiply") > chosen


def test_version():
    assert cookbook("--version")[0] == f"gpu-cookbook {importlib.metadata.version('gpu-cookbook')}\n"


def test_python_m_is_the_command():
    done = subprocess.run([sys.executable, "-m", "gpu_cookbook", "check", "-h"], capture_output=True, text=True)
    assert done.returncode == 0 and "Usage: gpu-cookbook check" in done.stdout, done.stderr


def test_ctrl_c_while_modules_are_imported_leaves_no_traceback():
    code = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'gpu_cookbook.render': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from gpu_cookbook.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_list_imports_no_framework():
    code = (
        "import sys; from gpu_cookbook.cli import app\n"
        "try: app(['list'])\nexcept SystemExit as end: assert not end.code\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG, check=True)
    imported = set(json.loads(done.stderr.replace("'", '"')))
    assert "gpu_cookbook" in imported
    frameworks = {package for recipe in catalogue.recipes() for package in recipe.packages}
    assert imported & frameworks == set()


def test_show_prints_the_script():
    out, err = cookbook("show", "multiply", "pycuda")
    assert "__global__ void multiply" in out and err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "multply"], "Unknown workload 'multply'. Did you mean multiply?"),
        (["check", "-t", "cuppy"], "Unknown technique 'cuppy'. Did you mean cupy"),
        (["list", "numpy"], "numpy is a technique, not a workload. There are: convolution, "),
        (["check", "-t", "multiply"], "multiply is a workload, not a technique: it stands without --technique."),
        (["compare", "xyzzy"], "Unknown workload 'xyzzy'. There are: convolution, group_mean, group_mean_strings"),
        (
            ["compare", "multiply", "--size", "4000O"],
            "'4000O' is not a valid size: it is not written as an integer. Write a positive integer such as 40000, ",
        ),
        (["scale", "--size", "0"], "'0' is not a valid size: it is less than 1."),
        (["choose", "multiply", "--size", "2**63"], "'2**63' is not a valid size: it is more than 2**63 - 1"),
        (
            ["compare", "group_mean", "--size", "1e6"],
            "A size of group_mean is 2 numbers, such as 1000000x1000, ",
        ),
        (
            ["compare", "multiply", "-s", "1e6x1000"],
            "A size of multiply is one number, such as 40000, ",
        ),
        (
            ["compare", "group_mean", "--size", "5x0"],
            "'5x0' is not a valid size: '0' is less than 1. Write positive integers such as 1000000x1000, ",
        ),
        (["compare", "multiply", "--size", "0x10"], "'0x10' is not a valid size: '0' is less than 1. Write a positive"),
        (["choose", "pca", "--size", "9x20", "--measure"], "'9x20' is no size of pca: PCA takes at least 10 rows and"),
        (
            ["compare", "pca", "--size", "20x9"],
            "'20x9' is no size of pca: PCA takes at least 10 rows and 10 columns.",
        ),
        (["compare", "training", "--size", "63x64"], "'63x64' is no size of training: batches are whole, and these"),
        (["compare", "group_mean", "--size", "5x"], "'5x' is not a valid size: a number is missing. Write positive"),
        (["compare", "multiply", "--output", "/nowhere/at/all.txt"], "Cannot write /nowhere/at/all.txt"),
        (["compare", "multiply", "--output", "/tmp"], "Cannot write /tmp"),
        (["compare", "multiply", "--output", ""], "Invalid value for '--output': it is empty: name a file."),
        (["compare", "multiply", "--output", "-"], "'-' does not stand for standard output here: name a file."),
        (["show", "matmul", "joblib"], "There is no recipe for matmul with joblib"),
        (["show", "matmul", "torhc"], "Unknown technique 'torhc'. Did you mean torch"),
        (
            ["show", "group_mean_strings", "xyzzy"],
            "There are: cudf, cudf_pandas, cudf_polars, dask, dask_cuda, dask_cudf, modin, numpy, pandas, polars.",
        ),
        (["compare", "--format", "yaml"], "'yaml' is not one of"),
        (
            ["check", "-t", "torch", "--lane", "tuned"],
            "There is no recipe with torch in the tuned lane. 'gpu-cookbook list'",
        ),
        (
            ["compare", "matmul", "-t", "torch", "--lane", "tuned"],
            "There is no recipe for matmul with torch in the tuned lane",
        ),
        (["show", "matmul"], "gpu-cookbook show matmul TECHNIQUE. There are: numpy, "),
        (["show", "nosuch"], "Unknown workload 'nosuch'."),
        (["list", "multply"], "Unknown workload 'multply'. Did you mean multiply?"),
        (["tables", "multply"], "Unknown workload 'multply'. Did you mean multiply?"),
        (["tables", "--lane", "fast"], "'fast' is not one of 'idiomatic', 'tuned'"),
        (["frobnicate"], "No such command 'frobnicate'"),
        (["choose", "multiply", "-s", "5", "--size=6", "--machine", "nvidia-h100"], "choose takes only one --size."),
        (["choose", "multiply", "-s", "5", "--machine", "a", "--machine", "b"], "choose takes only one --machine."),
        (["scale", "-s", "5", "-s5"], "scale takes only one --size."),
        (["compare", "-s", "5", "-s", "6", "--machine=a", "--machine=a"], "compare takes only one --machine."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_says_what_to_do(arguments, message):
    out, err = invoked(*arguments, code=2)
    assert message in " ".join(err.replace("│", " ").split())
    assert out == ""


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("h200", "Did you mean nvidia-h200?"),  # a part of one name
        ("NVIDIA-H200", "Did you mean nvidia-h200 or nvidia-h100?"),
        ("nvidia", "Did you mean nvidia-h200 or nvidia-h100?"),
        ("Xeon", "Did you mean Intel-Xeon-16?"),  # names keep their case
        ("-", "There are: nvidia-h100, nvidia-h200, amd-epyc, Intel-Xeon-16."),  # a part of too many
        ("rtx-4090", "There are: nvidia-h100, nvidia-h200, amd-epyc, Intel-Xeon-16."),
        ("", "There are: nvidia-h100, nvidia-h200, amd-epyc, Intel-Xeon-16."),
    ],
)
def test_a_similar_name_is_suggested(name, told):
    assert catalogue.similar(name, ["nvidia-h100", "nvidia-h200", "amd-epyc", "Intel-Xeon-16"]) == told


@pytest.mark.parametrize(("option", "told"), [("--core", "--cores"), ("--technqiue", "--technique"), ("--stored", "")])
def test_an_option_with_a_similar_name_is_suggested(option, told):
    _, err = invoked("scale", option, code=2)
    words = " ".join(err.replace("│", " ").split())
    assert f"No such option: {option}{f' (Possible options: {told})' if told else ' ╰'}" in words


@pytest.mark.parametrize(
    ("word", "size"),
    [
        *(("1_000_000", 10**6), ("1,000,000", 10**6), ("1e6", 10**6), ("1E+6", 10**6), ("2.5e6", 2_500_000)),
        *(
            ("2**28", 2**28),
            ("2^28", 2**28),
            ("2 ** 28", 2**28),
            ("1_000**2", 10**6),
            ("007", 7),
            ("+5", 5),
            ("1**99", 1),
        ),
        *(("9223372036854775807", 2**63 - 1), ("3**39", 3**39)),
    ],
)
def test_a_size_in_any_notation(word, size):
    assert sizes.size_of(word) == size


def test_between_two_numbers_may_be_what_the_tables_print():
    assert sizes.sizes_of("group_mean", ["1000x10", "1e3 x 10", "1,000×10"]) == [(1000, 10)]


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (
            "is not written as an integer",
            ["", "4000O", "1.5", "5.0", "1e-3", "1.000.000", "1,00", "1,5e6", "1__0", "1M", "1k", "2**0.5", "５"],
        ),
        ("is not an integer", ["1.5e0", "1.2345e3"]),
        ("is less than 1", ["0", "-5", "-2**2", "0e5", "0**0"]),
        ("is more than 2", ["2**63", "9**99", "9" * 5_000, "9**" + "9" * 5_000, "1e19", "1e999", "1e" + "9" * 30]),
    ],
)
def test_a_wrong_size_says_why(cause, words):
    for word in words:
        with pytest.raises(ValueError, match=rf"' is not a valid size: it {cause}"):
            sizes.size_of(word)


@pytest.mark.parametrize(
    ("workload", "largest"), [("random_subset_mean", 3_037_000_499), ("matmul", 3_037_000_499), ("multiply", 2**63 - 1)]
)
def test_a_side_is_too_large_if_its_array_has_too_many_elements(workload, largest, capsys):
    assert sizes.sizes_of(workload, [str(largest)]) == [largest]
    for size in [largest + 1, 2**63 - 1] * (workload != "multiply"):
        with pytest.raises(typer.Exit):
            sizes.sizes_of(workload, [str(size)])
        words = f"'{size}' is no size of {workload}: its array has more than 2**63 - 1 elements"
        assert words in capsys.readouterr().err


@in_opencl
@pytest.mark.slow
def test_check_says_right():
    out, err = cookbook("check", "multiply", "-t", "numpy", "-t", "pyopencl")
    assert out.count("correct") == 2
    assert err == "14 results: 14 ok, 0 failed, 0 refused, 0 skipped\n"


def test_check_as_json_has_a_cell_a_size():
    out, _ = cookbook("check", "increment", "-t", "numpy", "--format", "json")
    assert [row["size"] for row in json.loads(out)] == [0, 1, 2, 255, 256, 257, 100_003]


def test_strict_takes_no_skipped_recipe():
    (recipe,) = catalogue.choose(["multiply"], ["cupy"])
    skipped = machine.obstacle(recipe) is not None
    cookbook("check", "multiply", "-t", "cupy", code=0)
    _, err = cookbook("check", "multiply", "-t", "cupy", "--strict", code=1 if skipped else 0)
    sizes = len(catalogue.workload_module("multiply").EDGE_SIZES)
    assert (f"--strict: {sizes} results of this environment skipped: counted as failed" in err) is skipped


@pytest.fixture(scope="module")
def compared():
    """One comparison, as JSON."""
    named = ["pyopencl", "pycuda"]
    skipped = all(map(machine.obstacle, catalogue.choose(["multiply"], named)))
    techniques = [word for name in named for word in ("-t", name)]
    out, err = cookbook(
        *("compare", "multiply", *techniques, "-s", "1000", "-s", "10_000", "--format", "json"),
        code=1 if skipped else 0,
    )
    assert "6 results: " in err
    return json.loads(out)


@pytest.mark.slow
def test_compare_adds_numpy_and_measures_every_size(compared):
    keys = [(row["technique"], row["size"]) for row in compared]
    assert keys == [(t, s) for t in ("numpy", "pycuda", "pyopencl") for s in (1000, 10_000)]


@pytest.mark.slow
def test_compare_has_every_figure_of_what_ran_and_a_reason_for_the_rest(compared):
    for row in compared:
        for field in ("workload", "technique", "framework", "lane", "device", "size", "status", "reason"):
            assert field in row
        if row["status"] == "ok":
            assert all(row[figure] > 0 for figure in FIGURES)
            assert row["resident_q1_s"] <= row["resident_s"] <= row["resident_q3_s"]
        else:
            assert row["status"] == "skipped" and row["reason"]
            assert "resident_s" not in row


@pytest.mark.slow
def test_compare_gives_speedups_over_numpy(compared):
    """Unless this machine is so busy that one of the two times is doubtful."""
    numpy = {row["size"]: row for row in compared if row["technique"] == "numpy"}
    for row in compared:
        for metric in ("resident", "transfer") if row["status"] == "ok" else ():
            base = numpy[row["size"]]
            doubtful = "resident_doubt" in base or f"{metric}_doubt" in row
            ratio = None if doubtful else pytest.approx(base["resident_s"] / row[f"{metric}_s"])
            assert row.get(f"speedup_{metric}_x") == ratio


@pytest.mark.slow
def test_a_busy_machine_is_named():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            _, err = unprobed("compare", "increment", "-t", "numpy", "-s", "100")
        finally:
            other.kill()
    assert re.match(r"Other programs keep \d\.\d cores busy", err)


@pytest.mark.slow
def test_first_result_is_the_sum_of_its_parts(compared):
    for row in compared:
        if row["status"] == "ok" and row["size"] == 1000:
            parts = [row[f"first_{part}_s"] for part in ("import", "setup", "call", "download")]
            assert row["first_result_s"] == pytest.approx(sum(parts))


@pytest.mark.parametrize(
    "form", ["table", *(pytest.param(form, marks=pytest.mark.slow) for form in ("html", "markdown", "csv"))]
)
def test_compare_in_every_format_and_into_a_file(form, tmp_path):
    file = tmp_path / "result"
    arguments = ("compare", "random_subset_mean", "-t", "numpy", "-s", "200", "-s", "300", "--format", form)
    out, err = unprobed(*arguments, "--output", str(file))
    assert out == "" and f"2 results written to {file}" in err
    text = file.read_text(encoding="utf-8")
    assert "numpy" in text
    if form == "csv":
        assert [row["size"] for row in csv.DictReader(io.StringIO(text))] == ["200", "300"]
    else:
        assert "200²" in text and "300²" in text and "All times are medians." in text


@pytest.mark.slow
def test_compare_as_a_page_has_where_and_when_and_what_was_measured():
    out, _ = unprobed("compare", "increment", "-t", "numpy", "-s", "1000", "-s", "2**62", "--format", "html")
    assert out.startswith("<!DOCTYPE html>") and out.endswith("</html>\n")
    assert machine.processor() in out and re.search(r"Date: \d{4}-\d\d-\d\d", out) and "numpy 2" in out
    assert "first result: a fresh process" in out and "EB of host memory" in out  # a chart; why a size was skipped


@pytest.mark.slow
def test_a_size_that_does_not_fit_is_skipped_with_the_numbers():
    out, _ = unprobed("compare", "matmul", "-t", "numpy", "-s", "200", "-s", "2**28", "--format", "json")
    fits, row = json.loads(out)
    assert fits["status"] == "ok"
    assert row["status"] == "skipped" and "GB" in row["reason"]


@pytest.mark.slow
def test_a_comparison_that_skips_everything_fails():
    _, err = unprobed("compare", "matmul", "-t", "numpy", "-s", "2**28", code=1)
    assert "Nothing was measured: every result was skipped" in err


@pytest.mark.slow
def test_a_comparison_that_skips_all_that_was_named_fails_and_shows_numpy():
    other = next(each for each in catalogue.of_workload("matmul") if each.environment != machine.environment())
    out, err = unprobed("compare", "matmul", "-t", other.technique, "-s", "100", "--format", "json", code=1)
    assert [row["status"] for row in json.loads(out)] == ["ok", "skipped"]
    assert "Nothing that you named was measured: each of these results was skipped, with the reason" in err


@pytest.fixture
def endless(tmp_path, monkeypatch):
    """Ray is a package that is never imported to its end: the process that imports it, as soon as it does."""
    (tmp_path / "ray.py").write_text(
        "import os, pathlib, time\n"
        f"here = pathlib.Path({str(tmp_path)!r})\n"
        "(here / 'new').write_text(str(os.getpid()))\n"
        "(here / 'new').rename(here / 'pid')\n"
        f"time.sleep({HANG})\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return lambda: until((tmp_path / "pid").exists) and int((tmp_path / "pid").read_text())


def test_a_worker_ends_with_what_started_it(endless):
    run = subprocess.Popen([COMMAND, "check", "multiply", "-t", "ray"])
    worker = endless()
    run.kill()
    run.wait()
    until(lambda: has_ended(worker))


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_and_shows_what_was_measured(end, again, endless):
    run = subprocess.Popen(
        [*UNPROBED, "compare", "multiply", "-t", "ray", "-s", "1000", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=interruptible,
    )
    worker = endless()  # NumPy comes before it
    run.send_signal(end)
    enough = time.monotonic() + 1  # less than the seconds for which it waits
    while again and time.monotonic() < enough and not select.select([run.stdout], [], [], 0.005)[0]:
        run.send_signal(end)
    out, err = run.communicate(timeout=HANG)
    assert run.returncode == 130
    assert [row["technique"] for row in json.loads(out)] == ["numpy"]
    assert err.endswith("1 result: 1 ok, 0 failed, 0 refused, 0 skipped; stopped early\n")
    assert not psutil.pid_exists(worker)
