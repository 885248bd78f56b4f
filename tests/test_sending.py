"""Results go from one clone to another in a folder that gives nobody away, and ``verify`` finds whatever is wrong with
one that a stranger sent."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cloning import copy_repository, drawing_only, rewrite
from conftest import git, invoked
from lines import OBEYED, dumped, mutants
from rich.console import Console
from scaling import keep, plain, row
from test_door import SEVERAL
from test_hostile import HOSTILE
from test_site import cloned
from test_store import add, commit_later

from gpu_cookbook import catalogue, cli, doctor, machine, terminal
from gpu_cookbook.doctor import facts
from gpu_cookbook.render import tables
from gpu_cookbook.render.verdict import Shown
from gpu_cookbook.results import FirstResult, Metric, Timing
from gpu_cookbook.store import (
    asv_files,
    commits,
    door,
    private,
    runs,
    scaling,
    sending,
    sent,
    together,
    transfers,
    verifying,
)
from gpu_cookbook.store import limits as limits_of

ROOT = Path(__file__).parents[1]
MACHINE = "nvidia-rtx-4090"
GPU = machine.Gpu(0, "NVIDIA RTX 4090", 24 * 2**30, (8, 9))
FACTS = facts.Facts(
    processor="AMD Ryzen, 16 cores",
    executable="/home/ada/.venv/bin/python",
    frameworks=facts.FRAMEWORKS[:1],
    packages={"numpy": "2.4.6"},
    nvidia=machine.Nvidia("580.1", (13, 0), (GPU,)),
    probes={"NumPy": facts.Probe()},
    nvccs=(facts.Nvcc("/home/ada/cuda/bin/nvcc", "13.0.1", True),),
)


def gather():
    return FACTS, doctor.judge(FACTS)


def fill(name="mine"):
    """Results as 'compare --save' stores them."""
    writer = asv_files.Writer(asv_files.Store(), name)
    for technique in ("numpy", "torch", "dask"):
        for size in (40_000, 1_000_000):
            first = FirstResult(0.25) if size == 40_000 else None
            add(writer, technique, size, median=size * 4e-10, first=first, error=0.0, peak_memory=1e9)
    return writer


def prepare(clone, contributor="Ada"):
    store = asv_files.Store()
    sending.send(store, "mine", MACHINE, clone / "sent", contributor, gather)
    return clone / "sent" / MACHINE


def findings(folder, base=None, source="mine"):
    return verifying.verify(asv_files.Store(), folder, base, source).findings


def errors(folder, **arguments):
    return [f"{each.place}: {each.what}" for each in findings(folder, **arguments) if each.grave]


def notes(folder):
    return [f"{each.place}: {each.what}" for each in findings(folder) if not each.grave]


@pytest.fixture(scope="session")
def filled(repository, tmp_path_factory):
    """A clone with results of the machine "mine", and a folder of them that can be accepted."""
    root = tmp_path_factory.mktemp("filled")
    copy_repository(repository, root)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(root)
        patched.setenv("HOME", str(root))
        fill()
        assert errors(prepare(root)) == []
    return root


@pytest.fixture
def folder(clone, filled):
    """That folder, in a clone with the same results. Both have the same commit."""
    shutil.copytree(filled / "benchmarks/results", clone / "benchmarks/results")
    shutil.copytree(filled / "sent", clone / "sent")
    return clone / "sent" / MACHINE


# ---- Sending.


def test_what_is_sent_is_what_was_stored_and_needs_only_to_be_copied(clone, folder):
    assert {path.name for path in folder.iterdir()} == {
        *("machine.json", "runs.jsonl", "sent.jsonl", f"{git(clone, 'rev-parse', 'HEAD')[:8]}-{environment()}.json")
    }
    shutil.rmtree(clone / "benchmarks/results/mine")
    shutil.copytree(folder, clone / "benchmarks/results" / MACHINE)
    results, complaints = asv_files.Store().load()
    assert complaints == [] and len(results) == 6
    assert {(each.stored.machine, each.stored.contributor) for each in results} == {(MACHINE, "Ada")}
    assert results[0].device == "AMD EPYC, 2 cores"
    assert errors(clone / "benchmarks/results" / MACHINE) == []


def test_a_result_is_of_whoever_sent_its_commit_and_of_nobody_else(clone, folder):
    shutil.copy(folder / sent.FILE, clone / "benchmarks/results/mine")
    first = git(clone, "rev-parse", "HEAD")
    commit_later(clone)
    fill()
    for contributor, names in ((None, {"Ada", None}), ("Bob", {"Ada", "Bob"})):
        made = prepare(clone, contributor)
        results, complaints = asv_files.Store().load(made)
        assert {each.stored.contributor for each in results} == names and complaints == []
        assert {each.stored.contributor for each in results if each.stored.commit == first} == {"Ada"}
    assert sent.contributors([{"commit": "a", "contributor": name} for name in ("B", "A", "B")]) == {"a": "B and A"}


def test_each_commit_of_a_resumed_run_has_a_line_but_for_what_is_in_main_already(clone, folder):
    first = git(clone, "rev-parse", "HEAD")
    commit_later(clone)
    add(asv_files.Writer(asv_files.Store(), "mine", resume=True), "joblib", 40_000)
    second = git(clone, "rev-parse", "HEAD")
    made = prepare(clone)
    lines, _ = sent.lines(made)
    assert [line["commit"] for line in lines] == [first, second]
    assert lines[0] | {"commit": second} == lines[1]
    assert {each.stored.contributor for each in asv_files.Store().load(made)[0]} == {"Ada"}
    assert not [each for each in notes(made) if "has no line" in each]
    edit_lines(made / sent.FILE, lambda line: line.update(commit=second))
    assert f"sent.jsonl: has no line of the environment main about commit {first[:8]}" in notes(made)
    results = clone / "benchmarks/results"
    git(clone, "add", str(next((results / "mine").glob(f"{first[:8]}-*"))))  # who measured it is not asked again
    git(clone, "commit", "--quiet", "--message=results")
    made = prepare(clone, "Bob")
    assert [(line["commit"], line["contributor"]) for line in sent.lines(made)[0]] == [(second, "Bob")]


def test_versions_that_were_not_those_of_a_line_are_named_whichever_commit_it_is(clone, folder):
    first = git(clone, "rev-parse", "HEAD")
    commit_later(clone)
    add(asv_files.Writer(asv_files.Store(), "mine", resume=True), "joblib", 40_000)
    made = prepare(clone)
    assert not [each for each in notes(made) if "was measured with" in each]
    edit_lines(made / runs.FILE, lambda line: line["commit"] == first and line.update(versions="numpy 1.0"))
    (found,) = (each for each in notes(made) if "was measured with" in each)
    assert "a result was measured with numpy 1.0, not " in found


def test_each_environment_has_a_line_of_its_own_that_another_run_of_send_adds(clone, folder, monkeypatch):
    monkeypatch.setenv(machine.VARIABLE, "rapids")
    add(asv_files.Writer(asv_files.Store(), "mine", resume=True), "numpy", 40_000)
    monkeypatch.delenv(machine.VARIABLE)
    commit = git(clone, "rev-parse", "HEAD")
    for _ in range(2):
        made = prepare(clone)
        assert [line["environment"] for line in sent.lines(made)[0]] == ["main"]
        (found,) = (each for each in findings(made) if "has no line" in each.what)
        assert found.what == f"has no line of the environment rapids about commit {commit[:8]}"
        assert found.advice == "Where it was measured: GPU_COOKBOOK_ENVIRONMENT=rapids gpu-cookbook send …"
    in_rapids = lambda: (replace(FACTS, environment="rapids"), [])  # noqa: E731
    for _ in range(2):
        sending.send(asv_files.Store(), "mine", MACHINE, made.parent, "Ada", in_rapids)
        assert [line["environment"] for line in sent.lines(made)[0]] == ["main", "rapids"]
        assert not [each for each in notes(made) if "has no line" in each]


def test_a_line_of_an_environment_without_results_goes_when_there_is_a_right_one(clone):
    add(asv_files.Writer(asv_files.Store(), "mine"), "numpy", 40_000)
    for name, said in (("rapids", 1), ("main", 0)):
        in_environment = lambda name=name: (replace(FACTS, environment=name), [])  # noqa: E731
        made = sending.send(asv_files.Store(), "mine", MACHINE, clone / "sent", "Ada", in_environment)[0].parent
        assert [line["environment"] for line in sent.lines(made)[0]] == [name]
        assert len([each for each in notes(made) if "has no line of the environment main" in each]) == said


@pytest.mark.parametrize(
    ("nvidia", "words"),
    [
        (None, "no NVIDIA GPU"),
        (machine.Nvidia("580.1", (13, 0), ()), "no NVIDIA GPU"),
        (machine.Nvidia("580.1", (13, 0), (replace(GPU, name="NVIDIA L4"),)), "NVIDIA L4"),
        (FACTS.nvidia, None),
    ],
)
def test_results_that_were_sent_from_a_computer_without_their_gpu_are_named(clone, nvidia, words):
    gpu = {"device": GPU.name, "driver": "580.1", "cuda": "13.0"}
    add(asv_files.Writer(asv_files.Store(), "mine"), "cupy", 40_000, **gpu)
    there = lambda: (replace(FACTS, nvidia=nvidia), [])  # noqa: E731
    made = sending.send(asv_files.Store(), "mine", MACHINE, clone / "sent", "Ada", there)[0].parent
    found = [each for each in notes(made) if "was written on a computer" in each]
    said = f"sent.jsonl: was written on a computer with {words}, the results come from {GPU.name}"
    assert found == [said] * (words is not None)


def environment():
    return asv_files.existing(".".join(machine.python_version().split()[1].split(".")[:2]))


def test_what_is_known_of_the_computer_goes_along(clone, folder):
    (line,) = sent.lines(folder)[0]
    assert line["schema"] == sent.SCHEMA and line["commit"] == git(clone, "rev-parse", "HEAD")
    assert line["facts"]["gpus"] == [{"name": GPU.name, "memory_bytes": GPU.memory_bytes, "compute_capability": "8.9"}]
    assert line["facts"]["driver"] == "580.1"
    assert {"group": "Frameworks", "name": "NumPy", "value": "2.4.6", "status": "ok"} in line["doctor"]
    names = [each.split("==")[0] for each in line["packages"]]
    assert {"numpy", "asv", "numba"} <= {*names} and not {"pytest", "gpu-cookbook"} & {*names}
    assert "ada/" not in (folder / sent.FILE).read_text()


PRIVATE = (
    "cannot open /home/ada/x/lib.so: no",
    "/home/ada",
    "see file:///srv/secret",
    r"C:\Users\ada\x.py, line 1",
    "~/x and ../y",
    "ada@box.example.org said",
    "connect to 10.0.0.7 failed",
    "tcp://192.168.1.4:8786",
    "fe80::1ff:fe23:4567:890a",
    "52:54:00:ab:cd:ef",
    "GPU-12345678-1234-1234-1234-123456789012",
    "serial number 0324518012345",
    "on node7.cluster.lan",
    "ip-10-0-0-12",
    "host=10.0.0.7 refused",
    "lost gpu-box.local.",
    "on box17.cluster.internal: no",
)
HARMLESS = (
    "48 GB/s is more than this device can do",
    "needs an NVIDIA GPU, and none is found here",
    'no OpenCL driver found: pip install "pyopencl[pocl]"',
    "std::abs at 12:34:56, 1/2 and/or (a)/b",
    "see https://docs.cupy.dev/en/stable/install.html",
    "tcp://127.0.0.1:8786 and ::1",
    "AMD Ryzen Threadripper PRO 7995WX 96-Cores, 64 cores",
    "Linux 6.18.44-fc-v595",
    "numpy==10.1.2.3, not >=10.1.2.4",
    "threading.local() and numba.cuda.local.array",
)


def test_private_texts_are_found_and_taken_out():
    for text in PRIVATE:
        assert list(private.found(text)), text
        assert not list(private.found(private.scrubbed(text))), text
        assert not any(word in private.scrubbed(text) for word in ("ada", "10.0.0", "secret", "0324518012345")), text
    assert private.scrubbed(PRIVATE[0]) == "cannot open …/lib.so: no"
    for text in HARMLESS:
        assert private.scrubbed(text) == text and not list(private.found(text))
    assert not list(private.found("nvidia-cublas 13.1.0.3", "versions"))
    assert private.scrubbed("made by Ada on adabox", "reason", own=("ada", "adabox")) == "made by … on …"
    assert private.scrubbed("AMD EPYC, 2 cores", "device", own=("amd",)) == "AMD EPYC, 2 cores"


def test_nothing_private_is_sent_and_all_of_it_is_found(clone, folder):
    writer = asv_files.Writer(asv_files.Store(), "mine")
    techniques = [each.technique for each in catalogue.of_workload("multiply")][-len(PRIVATE) :]
    for technique, text in zip(techniques, PRIVATE, strict=True):
        add(writer, technique, 40_000, "failed", text)
    made = prepare(clone)
    assert errors(made) == []
    shutil.copyfile(clone / "benchmarks/results/mine" / runs.FILE, made / runs.FILE)
    found = [each for each in errors(made) if each.startswith(runs.FILE)]
    assert len(found) == verifying.MOST_ALIKE + 1 and "has a path: /home/ada/x/lib.so" in found[0]


def test_a_profile_is_not_sent_and_is_found(clone, folder):
    def profiled(data):
        for columns in data["results"].values():
            columns += [None] * (12 - len(columns)) + ["eJxLTEkEAAJIASU="]

    edit(results_file(clone / "benchmarks/results/mine"), profiled)
    made = prepare(clone)
    assert "eJxL" not in results_file(made).read_text() and errors(made) == []
    edit(results_file(made), profiled)
    assert all("has a profile of workloads.multiply" in each for each in errors(made)) and errors(made)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing",), "No results are stored for 'nothing'. There are: mine."),
        (("mien",), "No results are stored for 'mien'. Did you mean mine?"),
        (("../mine",), "No results are stored for '../mine'. Did you mean mine?"),
        (("",), "No results are stored for ''. There are: mine."),
        (("../mine", "--as", "x"), "No results are stored for '../mine'."),
        (("mine", "--as", "../x"), "'../x' is no name of a machine"),
        (("mine", "--as", "my box"), "'my box' is no name of a machine"),
        (("mine", "--as", ""), "'' is no name of a machine"),
        (("mine", "--as", "adas-box"), "is the name of your computer"),
        (("mine", "--from", ""), "--from takes a name or a handle"),
        (("mine", "--from", "a\nb"), "--from takes a name or a handle"),
        (("mine", "--from", "x" * 101), "--from takes a name or a handle"),
        (("mine", "--from", "\x1b[31m"), "--from takes a name or a handle"),
        (("mine", "--from", "ada@example.org"), "an address"),
        (("mine", "--output", ""), "it is empty: name a folder."),
        (
            ("mine", "--output", "asv.conf.json"),
            "asv.conf.json: Not a directory. Name a folder that you can write to by --output.",
        ),
        (("mine", "--output", "/proc/x"), "Cannot write into /proc/x: No such file or directory. Name a folder"),
        (("mine", "--output", "x" * 256), "x: File name too long. Name a folder"),
    ],
)
def test_what_cannot_be_sent_says_what_to_do(clone, folder, monkeypatch, arguments, words):
    monkeypatch.setattr(private, "own_names", lambda: ("/home/ada", "adas-box"))
    monkeypatch.setattr(facts, "gather", None)  # nothing that takes long comes first
    _, err = invoked("send", *arguments, code=2)
    assert words in plain(err) and not OBEYED.search(err)
    assert not (clone / "build").exists()


def test_a_file_that_asv_wrote_without_the_plugin_is_refused_with_what_to_do(clone, folder):
    rename_environment(clone / "benchmarks/results/mine", "existing-py_home_ada_.venv_bin_python", "/home/ada/python")
    with pytest.raises(commits.StoreError, match="path of a Python in the name of its environment.*Delete the file"):
        prepare(clone)


def rename_environment(folder, name, python):
    (path,) = folder.glob("*-existing*.json")
    data = json.loads(path.read_text())
    data |= {"env_name": name, "python": python, "params": data["params"] | {"python": python}}
    path.rename(path.with_name(f"{path.name[:8]}-{name}.json")).write_text(json.dumps(data))


def test_a_folder_of_somebody_else_is_not_replaced(clone, folder):
    prepare(clone)  # its own is
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(commits.StoreError, match=r"has files of others, such as thesis\.tex"):
        prepare(clone)
    assert (folder / "thesis.tex").exists()


def test_what_other_commands_measured_goes_along_and_is_shown_from_there(clone, folder):
    results = clone / "benchmarks/results"
    keep(results, "mine", [row(), row(workers=2)], git(clone, "rev-parse", "HEAD"))
    keep(results, "other", [row(workers=3)], git(clone, "rev-parse", "HEAD"))
    limits = {"device": "d", "driver": "1", "date": "2026-11-21", "commit": git(clone, "rev-parse", "HEAD"), "rows": []}
    (results / "limits.jsonl").write_text("".join(json.dumps(limits | {"machine": m}) + "\n" for m in ("mine", "o")))
    steps = [{"step": "pageable", "time_s": 0.3, "q1_s": 0.29, "q3_s": 0.31, "samples": 15}]
    moved = limits | {"processor": "p", "versions": "Python 3.12.3", "elements": 2**28, "steps": steps}
    del moved["rows"]
    launched = moved | {"elements": 1, "steps": [steps[0] | {"step": "cupy_4_resident"}]}
    loaded = launched | {"steps": [steps[0] | {"step": "memories_l2_read", "moved_bytes": 2**30}]}
    handover = {"producer": "cupy", "consumer": "torch", "way": "dlpack", "reason": ""}
    handover |= {"shared": True, "right": True, "seen": True, "waits": "GPU"}
    handed = moved | {"handovers": [handover], "missing": {}, "pool": {"cupy": ""}}
    del handed["elements"], handed["steps"]
    lines = {transfers.FILE: moved, transfers.LAUNCHES: launched, transfers.CONCEPTS: loaded, together.FILE: handed}
    for file, each in lines.items():
        (results / file).write_text("".join(json.dumps(each | {"machine": m}) + "\n" for m in ("mine", "o")))
    made = prepare(clone)
    assert errors(made) == []
    assert [line["machine"] for _, line in door.read_lines(made / "limits.jsonl", "limits")[0]] == [MACHINE]
    (results / scaling.FILE).unlink()
    for file in (*lines, limits_of.FILE):
        (results / file).unlink()
    shutil.copytree(made, results / MACHINE)
    assert (list(limits_of.kept(results)[0]), limits_of.kept(results)[1]) == ([MACHINE], [])
    rows, complaints = scaling.kept_of(results, MACHINE)
    assert {each.workers for each in rows} == {1, 2} and complaints == []
    assert {each.origin.contributor for each in rows} == {"Ada"}
    runs_of, complaints = transfers.kept(results)
    assert runs_of[MACHINE].seconds("pageable") == 0.3 and complaints == []
    runs_of, complaints = transfers.kept(results, transfers.LAUNCHES)
    assert runs_of[MACHINE].seconds("cupy_4_resident") == 0.3 and complaints == []
    runs_of, complaints = transfers.kept(results, transfers.CONCEPTS)
    assert runs_of[MACHINE].steps["memories_l2_read"].moved == 2**30 and complaints == []
    (run,), complaints = together.every(results)
    assert (run.origin.machine, run.pool, complaints) == (MACHINE, {"cupy": ""}, [])


@pytest.mark.parametrize("file", [transfers.FILE, transfers.LAUNCHES, transfers.CONCEPTS])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"machine": "another"}, "belongs to another, not to"),
        ({"elements": 0}, "['elements']"),
        ({"commit": "1" * 40}, "belongs to a commit that this repository does not have"),
        ({"processor": "at /home/ada/cpu"}, "has "),
    ],
)
def test_a_line_of_transfers_launches_or_concepts_that_cannot_be_used_is_an_error(file, change, words, clone, folder):
    line = {"machine": MACHINE, "device": "d", "driver": "1", "date": "2026-11-21", "processor": "p", "elements": 1}
    line |= {"versions": "Python", "commit": git(clone, "rev-parse", "HEAD"), "steps": [{"step": "x", "reason": "y"}]}
    (folder / file).write_text(json.dumps(line) + "\n")
    assert errors(folder) == []
    (folder / file).write_text(json.dumps(line | change) + "\n")
    assert any(each.startswith(f"{file}, line 1: {words}") for each in errors(folder)), errors(folder)


def test_lines_that_are_in_both_places_count_once(clone, folder):
    results = clone / "benchmarks/results"
    keep(results, MACHINE, [row()], git(clone, "rev-parse", "HEAD"))
    (results / MACHINE).mkdir()
    shutil.copy(results / scaling.FILE, results / MACHINE)
    assert len(scaling.kept(results)[0]) == 1
    shutil.copy(folder / sent.FILE, results / MACHINE)  # now only one of them has a name
    (run,) = scaling.kept(results)[0]
    assert run.origin.contributor == "Ada"
    shutil.move(results / MACHINE, results / "x")
    _, (complaint,) = scaling.kept(results)
    assert complaint.endswith(f"belongs to {MACHINE}, not to x")


# ---- Verifying: one fault at a time.


def edit(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def edit_lines(path, change):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        change(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def results_file(folder):
    (path,) = (path for path in folder.glob("*.json") if path.name != "machine.json")
    return path


def test_each_fault_is_named_and_keeps_the_folder_out(folder):
    good = folder.with_name("good")
    folder.rename(good)

    def fault(words, *changes):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(good, folder)
        for change in changes:
            change()
        assert any(words in each for each in errors(folder)), (words, errors(folder))

    def of_lines(**changes):
        return lambda: edit_lines(folder / runs.FILE, lambda line: line.update(changes))

    def of_sent(**changes):
        return lambda: edit_lines(folder / sent.FILE, lambda line: line.update(changes))

    def first_time(data, value):
        data["results"]["workloads.multiply.time_transfer"][0] = [
            each if each != each or each is None else value
            for each in data["results"]["workloads.multiply.time_transfer"][0]
        ]

    fault("machine.json: is missing", lambda: (folder / "machine.json").unlink())
    fault("sent.jsonl: is missing", lambda: (folder / sent.FILE).unlink())
    fault("results: there are none", lambda: results_file(folder).unlink())
    fault("belongs to the machine x", lambda: edit(folder / "machine.json", lambda d: d.update(machine="x")))
    h100, h200 = {"gpu": "NVIDIA H100 NVL, NVIDIA H100 NVL"}, {"gpu": "NVIDIA H200"}
    of_machine = lambda: edit(folder / "machine.json", lambda d: d.update(h100))  # noqa: E731
    words = "has results of NVIDIA H200, machine.json has"
    fault(f"runs.jsonl: {words} 2 × NVIDIA H100 NVL", of_machine, of_lines(device="NVIDIA H200", driver="580.1"))
    too_many = of_lines(device="3 × NVIDIA H100 NVL", driver="580.1")
    fault("runs.jsonl: has results of 3 × NVIDIA H100 NVL, machine.json has 2 × NVIDIA", of_machine, too_many)
    of_one = lambda: edit(results_file(folder), lambda d: d["params"].update(gpu="NVIDIA H100 NVL"))  # noqa: E731
    fault("has results of NVIDIA H100 NVL, machine.json has 2 × NVIDIA H100 NVL", of_machine, of_one)
    of_results = lambda: edit(results_file(folder), lambda d: d["params"].update(h200))  # noqa: E731
    fault(f"py{sys.version_info[0]}.{sys.version_info[1]}.json: {words} 2 × NVIDIA H100 NVL", of_machine, of_results)
    of_another = of_lines(device="NVIDIA H100 NVL", driver="580.1")
    words = f"has results of NVIDIA H100 NVL, {results_file(folder).name} has NVIDIA H200"
    fault(f"runs.jsonl: {words}", of_results, of_another)
    fault("its environment is named existing-py_home_ada_python", lambda: rename_environment(
        folder, "existing-py_home_ada_python", "3.12"))  # fmt: skip
    fault("its Python /usr/bin/python", lambda: rename_environment(folder, "existing-py3.12", "/usr/bin/python"))
    fault("asv would not find it", lambda: results_file(folder).rename(folder / "12345678-existing-py3.12.json"))
    fault("on which device and with which versions 6 results came about", lambda: (folder / runs.FILE).unlink())
    fault("sent.jsonl, line 1: ['schema']", of_sent(schema=2))
    fault("sent.jsonl, line 1: ['packages'][0]", of_sent(packages=["numpy @ file:///home/ada/numpy"]))
    fault("sent.jsonl, line 1: has an address", of_sent(contributor="ada@example.org"))
    fault("runs.jsonl, line 1: has a serial number", of_lines(clock="GPU-12345678-1234-1234-1234-123456789012"))
    fault("belongs to a commit that this repository does not have", lambda: edit(
        results_file(folder), lambda d: d.update(commit_hash="f" * 40)))  # fmt: skip
    fault("asv would order it wrongly", lambda: edit(results_file(folder), lambda d: d.update(date=1)))
    fault("which is in the future", of_lines(date="2999-01-01"))
    fault("before there was that commit", of_lines(date="1999-01-01"))
    fault("different numbers: resident", of_lines(values={"resident": 2e-5}))
    fault(": cannot be true: ", of_lines(cache_bandwidth_gb_per_s=1.0, copy_bandwidth_gb_per_s=1.0))
    fault("does not enclose the median", lambda: edit(results_file(folder), lambda d: first_time(d, 1e-9)))


def test_parts_that_asv_was_asked_for_one_after_another_are_no_forgery(folder):
    """asv run --bench stores one metric, and its line has that alone: the others are those of an older line. A newer
    line with another number of a metric is one that was edited."""

    def without_transfer(data):
        del data["results"]["workloads.multiply.time_transfer"]

    edit(results_file(folder), without_transfer)
    lines = [json.loads(line) for line in (folder / runs.FILE).read_text().splitlines()]
    for metric in ("transfer", "resident"):  # measured again; of the first, nothing is stored here
        with (folder / runs.FILE).open("a") as file:
            for line in lines:
                values = {name: 1.5 * value for name, value in line.get("values", {}).items() if name == metric}
                file.write(json.dumps(line | {"values": values}) + "\n")
        different = [each for each in errors(folder) if "have different numbers: resident" in each]
        assert bool(different) == (metric == "resident")
        assert errors(folder) == different
    assert "asv's file has not all metrics that were measured of 6 results" in "\n".join(notes(folder))


def test_a_commit_that_only_the_sender_has_is_named(clone, folder):
    base = git(clone, "rev-parse", "HEAD")
    git(clone, "switch", "--quiet", "--orphan", "elsewhere")
    git(clone, "checkout", "--quiet", base, "--", ".")
    git(clone, "commit", "--quiet", "--message=other")
    assert any("is not part of HEAD's history" in each for each in errors(folder, base="HEAD"))
    assert errors(folder, base=base) == []


def test_a_recipe_that_its_commit_does_not_have_is_named(clone, folder):
    before = git(clone, "rev-parse", "HEAD")
    path = clone / "recipes/multiply/with_torch.py"
    text = path.read_text()
    path.unlink()
    git(clone, "commit", "--quiet", "--all", "--message=without")
    after = git(clone, "rev-parse", "HEAD")
    path.write_text(text)
    results_file(folder).rename(folder / results_file(folder).name.replace(before[:8], after[:8]))
    for file in folder.iterdir():  # as if it had been measured all the same
        file.write_text(file.read_text().replace(before, after))
    (found,) = (each for each in errors(folder) if "does not have" in each)
    assert f"has results of recipes/multiply/with_torch.py, which its commit, {after[:8]}, does not have" in found


def test_a_folder_of_many_faults_names_the_first_ones_and_their_number(folder):
    with (folder / runs.FILE).open("a") as file:
        file.write("{}\n" * 1_000)
    found = errors(folder)
    assert len(found) == verifying.MOST_ALIKE + 1
    assert found[-1] == "runs.jsonl: and 990 more like these"


def test_the_base_is_the_project_s_main_branch_as_far_as_it_is_known(clone):
    store = asv_files.Store()
    git(clone, "switch", "--quiet", "--create", "mine")
    git(clone, "branch", "--quiet", "--delete", "--force", "main")
    assert sending.default_base(store.root) == "HEAD"
    git(clone, "branch", "main")
    assert sending.default_base(store.root) == "main"
    git(clone, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert sending.default_base(store.root) == "origin/main"
    commit_later(clone)
    fill(MACHINE)
    assert any("is not part of origin/main's history" in each for each in errors(store.folder / MACHINE))


def test_what_is_missing_failed_doubtful_or_stale_is_a_note(clone, folder):
    writer = asv_files.Writer(asv_files.Store(), "mine", resume=True)
    add(writer, "joblib", 40_000, "failed", "3 of 4 elements are wrong")
    add(writer, "cupy", 40_000, "skipped", "needs an NVIDIA GPU")
    add(writer, "ray", 40_000, doubts={Metric.RESIDENT: "another program ran"}, timings={
        Metric.RESIDENT: Timing.of([1e-5, 1e-5, 3e-5, 4e-5])})  # fmt: skip
    rewrite(clone / "recipes/multiply/with_dask.py", "# other\n")
    commits.changed_since.cache_clear()
    made = prepare(clone)
    assert errors(made) == []
    found = "\n".join(notes(made))
    commit = git(clone, "rev-parse", "HEAD")[:8]
    for words in (
        f"multiply joblib 40,000, {commit}: failed: 3 of 4 elements are wrong",
        "completeness: not measured at all: convolution, group_mean, group_mean_strings",
        "not measured: multiply cuda_core, multiply cuda_core_tuned, multiply cupy at 1,000,000",
        "skipped, multiply cupy: needs an NVIDIA GPU",
        f"doubts: ? multiply ray 40,000, {commit} resident: another program ran",
        "noise: 1 of 13 times is noisy (~): multiply ray",
        "staleness: 2 of 9 results that are shown are of code that has changed since: multiply dask",
        "plausibility: nothing else was measured on AMD EPYC, 2 cores",
    ):
        assert words in found, (words, found)
    for source, name in (("mine", "mine"), (None, "mine"), (None, MACHINE)):
        if name == MACHINE:  # as somebody else finds it, who has nothing of the sender's
            shutil.rmtree(clone / "benchmarks/results/mine")
        advice = {each.place: each.advice for each in findings(made, source=source) if "--machine" in each.advice}
        save = f"gpu-cookbook compare --save --machine {name}"
        assert advice["completeness"] == f"{save} --resume measures what is missing."
        assert advice["noise"] == advice["doubts"]
        assert advice["noise"] == f"Stop other work, and measure these again: {save} -t TECHNIQUE."


def test_what_is_missing_or_noisy_is_measured_in_its_own_environment(clone, folder, monkeypatch):
    noisy = {Metric.RESIDENT: Timing.of([1e-5, 1e-5, 3e-5, 4e-5])}
    for environment in ("main", "rapids"):
        monkeypatch.setenv(machine.VARIABLE, environment)
        add(asv_files.Writer(asv_files.Store(), "mine", resume=True), "numpy", 40_000, timings=noisy)
    made = prepare(clone)
    save = "gpu-cookbook compare --save --machine mine"
    in_main, in_rapids = f"GPU_COOKBOOK_ENVIRONMENT=main {save}", f"GPU_COOKBOOK_ENVIRONMENT=rapids {save}"
    for environment, main, rapids in (("main", save, in_rapids), ("rapids", in_main, save)):
        monkeypatch.setenv(machine.VARIABLE, environment)
        said = [(each.what, each.advice) for each in findings(made) if save in each.advice]
        missing = {advice for what, advice in said if what.startswith("not measured at all")}
        assert missing == {f"{command} --resume measures what is missing." for command in (main, rapids)}
        again = {advice for what, advice in said if "is noisy" in what}
        assert again == {f"Stop other work, and measure these again: {name} -t TECHNIQUE." for name in (main, rapids)}


def test_a_machine_that_was_busy_is_not_accepted(clone):
    writer = fill()
    noisy = {Metric.RESIDENT: Timing.of([1e-5, 1e-5, 3e-5, 4e-5])}
    for technique in ("ray", "joblib", "pyopencl"):
        for size in (40_000, 1_000_000):
            add(writer, technique, size, doubts={Metric.RESIDENT: "busy"}, timings=noisy if size == 40_000 else {
                Metric.RESIDENT: Timing.of([4e-4, 4e-4, 9e-4, 9e-4])})  # fmt: skip
    # Each is noisy as well as doubtful, and counts once.
    assert errors(prepare(clone)) == ["noise: 6 of 18 times are noisy or doubtful; at most a quarter may be"]


# ---- Beside machines that are alike.


def another(name, factor):
    writer = asv_files.Writer(asv_files.Store(), name)
    for technique in ("numpy", "torch", "dask"):
        for size in (40_000, 1_000_000):
            add(writer, technique, size, median=size * 4e-10 * factor, error=0.0, peak_memory=1e9)


def test_a_machine_like_others_is_near_them_and_one_that_is_not_is_named(clone, folder):
    another("near", 1.5)
    assert any("nothing else was measured on" in each for each in notes(folder))  # nobody but the sender has it
    commit_all(clone)
    assert any("18 of 18" in each or "numbers are near those of machines alike" in each for each in notes(folder))
    assert errors(folder) == []
    shutil.rmtree(clone / "benchmarks/results/near")
    another("far", 10)
    commit_all(clone)
    (found,) = errors(folder)
    assert "are far from those of the same code on the same device" in found
    assert any("resident is 0.100 × that on AMD EPYC, 2 cores elsewhere" in each for each in notes(folder))


def test_what_was_copied_from_another_machine_is_named(clone, folder):
    results = clone / "benchmarks/results"
    assert errors(folder, source=None) == []  # from the sender's own results, which nobody else has
    commit_all(clone)
    assert errors(folder, source=None) == ["plausibility: 12 times are those of mine to the last digit"]
    shutil.rmtree(results / "mine")
    assert errors(folder, source=None) == []


# ---- Verifying: folders made to harm.


def test_what_is_no_plain_file_is_named_and_nothing_is_read(folder, monkeypatch):
    monkeypatch.setattr(door, "_content", lambda path: pytest.fail("something was read"))
    (folder / "12345678-x.json").symlink_to("/etc/passwd")
    os.mkfifo(folder / "87654321-x.json")
    (folder / "12121212-x.json").mkdir()
    (folder / "a\x1b[31m.txt").write_text("x")
    (folder / ".git").mkdir()
    with (folder / "runs.jsonl").open("ab") as file:
        file.truncate(door.MOST_BYTES + 1)
    found = "\n".join(errors(folder))
    for words in ("json: is a link", "87654321-x.json: is no regular file", "12121212-x.json: is a folder"):
        assert words in found
    assert "a\\x1b[31m.txt: is not a file of results" in found and ".git: is a folder" in found
    assert "runs.jsonl: is larger than 8 MiB" in found


def test_too_many_files_and_too_large_a_folder_are_named(folder, monkeypatch):
    monkeypatch.setattr(verifying, "MOST_FILES", 3)
    monkeypatch.setattr(verifying, "MOST_TOTAL", 1000)
    words = [each.partition(": ")[2] for each in errors(folder)]
    assert words == ["has more than 3 files", "is larger than 0 MiB"]


def test_a_link_to_a_folder_is_none(clone, folder):
    (clone / "link").symlink_to(folder)
    (found,) = errors(clone / "link")
    assert found.endswith("is not a folder")


@pytest.mark.parametrize("few", [5, pytest.param(SEVERAL // 4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["results", "machine.json", runs.FILE, sent.FILE, scaling.FILE])
def test_a_folder_that_was_changed_anywhere_gets_a_verdict(clone, folder, name, few):
    keep(clone / "benchmarks/results", "mine", [row(), row(workers=2)], git(clone, "rev-parse", "HEAD"))
    made = prepare(clone)
    path = results_file(made) if name == "results" else made / name
    first, *others = path.read_text().splitlines()
    out = terminal.console()
    refused, store = 0, asv_files.Store()
    for at, value, changed in mutants(json.loads(first), few):
        path.write_text("\n".join([dumped(changed), *others]) + "\n")
        verdict = verifying.verify(store, made, source="mine")
        with out.capture() as captured:
            out.print(Shown(verdict))
        assert not OBEYED.search(captured.get().replace("\n", "")), (at, value)
        refused += bool(verdict.errors)
    assert refused


@pytest.mark.parametrize(
    "name",
    ["machine.json", *sending.LINES, "12345678-x.json"],
)
def test_any_content_of_any_file_is_an_error_in_words(folder, name):
    store = asv_files.Store()
    for content in (b"\x00", b"\xff\xfe", b"[" * 100_000, b"1" * 5_000, b"null", b"NaN", b"[NaN, 1e999]"):
        (folder / name).write_bytes(content)
        found = [each.place for each in verifying.verify(store, folder, source="mine").findings if each.grave]
        assert any(place.startswith(name) for place in found), (content[:9], found)


def test_no_text_of_a_folder_is_obeyed(folder):
    first = json.loads((folder / runs.FILE).read_text().splitlines()[0])
    techniques = [each.technique for each in catalogue.of_workload("multiply")]
    for technique, value in zip(techniques, HOSTILE[:-1], strict=False):
        made = first | {"technique": technique, "status": "failed", "reason": value, "environment": "a/home/x"}
        with (folder / runs.FILE).open("a") as file:
            file.write(json.dumps(made) + "\n" + json.dumps(made | {value: value, "status": value}) + "\n")
        edit_lines(folder / sent.FILE, lambda line, value=value: line["doctor"].append(
            {"group": "x", "name": value[:99], "value": value[:99], "status": "broken"}))  # fmt: skip
        edit(folder / "machine.json", lambda data, value=value: data.update({"os": value, value[:50]: value}))
    for more in ((), ("--format", "json")):
        out, err = invoked("verify", str(folder), *more, code=1)
        assert not OBEYED.search(out.replace("\n", "")) and not err


def test_a_sender_s_name_is_escaped_wherever_it_is_shown(folder):
    for value in ("<script>alert(1)</script>", "[x](javascript:1)", "=HYPERLINK(1)", "[bold red]a[/]", "| a |"):
        edit_lines(folder / sent.FILE, lambda line, value=value: line.update(contributor=value))
        results, complaints = asv_files.Store().load(folder)
        assert complaints == []
        page = terminal.table_text(tables.measured(results), terminal.TableFormat.html)
        assert "sent by" in page and "<script" not in page and 'href="javascript' not in page
        assert value in terminal.table_text(tables.measured(results), terminal.TableFormat.table).replace("\n", " ")


# ---- The commands.


def test_send_says_where_the_folder_lies_and_what_to_do_and_verify_agrees(clone, folder, monkeypatch):
    monkeypatch.setattr(facts, "gather", lambda: FACTS)
    out, _ = invoked("send", "mine", "--as", MACHINE, "--from", "Ada")
    assert f"In build/send/{MACHINE}, of which nothing was sent anywhere:" in out
    assert f"git add benchmarks/results/{MACHINE} && git commit" in out
    out, _ = invoked("verify", "build/send", code=1)
    assert "has folders of machines" in out and "Name one of them." in out
    out, _ = invoked("verify", f"build/send/{MACHINE}")
    assert "sent by Ada; compared with" in out and "it can be accepted" in out
    out, _ = invoked("verify", f"build/send/{MACHINE}", "--format", "json")
    (verdict,) = json.loads(out)
    assert verdict["accepted"] and {each["severity"] for each in verdict["findings"]} == {"note"}
    (clone / "build/send" / MACHINE / "x").write_text("")
    out, _ = invoked("verify", f"build/send/{MACHINE}", code=1)
    assert "error  x: is not a file of results" in out and "1 error, 0 notes: it cannot be accepted as it is" in out


def test_a_command_that_verify_advises_is_one_line_in_a_narrow_terminal(clone, folder, monkeypatch):
    monkeypatch.setattr(cli, "console", lambda: Console(highlight=False, width=60))
    lines = invoked("verify", str(folder))[0].splitlines()
    command = "gpu-cookbook compare --save --machine mine --resume measures what is missing."
    assert f"       -> {command}" in lines
    assert max(len(line) for line in lines if "gpu-cookbook" not in line) <= 60


def test_a_disk_that_gets_full_is_said_and_nothing_is_left_on_it(clone, folder, monkeypatch):
    def write(path, text):
        path.touch()
        if path.name == sent.FILE:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(facts, "gather", lambda: FACTS)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", write)
        _, err = invoked("send", "mine", "--as", MACHINE, "--output", "full", code=2)
    what = f"Cannot write into {clone / 'full'}: No space left on device."
    assert err == f"{what} Name a folder that you can write to by --output.\n"
    assert not any((clone / "full").iterdir())


def test_with_errors_send_says_only_what_to_mend(clone, folder, monkeypatch):
    monkeypatch.setattr(facts, "gather", lambda: FACTS)
    edit_lines(clone / "benchmarks/results/mine" / runs.FILE, lambda line: line.update(date="2999-01-01"))
    out, err = invoked("send", "mine", "--as", MACHINE, code=1)
    assert "1 error, " in out and "it cannot be accepted as it is" in out and "git add" not in out
    assert err == "Mend this error, then run send again.\n"


def test_what_is_no_machine_s_folder_is_refused_without_advice_to_remove_what_is_there(clone):
    (clone / "empty").mkdir()
    for name in (".", "recipes", "benchmarks", "empty"):
        (found,) = verifying.verify(asv_files.Store(), Path(name)).findings
        assert (found.grave, found.place, found.advice) == (True, name, "")
        assert found.what == "is not a machine's folder: name one that gpu-cookbook send wrote"


def test_verify_says_what_it_needs(clone):
    _, err = invoked("verify", "", code=2)
    assert "it is empty: name a folder." in plain(err)
    _, err = invoked("verify", code=2)
    assert "gpu-cookbook verify --since origin/main" in err
    _, err = invoked("verify", "nowhere\x1b", code=2)
    assert "There is no folder nowhere\\x1b" in err
    for name in ("nowhere", "--all", "-x"):
        _, err = invoked("verify", f"--since={name}", code=2)
        assert f"'{name}' is no commit with which this branch shares history" in err


def test_a_pull_request_is_verified_by_what_it_touches(clone, folder):
    git(clone, "branch", "base")
    results = clone / "benchmarks/results"
    shutil.rmtree(results)
    out, _ = invoked("verify", "--since", "base")
    assert out == "No results differ since base.\n"
    shutil.copytree(folder, results / MACHINE)
    fill()  # what it was sent from
    shutil.move(results / MACHINE, clone / "aside")
    (results / "benchmarks.json").unlink()
    out, _ = invoked("verify", "--since", "base")
    assert "mine: was left out" in out and out.endswith("0 errors, 1 note: nothing was looked at.\n\n")
    (verdict,) = json.loads(invoked("verify", "--since", "base", "--format", "json")[0])
    assert verdict["accepted"] is False
    shutil.move(clone / "aside", results / MACHINE)
    out, _ = invoked("verify", "--since", "base")
    assert (
        f"benchmarks/results/{MACHINE}" in out and "it can be accepted" in out and "benchmarks/results/mine" not in out
    )
    assert "mine: was left out: git does not track it" in out
    shutil.rmtree(results / "mine")
    git(clone, "add", "benchmarks")
    git(clone, "commit", "--quiet", "--message=results")
    keep(results, "m", [row()], git(clone, "rev-parse", "HEAD"))
    (results / "x.sh").write_text("x")
    rewrite(clone / "recipes/multiply/with_numpy.py", "# other\n")
    out, _ = invoked("verify", "--since", "base", code=1)
    assert "x.sh: is not a file of results" in out
    assert "a machine's lines belong into its own folder" in out
    assert "recipes/multiply/with_numpy.py: has changed as well" in out


def test_results_of_a_pull_request_s_own_code_are_not_accepted(clone):
    git(clone, "branch", "base")
    commit_later(clone)
    fill(MACHINE)
    git(clone, "add", "benchmarks")
    out, _ = invoked("verify", "--since", "base", code=1)
    assert "is not part of base's history" in out


def test_a_stored_machine_that_is_removed_is_named(clone, folder):
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message=results")
    git(clone, "branch", "base")
    shutil.rmtree(clone / "benchmarks/results/mine")
    out, _ = invoked("verify", "--since", "base", code=1)
    assert "mine: was removed" in out


@pytest.fixture
def stored(clone, folder):
    """That clone, with the results in the commit "base"."""
    keep(clone / "benchmarks/results", "mine", [row()], git(clone, "rev-parse", "HEAD"))
    commit_all(clone)
    git(clone, "branch", "base")
    return clone / "benchmarks/results"


def commit_all(clone):
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message=results")


def differs():
    return [f"{each.place}: {each.what}" for each in verifying.touched(asv_files.Store(), "base")[1] if each.grave]


def test_what_is_stored_may_only_grow(clone, stored):
    path = stored / "mine" / runs.FILE
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[1:], json.dumps(json.loads(lines[0]), sort_keys=True) + "\n", lines[1]]))
    assert differs() == []
    path.write_text("".join(lines[2:]))
    assert differs() == [f"mine/{runs.FILE}: lacks 2 lines of those that were there: lines may only be added"]
    removed = (results_file(stored / "mine"), path, stored / scaling.FILE)
    for each in removed:
        each.unlink()
    commit_all(clone)
    assert differs() == [f"{each.relative_to(stored)}: was removed" for each in removed]


def test_another_stored_machine_is_not_replaced(clone, stored):
    shutil.copytree(stored / "mine", stored / "other")
    store = asv_files.Store()
    for name in ("other", "mine"):  # the one is in the folder, the other in the commit
        with pytest.raises(commits.StoreError, match="is another machine that is stored already"):
            sending.send(store, {"other": "mine", "mine": "other"}[name], name, clone / "sent", None, gather)
    with pytest.raises(commits.StoreError, match="is where results are stored"):
        sending.send(store, "other", "new", stored / "x", None, gather)
    for name, replaces in (("new", False), ("other", True)):
        (clone / name).mkdir()
        (clone / name / sent.FILE).write_text("")
        text = "\n".join(sending.described(store, clone / name, [clone / name / sent.FILE]))
        assert (f"rm -rf benchmarks/results/{name} &&" in text) == replaces


@pytest.mark.slow
def test_the_machines_that_are_stored_would_be_accepted(tmp_path, monkeypatch):
    """Of those that are committed: what is asked of strangers is asked of these."""
    git(tmp_path, "clone", "--quiet", ROOT, "clone")
    monkeypatch.chdir(tmp_path / "clone")
    store = asv_files.Store()
    machines = [path.parent for path in store.folder.glob("*/machine.json")]
    verdicts = verifying.verify_all(store, machines, "HEAD")
    assert {Path(each.name).name for each in verdicts} >= {each.name for each in machines} != set()
    assert [one for each in verdicts for one in each.findings if one.grave] == []


@pytest.mark.slow
def test_the_site_shows_a_machine_that_came_in_without_any_edit(tmp_path, monkeypatch):
    root = cloned(tmp_path / "clone")
    monkeypatch.chdir(root)
    # The tool that runs is that of ROOT, which is the same but for what is not committed there.
    monkeypatch.setattr(asv_files.Writer, "_refuse_another_installation", lambda self: None)
    writer = asv_files.Writer(asv_files.Store(), "mine")
    for technique in ("numpy", "cupy"):
        gpu = {"device": GPU.name, "driver": "580.1", "cuda": "13.0"} if technique == "cupy" else {}
        monkeypatch.setattr(runs.machine, "is_gpu", lambda device: False)
        add(writer, technique, 40_000, error=0.0, **gpu)
    keep(root / "benchmarks/results", "mine", [row(), row(workers=2)], git(root, "rev-parse", "HEAD"))
    made = prepare(root, "Ada <b>")
    git(root, "checkout", "--quiet", "--", ".")
    shutil.rmtree(root / "benchmarks/results/mine")
    shutil.copytree(made, root / "benchmarks/results" / MACHINE)
    with (root / "docs/conf.py").open("a") as file:
        file.write(drawing_only(MACHINE))
        file.write("from sphinx.builders.html import StandaloneHTMLBuilder\nStandaloneHTMLBuilder.search = False\n")
    # All are read, and those that show the machine are written, without the search: the others would take as long.
    pages = [f"{kind}/{MACHINE}{page}" for kind in ("machines", "history") for page in ("", "/multiply")]
    pages = [f"docs/{page}.md" for page in (*pages, "compare", "history", "recipes/multiply")]
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", "built", *pages]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (root / f"built/machines/{MACHINE}.html").read_text()
    assert "<path" in (root / f"built/machines/{MACHINE}/multiply.html").read_text()
    assert "These results were sent by Ada &lt;b&gt;." in page and GPU.name in page
    assert "<h2>From one core to every GPU" in page
    for name, target in (("compare", ""), ("recipes/multiply", "/multiply")):
        assert f"machines/{MACHINE}{target}.html" in (root / f"built/{name}.html").read_text()
    assert "sent by Ada &lt;b&gt;" in (root / "built/compare.html").read_text()
