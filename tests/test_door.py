"""What is read from benchmarks/results is data that anybody may have written: whatever is wrong with a file or a line
costs only that file or line, is named, and shows nobody a traceback."""

import json
import math
import os
import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from cloning import copy_repository
from conftest import git, invoked
from lines import OBEYED, dumped, mutants
from scaling import keep, row
from test_store import add, result

from gpu_cookbook import terminal, words
from gpu_cookbook.render import scaling_tables
from gpu_cookbook.render.tables import measured
from gpu_cookbook.results import FirstResult, Metric, Timing
from gpu_cookbook.scaling import Cost
from gpu_cookbook.store import asv_files, door, runs, scaling, sending
from gpu_cookbook.store.machines import MACHINE

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SEVERAL = int(os.environ.get("EXAMPLES", "200"))  # changes that the slow tests try; 0: all that there are


@pytest.fixture(scope="module")
def filled(repository, tmp_path_factory):
    """A clone with results of two machines."""
    root = tmp_path_factory.mktemp("filled")
    copy_repository(repository, root)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(root)
        patched.setenv("HOME", str(root))
        for name in ("good", "bad"):
            writer = asv_files.Writer(asv_files.Store(), name)
            add(writer, "numpy", 40_000, first=FirstResult(0.25), peak_memory=1e9)
            add(
                writer,
                "torch",
                40_000,
                timings={Metric.DEVICE: Timing.of([2e-6] * 15), Metric.RESIDENT: Timing.of([1e-5] * 15)},
            )
            add(writer, "numpy", 1_000_000, "failed", "wrong", device="AMD EPYC, 2 cores")
    return root


@pytest.fixture
def two(clone, filled):
    """A store with results of the machine "good", which stay, and one file of "bad", to be changed."""
    shutil.copytree(filled / "benchmarks/results", clone / "benchmarks/results")
    return clone / "benchmarks" / "results"


def shown_all(results):
    """What is loaded can be ranked and shown."""
    for each in results:
        for timing in each.timings.values():
            assert 1e-12 <= timing.median <= 1e7
            assert timing.quartiles is None or timing.q1 <= timing.median * 1.001 and timing.median <= timing.q3 * 1.001
        assert isinstance(each.size, int) and each.size > 0 and re.fullmatch("[0-9a-f]{40}", each.stored.commit)
    for form in terminal.TableFormat:
        text = terminal.table_text(measured(results), form)
        assert not OBEYED.search(text) and (form != "html" or "<script" not in text)


@pytest.mark.parametrize("few", [10, pytest.param(SEVERAL, marks=pytest.mark.slow)])
def test_a_file_of_results_that_was_changed_anywhere_costs_at_most_itself(two, few):
    (path,) = (two / "bad").glob("*-existing*.json")
    data = json.loads(path.read_text())
    refused, store = 0, asv_files.Store()
    for at, value, made in mutants(data, few):
        path.write_text(dumped(made))
        results, complaints = store.load()
        good = [each for each in results if each.stored.machine == "good"]
        assert len(good) == 3, (at, value)
        assert len(complaints) <= 1 and all("/bad/" in complaint for complaint in complaints), (at, value)
        assert not complaints or len(results) == 3, (at, value)
        refused += len(complaints)
        if not complaints:
            shown_all(results)
    assert refused > few / 2


@pytest.mark.parametrize("few", [10, pytest.param(SEVERAL, marks=pytest.mark.slow)])
def test_a_line_of_conditions_that_was_changed_anywhere_costs_at_most_itself(two, few):
    path = two / "bad" / runs.FILE
    first, *others = path.read_text().splitlines()
    refused, store = 0, asv_files.Store()
    for at, value, made in mutants(json.loads(first), few):
        path.write_text("\n".join([dumped(made), *others]))
        results, complaints = store.load()
        assert len(results) == 6 and len(complaints) <= 1, (at, value)
        assert all("bad/runs.jsonl, line 1: " in complaint for complaint in complaints), (at, value)
        refused += len(complaints)
        if not complaints:
            shown_all(results)
    assert refused > few / 3


@pytest.mark.parametrize("few", [10, pytest.param(SEVERAL, marks=pytest.mark.slow)])
def test_a_line_of_scale_that_was_changed_anywhere_costs_at_most_itself(clone, few):
    folder, commit = clone / "benchmarks/results", git(clone, "rev-parse", "HEAD")
    empty = row(mode="empty", workers=2)
    rows = [row(), row(workers=2, mode="weak"), replace(empty, cost=Cost(1e-3, 1e-6, 1e-9))]
    keep(folder, "m", rows, commit)
    path = folder / scaling.FILE
    line = path.read_text()
    keep(folder, "m", [row("dask")], commit)
    refused = 0
    for at, value, made in mutants(json.loads(line), few):
        path.write_text(f"{dumped(made)}\n{line}")
        found, complaints = scaling.kept_of(folder, "m")
        assert len(found) >= 3 and len(complaints) <= 1, (at, value)
        assert all("scale.jsonl, line 1: " in complaint for complaint in complaints), (at, value)
        refused += len(complaints)
        for form in terminal.TableFormat:
            text = terminal.table_text(scaling_tables.build_tables(found), form)
            assert not OBEYED.search(text) and (form != "html" or "<script" not in text)
    assert refused > few / 2


@pytest.mark.parametrize("kind", ["limits", "machine", "benchmarks"])
@pytest.mark.slow
def test_other_files_that_were_changed_anywhere_are_refused_or_fit(kind):
    text = {
        "limits": lambda: (RESULTS / "limits.jsonl").read_text().splitlines()[0],
        "machine": lambda: (RESULTS / "nvidia-h200/machine.json").read_text(),
        "benchmarks": lambda: (RESULTS / "benchmarks.json").read_text(),
    }[kind]()
    data = json.loads(text)
    door.fit(text.encode(), kind)
    refused = 0
    for at, value, made in mutants(data, 500):
        try:
            door.fit(dumped(made).encode(), kind)
        except door.Unfit as error:
            refused += 1
            assert "\x1b" not in str(error) and len(str(error)) < 1000, (at, value)
    assert refused > 150


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not text in UTF-8"),
        (b"[" * 100_000, "in one another"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "in one another"),
        (b"1" * 5_000, "is not JSON"),
        (b" " * (door.MOST_BYTES + 1), "is larger than 8 MiB"),
        (b"null", "null is not of type"),
    ],
    ids=["empty", "binary", "deep", "nested", "digits", "huge", "null"],
)
def test_what_is_no_file_of_results_is_named_and_the_rest_is_shown(two, content, words):
    (path,) = (two / "bad").glob("*-existing*.json")
    path.write_bytes(content)
    with (two / "good" / runs.FILE).open("ab") as file:
        file.write(content[: 2**19] + b"\n")
    results, complaints = asv_files.Store().load()
    assert [each.stored.machine for each in results] == ["good"] * 3
    assert words in complaints[-1] and len(complaints) == 1 + bool(content.strip())


@pytest.mark.parametrize("column", [0, 7, 8], ids=["value", "first quartile", "third quartile"])
@pytest.mark.parametrize("benchmark", ["track_peak_device_memory", "time_resident", "track_first_result"])
def test_nothing_that_is_shown_is_infinite(two, benchmark, column):
    (path,) = (two / "bad").glob("*-existing*.json")
    data = json.loads(path.read_text())
    columns = data["results"][f"workloads.multiply.{benchmark}"]
    columns += [None] * (9 - len(columns))
    columns[column] = [math.inf] * len(columns[0])
    path.write_text(json.dumps(data))
    results, (complaint,) = asv_files.Store().load()
    assert len(results) == 3 and f'{benchmark}\'][{column}][0]: "Infinity"' in complaint


def test_what_is_no_regular_file_is_not_waited_for(two):
    os.mkfifo(two / "bad" / "pipe.json")
    (two / "bad" / "folder.json").mkdir()
    results, complaints = asv_files.Store().load()
    assert len(results) == 6
    assert [complaint.endswith("is not a regular file") for complaint in complaints] == [True, True]


def test_a_link_that_leads_nowhere_is_called_that(two):
    for name in ("gone.json", "runs.jsonl"):
        (two / "bad" / name).unlink(missing_ok=True)
        (two / "bad" / name).symlink_to("nowhere")
    results, complaints = asv_files.Store().load()
    assert len(results) == 6
    here = "benchmarks/results/bad"
    assert complaints == [f"{here}/{name}: is a link that leads nowhere" for name in ("runs.jsonl", "gone.json")]


def test_files_of_another_version_of_asv_are_called_that(two):
    for path in (two / "bad").glob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 99}))
    results, complaints = asv_files.Store().load()
    assert len(results) == 3 and len(complaints) == 2
    assert all("json: was written by another version of asv, " in complaint for complaint in complaints)


def test_a_file_of_too_many_or_too_long_lines_costs_what_is_too_much(tmp_path, monkeypatch):
    line = (RESULTS / "nvidia-h200" / runs.FILE).read_text().splitlines()[0]
    monkeypatch.setattr(door, "MOST_LINES", 3)
    path = tmp_path / runs.FILE
    path.write_text(f"{line}\n{' ' * (door.MOST_LINE + 1)}\n{line}\n{line}\n{line}\n")
    found, complaints = door.read_lines(path, runs.KIND)
    assert [number for number, _ in found] == [1, 3]
    assert [re.search(r"line \d", complaint)[0] for complaint in complaints] == ["line 2", "line 4"]


def test_a_grid_of_billions_costs_its_file_only(two):
    (path,) = (two / "bad").glob("*-existing*.json")
    data = json.loads(path.read_text())
    name = "workloads.multiply.time_resident"
    data["results"][name][1] = [[f"'x{i}'" for i in range(400)], [str(i) for i in range(1, 21)], ["1"] * 10**5]
    path.write_text(json.dumps(data))
    results, (complaint,) = asv_files.Store().load()
    assert len(results) == 3 and f"['results']['{name}'][1]" in complaint
    data["results"][name][1] = data["results"][name][1][:2]  # 8,000 results, and values for a few of them
    path.write_text(json.dumps(data))
    assert "for 8000 combinations" in asv_files.Store().load()[1][0]


def test_every_stored_file_fits_its_schema():
    for path in RESULTS.glob("*/*.json"):
        door.read_file(path)
    door.read_file(RESULTS / "benchmarks.json")
    files = [*RESULTS.glob("*.jsonl"), *RESULTS.glob("*/*.jsonl")]
    assert {"runs.jsonl", "transfers.jsonl"} < {path.name for path in files} <= {*sending.LINES}
    for path in files:
        found, complaints = door.read_lines(path, sending.LINES[path.name])
        assert found and complaints == []


def test_the_schemas_are_schemas_and_allow_what_is_made_plain():
    from jsonschema_rs import meta

    for path in door.SCHEMAS.glob("*.json"):
        meta.validate(json.loads(path.read_text()))
    common = json.loads((door.SCHEMAS / "common.json").read_text())["$defs"]
    assert common["text"]["maxLength"] == common["textOrNull"]["maxLength"] == words.MOST
    assert common["machine"]["pattern"] == f"^{MACHINE.pattern}$"


def test_a_tables_command_shows_the_rest_names_the_fault_and_fails(two):
    (path,) = (two / "bad").glob("*-existing*.json")
    data = json.loads(path.read_text())
    data["commit_hash"] = "HEAD"
    path.write_text(json.dumps(data))
    out, err = invoked("tables", "multiply", code=1)
    assert "10.0 µs" in out
    assert (
        err == f"""benchmarks/results/bad/{path.name}: ['commit_hash']: "HEAD" does not match "{commit_pattern()}"\n"""
    )


def commit_pattern():
    return json.loads((door.SCHEMAS / "common.json").read_text())["$defs"]["commit"]["pattern"]


def test_a_folder_whose_name_is_no_machine_is_refused(two):
    (two / "bad").rename(two / "<b>\x1b[31m")
    results, complaints = asv_files.Store().load()
    assert len(results) == 3 and len(complaints) == 1 and "\x1b" not in complaints[0]


def test_ctrl_c_is_not_lost_while_a_file_is_read():
    text = max(RESULTS.glob("intel-xeon-2-cores/*.json"), key=lambda path: path.stat().st_size).read_bytes()
    door.fit(text, "results")
    rung = 0

    def interrupt(*_):
        nonlocal rung
        rung += 1
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGVTALRM, interrupt)  # of the time that this process runs, however busy the machine
    try:
        for number in range(40):
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_VIRTUAL, 0.0003 * (number + 1))
                while rung == number:
                    door.fit(text, "results")
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert rung == 40


# ---- Dates.


def test_a_date_is_that_of_the_result(clone, monkeypatch):
    """asv's files have one date for all results of a benchmark."""
    writer = asv_files.Writer(asv_files.Store(), "m")
    for technique, day in (("numpy", "2026-11-20"), ("torch", "2026-11-22")):
        monkeypatch.setattr(runs.time, "strftime", lambda form, *_, day=day: day)
        writer.add(asv_files.catalogue.find("multiply", technique), result(technique, 40_000))
    monkeypatch.undo()
    monkeypatch.chdir(clone)
    dates = {each.technique: each.stored.date for each in asv_files.Store().load()[0]}
    assert dates == {"numpy": "2026-11-20", "torch": "2026-11-22"}


@pytest.mark.parametrize(("made", "shown"), [("2026-11-21", "2026-11-21"), ("2026-11-19", "by 2026-11-21")])
def test_an_older_result_without_a_date_was_measured_between_its_commit_and_the_newest(two, made, shown):
    (path,) = (two / "bad").glob("*-existing*.json")
    data = json.loads(path.read_text())
    days = {"2026-11-19": 1_795_046_400_000, "2026-11-21": 1_795_219_200_000}
    data["date"] = days[made]
    for columns in data["results"].values():
        columns[3] = days["2026-11-21"] + 3_600_000
    path.write_text(json.dumps(data))
    lines = [json.loads(line) for line in (two / "bad" / runs.FILE).read_text().splitlines()]
    without = [{key: value for key, value in line.items() if key != "date"} for line in lines]
    (two / "bad" / runs.FILE).write_text("".join(json.dumps(line) + "\n" for line in without))
    assert {each.stored.date for each in asv_files.Store().load()[0] if each.stored.machine == "bad"} == {shown}
