"""What was measured is never lost at the end, and what is needed then is tried before anything is measured."""

import functools
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
import typer
from cloning import require_clone
from conftest import HANG, UNPROBED, git, interruptible, invoked, until
from test_store import add, result

from gpu_cookbook import catalogue, cli, machine, script, terminal
from gpu_cookbook.render import html_page, tables
from gpu_cookbook.results import Probe
from gpu_cookbook.run import compare as comparing
from gpu_cookbook.run import family, runner
from gpu_cookbook.store import asv_files
from gpu_cookbook.store.commits import StoreError

ROOT = Path(__file__).parents[1]
COMMAND = str(Path(sys.executable).with_name("gpu-cookbook"))
SHORT = ("compare", "increment", "-t", "numpy", "-s", "100")


def shell(line, code=0, folder=None, **variables):
    """What a shell's line writes to both outputs, or to none that the line has redirected."""
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=HANG, cwd=folder, env=os.environ | variables
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr and "Exception ignored" not in done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def measured(monkeypatch):
    """compare has a result at once: the time of NumPy."""
    outcome = comparing.Outcome([result("numpy", 40_000)])
    monkeypatch.setattr(comparing.Comparison, "measure", lambda *_, **__: outcome)
    monkeypatch.setattr(cli, "warn_of_others", lambda: None)


def compared(*arguments, code=0):
    return invoked("compare", "multiply", "-t", "numpy", "-s", "40000", *arguments, code=code)


@pytest.mark.parametrize("form", terminal.TableFormat)
def test_what_a_format_cannot_show_is_shown_as_json(form, measured, monkeypatch):
    def broken(*_):
        raise RuntimeError("\x1b[31mno such font")

    monkeypatch.setattr(cli, "written", broken)
    out, err = compared("--format", form, code=1)
    assert json.loads(out)[0]["resident_s"] == pytest.approx(1e-5)
    assert f"Cannot show this as {form} (RuntimeError: \\x1b[31mno such font): it is shown as JSON" in err


def test_without_git_a_page_is_made_all_the_same(measured, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    out, _ = compared("--format", "html")
    assert "10.0 µs" in out and "git is not on PATH" in out


def test_one_result_in_a_file_is_called_one(measured, tmp_path):
    _, err = compared("--output", str(tmp_path / "file"))
    assert err.startswith(f"1 result written to {tmp_path / 'file'}\n")


def test_a_page_is_in_utf_8_whatever_the_terminal_has(measured, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", stream)
    terminal.deliver("<p>13.1 µs", terminal.TableFormat.html)
    assert stream.buffer.getvalue().decode("utf-8") == "<p>13.1 µs"


class Full(io.StringIO):
    def write(self, _):
        raise OSError(28, "No space left on device")


def test_what_standard_output_does_not_take_is_in_a_file(measured, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(typer.Exit):
        terminal.deliver("13.1 µs")
    (file,) = tmp_path.iterdir()
    assert file.read_text(encoding="utf-8") == "13.1 µs"
    assert f"(No space left on device). What was measured is in {file}" in capsys.readouterr().err


def test_a_script_stores_its_line_before_it_prints(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(typer.Exit):
        script.finish([], tmp_path / "m" / "lines.jsonl", {"machine": "m"})
    assert (tmp_path / "m" / "lines.jsonl").read_text() == '{"machine": "m"}\n'


def test_what_a_script_cannot_store_is_shown_all_the_same(capsys):
    table = tables.Table("A title", ("head",), "l", [], [], [])
    with pytest.raises(typer.Exit) as ended:
        script.finish([table], Path("/dev/null/lines.jsonl"), {"machine": "m"})
    out, err = capsys.readouterr()
    assert "A title" in out and ended.value.exit_code == 1
    said, _, place = err.strip().rpartition(" ")
    assert said.startswith("The result was not saved: ") and said.endswith(". What was measured is in")
    assert Path(place).read_text() == '{"machine": "m"}\n'


@pytest.mark.parametrize("line", [None, {"machine": "m"}])
def test_after_ctrl_c_a_script_shows_what_is_known_and_stores_nothing(line, capsys, tmp_path):
    table = tables.Table("A title", ("head",), "l", [], [], [])
    with pytest.raises(typer.Exit) as ended:
        script.finish([table], tmp_path / "lines.jsonl", line, stopped=True, notes="A note\n")
    out, err = capsys.readouterr()
    assert "A title" in out and out.endswith("A note\n") and ended.value.exit_code == 130
    assert err == ("Stopped early: this was not stored.\n" if line else "Stopped early.\n")
    assert not (tmp_path / "lines.jsonl").exists()


def test_only_ctrl_c_ends_a_measurement_that_goes_on():
    with script.Interruptible() as measuring:
        raise KeyboardInterrupt
    assert measuring.stopped
    with pytest.raises(ValueError), script.Interruptible() as measuring:
        raise ValueError
    with script.Interruptible() as measuring:
        pass
    assert not measuring.stopped


def test_a_script_tries_its_file_before_it_measures(clone, results):
    file = results / "lines.jsonl"
    assert script.commit_for("made-up", clone, (), file) == git(clone, "rev-parse", "HEAD")
    assert not file.exists()
    file.mkdir()
    with pytest.raises(StoreError, match=r"Nothing can be stored in .*lines\.jsonl: Is a directory"):
        script.commit_for("made-up", clone, (), file)


def test_where_there_is_no_repository_a_script_says_so(tmp_path, monkeypatch):
    with pytest.raises(StoreError, match="is not a git repository with a commit"):
        script.commit_for("made-up", tmp_path, (), tmp_path / "lines.jsonl")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(StoreError, match="git is not on PATH"):
        script.commit_for("made-up", tmp_path, (), tmp_path / "lines.jsonl")


@pytest.mark.parametrize("name", ["all_reduce", "concepts", "launches", "limits", "together", "transfers"])
def test_a_script_refuses_a_bad_name_and_environment_before_all_else(name):
    line = f"{sys.executable} {ROOT / 'benchmarks' / name}.py --save"
    for bad in ("../x", ""):
        _, err = shell(f"{line} '{bad}'", code=2)
        assert err.startswith(f"'{bad}' is no name of a machine: use letters from a to z,") and err.count("\n") == 1
    _, err = shell(f"{line} m", code=2, GPU_COOKBOOK_ENVIRONMENT="mian")
    assert err == "GPU_COOKBOOK_ENVIRONMENT: Unknown environment 'mian'. Did you mean main or modin?\n"


@pytest.mark.parametrize("name", ["launches", "means"])
def test_a_script_says_of_its_output_what_the_command_says(name):
    line = f"{sys.executable} {ROOT / 'benchmarks' / name}.py --help"
    _, err = shell(f"{line} > /dev/full", code=1)
    assert err == "Cannot go on: [Errno 28] No space left on device\n"
    _, err = shell(f"{line} >&-", code=2)
    assert err == "Standard output is closed: redirect it into a file, or to /dev/null.\n"


def test_a_script_says_why_it_cannot_go_on(tmp_path):
    path = tmp_path / "script.py"
    for error, code in (("commits.StoreError('why')", 2), ("catalogue.UnknownName('why')", 2), ("OSError('why')", 1)):
        path.write_text(SCRIPT.format(error=error))
        _, err = shell(f"{sys.executable} {path}", code=code)
        assert err == ("why\n" if code == 2 else "Cannot go on: why\n")
    path.write_text(SCRIPT.format(error="KeyboardInterrupt"))
    assert shell(f"{sys.executable} {path}", code=130) == ("", "")


SCRIPT = """
from gpu_cookbook import catalogue, script
from gpu_cookbook.store import commits

def main():
    raise {error}

script.run(main)
"""


@pytest.mark.slow
def test_a_script_writes_other_signs_where_ours_cannot_be():
    require_clone()
    line = f"{sys.executable} {ROOT / 'benchmarks' / 'limits.py'} --show"
    out, _ = shell(line, folder=ROOT, PYTHONIOENCODING="ascii")
    assert out.isascii() and re.search(r"\d us ", out)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("--help", 0, "ROWS"),
        ("-h", 0, "ROWS"),
        ("4 x", 2, "COLUMNS"),
        ("4", 2, "ROWS"),
        ("0 4", 2, "ROWS"),
        ("4 100000000", 2, "10000000"),
    ],
)
def test_means_takes_numbers_that_can_be_computed(arguments, code, said):
    out, err = shell(f"{sys.executable} {ROOT / 'benchmarks' / 'means.py'} {arguments}", code=code)
    assert said in out + err


def test_ctrl_c_ends_means_without_a_word():
    command = [sys.executable, ROOT / "benchmarks" / "means.py", "100000", "100000"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, start_new_session=True, preexec_fn=interruptible) as process:
        workers = psutil.Process(process.pid).children
        until(lambda: sum(each.cpu_times().user > 0.5 for each in workers(True)) == len(os.sched_getaffinity(0)))
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=HANG) == ("", "")
    assert process.returncode == 130


@pytest.mark.parametrize("option", ["--help", "--version", "list --help", "list increment"])
def test_a_full_disk_is_said_of_whatever_is_printed(option):
    for unbuffered in ("", "1"):
        _, err = shell(f"{COMMAND} {option} > /dev/full", code=1, PYTHONUNBUFFERED=unbuffered)
        assert err == "Cannot go on: [Errno 28] No space left on device\n"


@pytest.mark.slow
def test_a_full_disk_is_said_in_a_line():
    require_clone()
    _, err = shell(f"{COMMAND} tables multiply > /dev/full", code=1)
    assert err == "Cannot go on: [Errno 28] No space left on device\n"


NEARLY_FULL = (
    "{}(raylet{}){} [2026-11-26 20:19:52,150 E 7824 7834] (raylet) file_system_monitor.cc:116: "
    "/tmp/ray/session_2026-11-26_20-19-41_313536_7758 is over 95% full, available space: 8.21 GB; "
    "capacity: 251.972 GB. Object creation will fail if spilling is required.\n"
)


@pytest.mark.parametrize("parts", [("", "", ""), ("\x1b[33m", "", "\x1b[0m"), ("\x1b[36m", ", ip=10.0.0.2", "\x1b[0m")])
def test_that_the_disk_is_nearly_full_is_not_what_a_recipe_prints(parts):
    said = NEARLY_FULL.format(*parts)
    assert runner.printed_by_recipe("Ray", said * 2) == ""
    assert runner.printed_by_recipe("Ray", f"1\n{said}2\n") == "1\n2\n"
    assert runner.printed_by_recipe("Dask", said) == said


def test_a_table_is_drawn_whatever_standard_output_takes(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Full())
    assert "A title" in terminal.drawn([tables.Table("A title", ("head",), "l", [], [], [])], terminal.console())


def test_a_comparison_into_a_full_disk_is_kept(tmp_path):
    command = " ".join(f"'{word}'" for word in (*UNPROBED, *SHORT, "--format", "json"))
    _, err = shell(f"{command} > /dev/full", code=1, TMPDIR=str(tmp_path))
    (file,) = tmp_path.glob("gpu-cookbook-*.txt")
    assert str(file) in err and json.loads(file.read_text())[0]["status"] == "ok"


@pytest.mark.parametrize(
    "arguments", [("list", "increment"), ("check", "increment", "-t", "numpy"), SHORT], ids=lambda words: words[0]
)
def test_what_standard_error_does_not_take_costs_nothing_else(arguments):
    command = " ".join(f"'{word}'" for word in (*UNPROBED, *arguments, "--format", "json"))
    out, _ = shell(f"{command} 2> /dev/full")
    assert {row["technique"] for row in json.loads(out)} >= {"numpy"}


def test_an_error_that_standard_error_does_not_take_is_one_all_the_same():
    shell(f"{COMMAND} list nosuch 2> /dev/full", code=2)


def test_a_closed_output_is_said_before_anything_is_measured():
    _, err = shell(f"{COMMAND} {' '.join(SHORT)} >&-", code=2)
    assert err == "Standard output is closed: redirect it into a file, or to /dev/null.\n"
    out, _ = shell(f"{COMMAND} tables nosuch <&- 2>&-", code=2)
    assert out == ""


@pytest.mark.slow
def test_a_terminal_without_our_signs_gets_others():
    require_clone()
    out, _ = shell(f"{COMMAND} tables multiply", PYTHONIOENCODING="ascii")
    assert out.isascii() and re.search(r"\d us ", out)


@pytest.mark.parametrize("arguments", ["tables", "scale --machine m", "compare --save", "list multiply"])
def test_in_a_folder_that_was_deleted_it_says_so_or_works(arguments, tmp_path):
    (tmp_path / "gone").mkdir()
    line = f"cd gone && rmdir ../gone && {COMMAND} {arguments}"
    code = 0 if arguments == "list multiply" else 2
    out, err = shell(line, code, tmp_path)
    assert err == "The current folder was deleted: change to a clone of GPU Cookbook.\n" if code else "recipes" in out


def test_results_on_another_file_system_are_stored(clone):
    elsewhere = Path("/dev/shm")
    assert elsewhere.stat().st_dev != clone.stat().st_dev, "this test needs two file systems"
    with tempfile.TemporaryDirectory(dir=elsewhere) as folder:
        (clone / "benchmarks" / "results").symlink_to(folder)
        add(asv_files.Writer(asv_files.Store(), "m"), "numpy", 40_000)
        results, complaints = asv_files.Store().load()
        assert len(results) == 1 and complaints == []
        assert not [path for path in Path(folder).rglob("*") if path.suffix == ".new"]


@pytest.mark.parametrize("where", ["results", "results/m", "results/m/runs.jsonl"])
def test_a_place_that_cannot_be_written_is_said_before_anything_is_measured(where, clone):
    place = clone / "benchmarks" / where
    place.parent.mkdir(exist_ok=True, parents=True)
    place.symlink_to("/proc/self/nowhere")  # not even root can write there
    if where.endswith("jsonl"):
        place.unlink()
        place.mkdir()
    _, err = invoked("compare", "multiply", "-t", "numpy", "--save", "--machine", "m", code=2)
    assert err.startswith("Results cannot be stored in ") and err.count("\n") == 1


def test_what_could_not_be_read_again_is_not_stored(clone):
    writer = asv_files.Writer(asv_files.Store(), "m")
    add(writer, "numpy", 40_000)
    with pytest.raises(asv_files.StoreError, match="could not be read again: .* is less than the minimum"):
        add(writer, "torch", 40_000, median=1e-15)
    results, complaints = asv_files.Store().load()
    assert [each.technique for each in results] == ["numpy"] and complaints == []


def test_without_git_it_says_so(clone, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    _, err = invoked("tables", code=2)
    assert err == "Stored results belong to commits, but git is not on PATH: install it.\n"


def test_the_clone_of_another_user_is_called_that(clone, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own variable for such tests
    _, err = invoked("tables", code=2)
    assert "belongs to another user (dubious ownership)" in err
    assert ": git config --global --add safe.directory /" in err
    assert html_page._commit() is None or "dubious" in html_page._commit()


ASKS = """
import signal
from gpu_cookbook import catalogue, cli
@cli.app.command()
def ask():
    print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, signal.getsignal(signal.SIGTERM) is signal.SIG_IGN)
cli.app(["ask"])
"""


@pytest.mark.parametrize(("before", "ignored"), [("trap '' HUP;", "True False"), ("", "False False")])
def test_a_signal_that_is_ignored_stays_ignored(before, ignored):
    """That is all that nohup does."""
    assert shell(f"{before} {sys.executable} -c '{ASKS}'")[0] == f"{ignored}\n"


def test_a_second_ctrl_c_does_not_stop_what_the_first_one_began(monkeypatch):
    now = 100.0
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now)
    interrupt = terminal.interrupting()
    with pytest.raises(KeyboardInterrupt):
        interrupt(signal.SIGINT, None)
    interrupt(signal.SIGTERM, None)
    now += terminal.PATIENCE + 1
    with pytest.raises(KeyboardInterrupt):  # what was begun may hang
        interrupt(signal.SIGINT, None)


NO_FOLDER = "No folder for temporary files can be made: set TMPDIR to a folder that you can write to.\n"


@pytest.mark.parametrize("arguments", ["check increment -t numpy", " ".join(SHORT), "scale -t numpy --cores 1 -s 500"])
def test_where_no_temporary_file_can_be_written_it_says_so(arguments):
    out, err = shell(f"ulimit -f 0; {COMMAND} {arguments}", code=2)
    assert (out, err) == ("", NO_FOLDER)


@pytest.fixture
def filled(monkeypatch):
    """The folder for temporary files is full after so many processes."""
    (folder := Path(family.home(), "filled")).mkdir()
    monkeypatch.setattr(runner, "run", functools.partial(runner.run, probe=Probe("made up", 1e3, 2**20)))
    monkeypatch.setattr(cli, "warn_of_others", lambda: None)
    monkeypatch.setattr(family, "home", lambda: str(folder))
    enter = runner.Process.__enter__

    def fill(after):
        started = []

        def count(process):
            started.append(process)
            if len(started) > after:
                shutil.rmtree(folder, ignore_errors=True)
            return enter(process)

        monkeypatch.setattr(runner.Process, "__enter__", count)

    return fill


STOPPED = "Stopped: nothing more can be written into "
ADVICE = ": make room there, or set TMPDIR to another folder\n"


def test_a_check_without_more_room_shows_what_was_checked(filled, monkeypatch):
    monkeypatch.setattr(machine, "cores", lambda: 1)  # one after another
    filled(1)
    out, err = invoked("check", "increment", "multiply", "-t", "numpy", "--format", "json", code=2)
    assert {row["workload"] for row in json.loads(out)} == {"increment"}
    assert err.startswith(STOPPED) and err.endswith(ADVICE) and err.count("\n") == 1


def test_a_comparison_without_more_room_shows_what_was_measured(filled):
    filled(3)  # both are checked, one is measured
    out, err = invoked("compare", "increment", "multiply", "-t", "numpy", "-s", "100", "--format", "json", code=2)
    assert [(row["workload"], row["status"]) for row in json.loads(out)] == [("increment", "ok")]
    assert err.startswith(STOPPED) and err.endswith(ADVICE) and err.count("\n") == 1


def test_a_scaling_without_more_room_shows_what_was_measured(filled):
    filled(1)
    engines = ("-t", "joblib", "-t", "numpy")
    out, err = invoked("scale", *engines, "--cores", "1", "-s", "500", "--format", "json", code=2)
    assert {row["technique"] for table in json.loads(out) for row in table["rows"]} == {"numpy"}
    assert "; stopped early\n" + STOPPED in err and err.endswith(ADVICE)


ROOM = """
import resource, sys
from gpu_cookbook.run import family
family.home()
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    family.require_room()
except OSError as error:
    print(error)
"""


def test_a_folder_in_which_nothing_can_be_written_any_more_is_named(tmp_path):
    out, _ = shell(f"{sys.executable} -c '{ROOM}'", TMPDIR=str(tmp_path))
    assert re.fullmatch(rf"nothing more .* {tmp_path}/gpu-cookbook-\w+ \(File too large\){ADVICE}", out)


def test_a_process_that_ends_for_lack_of_room_is_no_fault_of_its_recipe(filled, monkeypatch, whatever_the_rules_say):
    filled(9)

    def crash(process, code):
        shutil.rmtree(family.home())
        return reason(process, code)

    reason = runner.Process._reason
    monkeypatch.setattr(runner.Process, "_reason", crash)
    recipe = catalogue.read(Path(__file__).parent / "wrong" / "multiply" / "with_crash.py")
    with pytest.raises(OSError, match="nothing more can be written"):
        list(runner.run(recipe, "check", [1_000_000]))
