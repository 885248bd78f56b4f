"""docs/together and benchmarks/together.py: the scripts hand arrays over on the CPU, and what they do wrong is found
out; what comes of it is stored, read and shown. The lines here are made up."""

import re
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from conftest import altered, committed, git
from lines import loaded, page_of, require_that_changes_cost_one_line, write

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import together as shown
from gpu_cookbook.run import together as run
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.store import commits
from gpu_cookbook.store import together as store
from gpu_cookbook.store.commits import StoreError
from gpu_cookbook.together import DLPACK, GPU, HOST, INTERFACE, LIBRARIES, NOBODY, Handover, by_pair

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "docs" / "together"
PAGE = ROOT / "docs" / "together.md"
SHARING = ("numpy", "torch", "jax", "warp")  # memory of the host, through DLPack

benchmark = loaded(ROOT / "benchmarks" / "together.py")


def script(name):
    return SCRIPTS / f"with_{name}.py"


def skipped_without(*names):
    for name in names:
        if obstacle := machine.obstacle(catalogue.read(script(name))):
            pytest.skip(f"{name}: {obstacle}")


def library(name, *change, folder=None):
    """The script as it is, or a copy in which some text is another."""
    path = altered(script(name), *change, folder) if change else script(name)
    return run.Library(name, Loader(catalogue.read(path)).execute())


# ---- The scripts.


@pytest.mark.parametrize("name", LIBRARIES)
def test_form(name):
    recipe = catalogue.read(script(name))
    assert recipe.framework == LIBRARIES[name] and recipe.follows and not recipe.fault
    assert {"from_host", "to_host", "add_one", "wait"} <= {*recipe.functions}
    assert {"hand_out", "address"} <= {*recipe.functions} or name == "pyopencl"


def test_there_is_a_script_of_each_library_and_the_page_has_it():
    assert {path.name for path in SCRIPTS.glob("with_*.py")} == {script(name).name for name in LIBRARIES}
    page = PAGE.read_text(encoding="utf-8")
    included = re.findall(r"^```\{literalinclude\} together/(.+\.py)$", page, re.M)
    assert sorted(included) == sorted(path.name for path in SCRIPTS.glob("*.py"))
    assert f"{run.SIZE:,} float32 numbers" in page


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_a_script_runs_by_itself(path, tmp_path):
    if obstacle := machine.obstacle(catalogue.read(path)):
        pytest.skip(obstacle)
    done = subprocess.run([sys.executable, "-I", path], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout.endswith("all right\n"), done.stderr


def test_the_kernel_in_c_compiles():
    from gpu_cookbook.run.cuda_core import Program, ProgramOptions

    _, _, _, code, *_ = script("cuda_core").read_text(encoding="utf-8").split('"""')
    assert Program(code, "c++", ProgramOptions(arch="sm_90")).compile("cubin").code[:4] == b"\x7fELF"


def test_what_cuda_core_hands_out_is_a_cuda_array_interface():
    tree = script("cuda_core").read_text(encoding="utf-8")
    names = {"stream": SimpleNamespace(handle=17)}
    exec(tree[tree.index("class HandedOut") : tree.index("def empty")], names)
    view = SimpleNamespace(shape=(3,), dtype=np.dtype(np.float32), ptr=4096, readonly=True)
    view.__dlpack__ = lambda **about: about
    handed = names["HandedOut"](view)
    assert handed.__cuda_array_interface__ == {
        **{"shape": (3,), "typestr": "<f4", "data": (4096, True), "strides": None, "stream": 17, "version": 3}
    }
    assert handed.__dlpack__(stream=1, max_version=(1, 0)) == {"stream": 1, "max_version": (1, 0)}


@pytest.mark.parametrize("name", ["torch.cuda.ExternalStream", "torch.cuda.stream", "warp.ScopedStream", "warp.Stream"])
def test_what_takes_the_stream_of_another_library_is_there(name):
    package, *path = name.split(".")
    place = pytest.importorskip(package)
    for part in path:
        place = getattr(place, part)
    assert name.removeprefix("torch.").rpartition(".")[2] in PAGE.read_text(encoding="utf-8")


# ---- Handing over.


@pytest.mark.slow
def test_all_pairs_that_run_on_the_cpu_are_right():
    missing = benchmark.obstacles()
    here = [name for name in LIBRARIES if name not in missing]
    found = [*benchmark.measured([(one, other) for one in here for other in here], missing)]
    assert {(each.producer, each.consumer) for each in found} == {(one, other) for one in here for other in here}
    assert not [each for each in found if each.reason or not each.right or each.seen is False]
    for each in found:
        # JAX takes memory of the host as it is only where its address suits.
        if each.way == DLPACK and (each.consumer != "jax" or each.producer == "jax"):
            assert each.shared and {each.producer, each.consumer} <= {*SHARING}
        if each.way == HOST:
            assert not each.shared and each.seen is None
        assert each.waits is None or machine.gpus()


def test_what_one_writes_the_other_sees():
    skipped_without("numpy", "torch")
    one, other = library("numpy"), library("torch")
    for producer, consumer in ((one, other), (other, one), (one, one)):
        found = run.handed_over(producer, consumer, DLPACK)
        assert found == Handover(producer.name, consumer.name, DLPACK, "", True, True, True)
    assert run.handed_over(one, other, HOST) == Handover("numpy", "torch", HOST, "", False, True)
    assert {*run.ways(one, other)} == {DLPACK, HOST}


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        (
            "torch",
            "return torch.from_dlpack(x)",
            "return torch.from_dlpack(x).clone()",
            {"shared": False, "right": True},
        ),
        (
            "torch",
            "return torch.from_dlpack(x)",
            "return torch.from_dlpack(x) * 1.5",
            {"shared": False, "right": False},
        ),
        ("torch", "return torch.add(x, 1, out=out)", "return torch.add(x, 2, out=out)", {"right": False}),
        ("torch", "return torch.add(x, 1, out=out)", "return torch.add(x, 1)", {"seen": False}),
        ("torch", "return x.data_ptr()", "return x.data_ptr() + 4", {"shared": False}),
        ("torch", "return torch.from_dlpack(x)", "raise TypeError('no')", {"reason": "TypeError: no"}),
    ],
)
def test_what_a_consumer_does_wrong_is_found_out(name, old, new, expected, tmp_path):
    skipped_without("numpy", name)
    found = run.handed_over(library("numpy"), library(name, old, new, folder=tmp_path), DLPACK)
    assert {key: getattr(found, key) for key in expected} == expected


def test_a_producer_that_hands_out_a_copy_is_found_out(tmp_path):
    skipped_without("numpy", "torch")
    changed = library("torch", "return x.detach()", "return x.detach() + 0", folder=tmp_path)
    assert not run.handed_over(changed, library("numpy"), DLPACK).shared


def test_the_cuda_array_interface_is_shown_alone():
    array = SimpleNamespace(__cuda_array_interface__={"version": 3}, __dlpack__=None)
    only = run.only_interface(array)
    assert only.__cuda_array_interface__ == {"version": 3} and not hasattr(only, "__dlpack__")
    assert not hasattr(only, "__len__")
    assert len(run.only_interface(np.ones(3))) == 3


class Late:
    """A library on the host whose work is done only when somebody waits for its stream; ``streams`` are of all."""

    def __init__(self, waits):
        self.queue, self.waits = [], waits
        late = lambda x: (self.queue.append(lambda: np.add(x, 1, out=x)), x)[1]  # noqa: E731
        self.module = SimpleNamespace(
            from_host=np.array,
            hand_out=lambda x: x,
            from_dlpack=self.take,
            add_one=lambda x, out=None: np.add(x, 1, out=out) if not self.after else self.queued(x, out),
            to_host=self.to_host,
            wait=lambda x: self.finish(),
            address=lambda x: x.ctypes.data,
        )
        self.side = run.Library("late", self.module)
        self.side.late = lambda x: (late(x), lambda: not self.queue)
        self.after = None

    def finish(self):
        while self.queue:
            self.queue.pop(0)()

    def take(self, x):
        if self.waits == HOST:
            self.other.finish()
        elif self.waits == GPU:
            self.after = self.other
        return x

    def queued(self, x, out):
        self.queue.append(lambda: np.add(x, 1, out=out))
        return out

    def to_host(self, x):
        if self.after:
            self.after.finish()
        self.finish()
        return np.array(x)


@pytest.mark.parametrize("waits", [GPU, HOST, NOBODY])
def test_who_waits_is_found_out(waits):
    producer, consumer = Late(None), Late(waits)
    consumer.other = producer
    more = np.empty(run.SIZE, np.float32)
    assert run.who_waits(producer.side, consumer.side, DLPACK, more) == waits


def test_if_nothing_is_late_nobody_can_tell_who_waits():
    producer, consumer = Late(None), Late(NOBODY)
    producer.side.late = lambda x: (np.add(x, 1, out=x), lambda: True)
    assert run.who_waits(producer.side, consumer.side, DLPACK, np.empty(run.SIZE, np.float32)) is None


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    """A folder for copies of the scripts, which are measured instead."""
    shutil.copytree(SCRIPTS, tmp_path / "together")
    monkeypatch.setattr(benchmark, "SCRIPTS", tmp_path / "together")
    return tmp_path / "together"


def test_a_crash_costs_one_handover(scripts, capfd):
    path = scripts / "with_numpy.py"
    altered(path, "    return np.from_dlpack(x)", "    import os\n\n    os.abort()")
    altered(path, "    return np.array(values)", "    return np.array(values) + (len(values) == 1)")
    found = [*benchmark.measured([("numpy", "numpy")], {})]
    assert [(each.way, each.reason) for each in found] == [(DLPACK, "crashed: SIGABRT"), (HOST, "")]
    assert found[1].right


def test_a_library_that_cannot_be_imported_is_named(scripts):
    altered(scripts / "with_torch.py", "import torch\n", "import nosuch as torch\n")
    missing = {}
    found = [*benchmark.measured([("numpy", "torch"), ("numpy", "numpy")], missing)]
    assert {(each.producer, each.consumer) for each in found} == {("numpy", "numpy")}
    assert missing == {"torch": "ModuleNotFoundError: No module named 'nosuch'"}


def test_a_process_that_cannot_begin_ends_the_run(scripts, capfd):
    altered(scripts / "with_numpy.py", "import numpy as np\n", "import os\n\nos._exit(3)\n")
    with pytest.raises(typer.Exit):
        list(benchmark.measured([("numpy", "numpy"), ("numpy", "numpy")], {}))
    told = capfd.readouterr().err
    assert "ended with exit code 3" in told and "nothing is stored" in told


POOLED = """
SIZE = 1

def make_pool():
    return []

def served():
    return 1

def broken():
    raise RuntimeError("no")

LIBRARIES = {"numpy": served, "scipy": broken, "psutil": int, "nosuch": broken}

def took_from(pool, allocate):
    return bool(allocate())
"""


def test_the_pool_says_why_a_library_does_not_use_it(tmp_path):
    lines = "Framework: cuDF\nRuns on: CPU\nInstall: pip install numpy\nEnvironment: every"
    path = tmp_path / "one_pool.py"
    path.write_text(f'"""One pool.\n\n{lines}\n"""\n{POOLED}')
    assert run.pooled(path) == {
        "numpy": "",
        "scipy": "RuntimeError: no",
        "psutil": "its memory is not from the pool",
    }


@pytest.mark.slow
def test_a_run_is_stored_and_read_again(clone, monkeypatch, capsys):
    results = clone / "benchmarks" / "results"
    monkeypatch.setattr(benchmark, "LIBRARIES", {"numpy": "NumPy", "cupy": "CuPy"})
    monkeypatch.setattr(benchmark, "ROOT", clone)
    monkeypatch.setattr(benchmark, "FILE", results / store.FILE)
    benchmark.main("made-up")
    out, err = capsys.readouterr()
    assert re.search(r"1 pairs, 2 handovers: 0 refused, 0 wrong; \d+ s", out) and err == "from NumPy\n"
    (kept,), complaints = store.every(results)
    assert complaints == [] and kept.origin.commit == git(clone, "rev-parse", "HEAD")
    assert [(each.way, each.right) for each in kept.handovers] == [(DLPACK, True), (HOST, True)]
    (clone / "gpu_cookbook").mkdir(exist_ok=True)
    (clone / "gpu_cookbook" / "new.py").write_text("")
    with pytest.raises(StoreError, match="A stored line belongs to a commit"):
        benchmark.main("made-up")


@pytest.mark.parametrize(("ends", "code", "said"), [(None, 1, ""), (KeyboardInterrupt, 130, "Stopped early.\n")])
def test_a_wrong_handover_is_an_error_and_is_shown_after_ctrl_c_too(ends, code, said, monkeypatch, capsys):
    def measured(pairs, missing):
        yield Handover("numpy", "numpy", DLPACK)
        if ends:
            raise ends

    monkeypatch.setattr(benchmark, "measured", measured)
    monkeypatch.setattr(benchmark, "pooled", dict)
    with pytest.raises(typer.Exit) as ended:
        benchmark.main()
    out, err = capsys.readouterr()
    assert "1 pairs, 1 handovers: 0 refused, 1 wrong" in out
    assert (ended.value.exit_code, err) == (code, said)


# ---- The store.

MADE_UP = (
    Handover("cupy", "torch", DLPACK, "", True, True, True, GPU),
    Handover("cupy", "torch", INTERFACE, "", True, True, True, NOBODY),
    Handover("cupy", "torch", HOST, "", False, True, None, HOST),
    Handover("cupy", "numpy", DLPACK, "BufferError: <script>no</script>"),
    Handover("cupy", "numpy", HOST, "", False, True, None, HOST),
    Handover("torch", "cudf", DLPACK, "", False, True, None, HOST),
    Handover("torch", "cudf", INTERFACE, "", True, True, False, GPU),
    Handover("torch", "numpy", HOST, "", False, False),
)


def line(commit, machine_name="made-up", handovers=MADE_UP, pool=(("cupy", ""), ("torch", "RuntimeError: no"))):
    about = {"machine": machine_name, "device": "A GPU that is made up", "driver": "1.2.3", "processor": "A processor"}
    about |= {"versions": "Python 3.12.3", "date": "2026-11-23", "commit": commit}
    return about | store.record(handovers, {"jax": "not installed"}, dict(pool))


def test_a_line_is_read_as_it_was_written(clone, results):
    write(results / store.FILE, line(git(clone, "rev-parse", "HEAD")))
    (kept,), complaints = store.every(results)
    assert complaints == [] and kept.handovers == MADE_UP and kept.missing == {"jax": "not installed"}
    assert kept.pool == {"cupy": "", "torch": "RuntimeError: no"} and not kept.changed


def test_a_line_that_was_changed_anywhere_costs_at_most_itself(clone, results):
    require_that_changes_cost_one_line(
        results / store.FILE,
        line(git(clone, "rev-parse", "HEAD")),
        lambda: store.every(results),
        lambda run: shown.stored(store.merged([run])),
    )


def test_a_handover_that_is_there_twice_is_refused(clone, results):
    write(results / store.FILE, line(git(clone, "rev-parse", "HEAD"), handovers=[*MADE_UP, MADE_UP[0]]))
    found, (complaint,) = store.every(results)
    assert found == [] and complaint.endswith("line 1: has a handover twice")


def test_the_newest_line_of_each_pair_counts_and_says_where_it_was_run(clone, results):
    commit = git(clone, "rev-parse", "HEAD")
    newer = [replace(MADE_UP[0], waits=HOST), Handover("cudf", "cupy", INTERFACE, "", True, True, True, HOST)]
    rapids = line(commit, handovers=newer, pool=[("cudf", "")]) | {"date": "2026-11-24", "versions": "cudf 26.10.2"}
    elsewhere = line(commit, handovers=[Handover("jax", "jax", DLPACK)]) | {"device": "Another", "date": "2026-11-22"}
    write(results / store.FILE, rapids, elsewhere, line(commit))
    merged = store.merged(store.every(results)[0])
    assert merged.handovers["cupy", "torch"][1] == (newer[0],)
    assert merged.handovers["cupy", "numpy"][1] == MADE_UP[3:5]
    assert ("jax", "jax") not in merged.handovers and len(merged.runs) == 2
    assert {name: why for name, (_, why) in merged.pool.items()} == {
        "cupy": "",
        "torch": "RuntimeError: no",
        "cudf": "",
    }
    notes = [note.text for note in shown.stored(merged)[0].notes]
    assert notes[0] == "Not run on it: Triton, JAX, Numba, PyCUDA, cuda.core, Warp, PyOpenCL."
    where = f"made-up, commit {commit[:8]}"
    assert notes[1:] == [
        f"{where}, 2026-11-23; driver 1.2.3; Python 3.12.3",
        f"{where}, 2026-11-24; driver 1.2.3; cudf 26.10.2",
    ]


# ---- What the page shows.


def texts(table):
    return [[entry.text for entry in row] for row in table.rows]


def test_the_tables_say_by_which_way_and_who_waits():
    every, dlpack, interface = shown.tables(by_pair(MADE_UP))
    assert list(every.head) == ["from", "NumPy", "PyTorch", "cuDF"]
    # What is seen by one of them alone is not shared, so cuDF's copy counts; what is wrong by every way is wrong.
    assert texts(every) == [["CuPy", "copy", "DLPack", "–"], ["PyTorch", "wrong", "–", "copy"]]
    assert texts(dlpack) == [["CuPy", "refused", "GPU", ""], ["PyTorch", "", "", "copied"]]
    assert texts(interface) == [["CuPy", "nobody", ""], ["PyTorch", "", "wrong"]]
    assert interface.rows[0][1].mark == "bad" and len(every.records) == len(MADE_UP)
    assert every.records[0] == asdict(MADE_UP[0])


def test_what_is_refused_or_wrong_is_listed_with_its_message():
    same = replace(MADE_UP[3], producer="jax")
    (table,) = shown.faults(by_pair([*MADE_UP, same]))
    assert texts(table) == [
        ["CuPy, JAX", "NumPy", "DLPack", "BufferError: <script>no</script>"],
        ["PyTorch", "cuDF", "CAI", "what one writes, the other does not see"],
        ["PyTorch", "NumPy", "copy", "other numbers arrive"],
    ]
    assert shown.faults(by_pair(MADE_UP[:3])) == []


def test_a_pair_is_stale_once_one_of_its_scripts_has_changed(clone, results):
    path = clone / "docs" / "together" / "with_torch.py"
    write(results / store.FILE, line(committed(path, "first = 1\n")))
    path.write_text("second = 2\n")
    commits.changed_since.cache_clear()
    every, *_ = shown.stored(store.merged(store.every(results)[0]))
    assert texts(every) == [["CuPy", "copy", "†DLPack", "–"], ["PyTorch", "†wrong", "–", "†copy"]]
    assert any(note.text == "† A script has changed since." for note in every.notes)


def test_the_table_of_the_pool(clone, results):
    write(results / store.FILE, line(git(clone, "rev-parse", "HEAD")))
    found = store.merged(store.every(results)[0])
    assert texts(shown.pool(found)) == [["CuPy", "yes"], ["PyTorch", "RuntimeError: no"]]
    assert shown.pool(replace(found, pool={})) is None


@pytest.mark.slow
@pytest.mark.parametrize("machines", [[], ["nvidia-h200"], ["nvidia-h200", "nvidia-h100"]])
def test_the_page_shows_what_is_stored(machines, clone, results):
    source = clone / "source"
    shutil.copytree(SCRIPTS, source / "together")
    shutil.copy(PAGE, source / "index.md")
    write(results / store.FILE, *(line(git(clone, "rev-parse", "HEAD"), name) for name in machines))
    stands = "{run.origin.machine: together.merged([run]) for run in runs}"
    file, runs = results / store.FILE, "together.every(file.parent)"
    page = page_of(source, "together", file, "handed_over", stands, runs)
    assert page.count("By DLPack: who waits</span>") == len(machines)
    assert page.count("Not measured yet") == 2 * (not machines)
