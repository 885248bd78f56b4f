"""Every engine on one core and on two, what happens when something dies at work, and clusters that run already."""

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from conftest import HANG, until
from scaling import HERE, OURS, Run, command, cookbook, marked, rows_of

from gpu_cookbook import catalogue
from gpu_cookbook.run import family
from gpu_cookbook.store import scaling as store

pytestmark = pytest.mark.slow
LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
RECIPES = [r for r in catalogue.choose(["random_subset_mean"]) if r.runs_on == "CPU"]
NO_OTHER = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}

# ---- Every engine of the CPU, on one core and on two.


@pytest.fixture(scope="module")
def scaled():
    """One run of everything: its rows, what it said, and what its workers' processes were seen to be, run by run."""
    seen = defaultdict(lambda: {"cores": set(), "processes": Counter()})
    done = threading.Event()
    with Run("--size", "2000", "--cores", "1,2", "--weak", "--format", "json") as run:

        def watch():
            while not done.wait(0.1):
                now = Counter()
                for process in run.family():
                    with contextlib.suppress(psutil.Error, KeyError):
                        folder, line = process.environ()[family.MARK], command(process)
                        seen[folder]["cores"].add(len(process.cpu_affinity()))
                        parent = process.parent()
                        if parent and command(parent) == line:  # forked, and not yet what it is going to be
                            continue
                        now.update((folder, words) for words in ("spawn_main", "popen_loky_posix") if words in line)
                for (folder, words), count in now.items():
                    most = seen[folder]["processes"]
                    most[words] = max(most[words], count)  # at once: a worker of Dask that ended may have a successor

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            out, err = run.end()
        finally:
            done.set()
            watcher.join()
        left = run.family()
    order = [(r.technique, n) for r in RECIPES for n in ((1,) if r.technique == "numpy" else (1, 2))]
    assert len(order) == len(seen)
    return SimpleNamespace(rows=rows_of(out), err=err, seen=dict(zip(order, seen.values(), strict=True)), left=left)


def test_every_recipe_shares_the_array_on_one_core_and_on_two(scaled):
    strong = sorted((row["technique"], row["workers"]) for row in scaled.rows if row["mode"] == "strong")
    assert strong == sorted((r.technique, n) for r in RECIPES for n in (1, 2) if n == 1 or r.technique != "numpy")


def test_every_recipe_has_an_array_for_each_of_two_cores(scaled):
    weak = sorted((row["technique"], row["workers"], row["rows"]) for row in scaled.rows if row["mode"] == "weak")
    assert weak == sorted((r.technique, 2, 4_000) for r in RECIPES if r.technique != "numpy")


def test_every_engine_has_its_own_cost(scaled):
    empty = {(row["technique"], row["workers"]) for row in scaled.rows if row["mode"] == "empty"}
    engines = "dask", "dask_processes", "dask_random_state", "joblib", "multiprocessing", "numba_cpu", "ray"
    assert empty == set(itertools.product(engines, (1, 2)))
    assert all(row["round_s"] > 0 for row in scaled.rows if row["mode"] == "empty")


def test_every_mean_is_right(scaled):
    """To six standard errors."""
    for row in scaled.rows:
        assert row["status"] == "ok"
        if row["mode"] != "empty":
            assert abs(row["mean"] - 11) < 6 / (row["rows"] * row["columns"] / 4) ** 0.5


def test_the_same_samples_have_the_same_mean_on_any_number_of_cores(scaled):
    means = defaultdict(set)
    for row in scaled.rows:
        if row["mode"] == "strong":
            means[row["technique"]].add(row["mean"])
    assert max(max(mine) - min(mine) for mine in means.values()) < 1e-11


def test_speedups_are_over_one_core(scaled):
    time_s = {(row["technique"], row["mode"], row["workers"]): row.get("time_s") for row in scaled.rows}
    for row in scaled.rows:
        if row["mode"] != "empty":
            one = time_s[row["technique"], "strong", 1]
            work = 2 if row["mode"] == "weak" else 1
            assert row["speedup_x"] == pytest.approx(work * one / row["time_s"])


def test_no_process_of_a_run_may_use_more_cores_than_asked(scaled):
    assert {key: seen["cores"] for key, seen in scaled.seen.items()} == {key: {key[1]} for key in scaled.seen}


@pytest.mark.parametrize("cores", [1, 2])
def test_a_core_has_one_process(scaled, cores):
    # joblib computes in the process that asks, where there is one core only; Dask has a process of its own for workers.
    assert scaled.seen["multiprocessing", cores]["processes"]["spawn_main"] == cores
    assert scaled.seen["dask_processes", cores]["processes"]["spawn_main"] == cores
    assert scaled.seen["joblib", cores]["processes"]["popen_loky_posix"] == (0 if cores == 1 else 2)


@pytest.mark.parametrize("cores", [1, 2])
def test_ray_has_a_task_a_core_at_a_time(cores):
    """Looked at until that many were seen, and 20 times more."""

    def tasks():
        assert run.popen.poll() is None, f"it ended, and {cores} were never seen"
        return sum(command(process).startswith("ray::chunk_sum") for process in run.family())

    with Run("-t", "ray", "--size", "20000", "--cores", str(cores)) as run:
        until(lambda: tasks() >= cores)
        for _ in range(20):
            assert tasks() <= cores
            time.sleep(0.1)


def test_a_dashboard_is_named_at_once(scaled):
    assert scaled.err.count("dask_processes: the dashboard is at http://127.0.0.1:") == 2


def test_nothing_is_left_of_it(scaled):
    assert scaled.left == []


# ---- A worker dies.


WORKERS = {  # the words in the command line of a process that computes
    "dask_processes": "spawn_main",
    "joblib": "popen_loky_posix",
    "multiprocessing": "spawn_main",
    "ray": "ray::chunk_sum",
}


@pytest.fixture(scope="module")
def struck():
    """Of each technique: a run beside another recipe, one of whose workers was killed at work."""
    found = {}

    def strike(technique):
        if technique not in found:
            chosen = ("-t", technique, "-t", "numba_cpu_tuned")
            with Run(*chosen, "--size", "20000", "--cores", str(HERE), "--format", "json") as run:
                worker = run.at_work(WORKERS[technique])
                worker.suspend()  # so that its work does not end while the sockets are looked at
                sockets = [
                    connection.laddr.ip
                    for process in run.family()
                    for connection in connections(process)
                    if connection.status == psutil.CONN_LISTEN
                ]
                worker.kill()
                out, err = run.popen.communicate(timeout=HANG)
                code, left = run.popen.returncode, run.family()
            rows = [each for each in rows_of(out) if each["mode"] == "strong"]
            mine = next(each for each in rows if each["technique"] == technique)
            other = next(each for each in rows if each["technique"] == "numba_cpu_tuned")
            found[technique] = SimpleNamespace(
                row=mine, other=other, out=out, err=err, code=code, left=left, sockets=sockets
            )
        return found[technique]

    return strike


def connections(process):
    try:
        return process.net_connections("inet")
    except psutil.Error:
        return []


@pytest.mark.parametrize("technique", ["dask_processes", "ray"])
class TestAnEngineThatGoesOn:
    def test_has_the_right_answer(self, struck, technique):
        run = struck(technique)
        assert run.row["status"] == "ok" and abs(run.row["mean"] - 11) < 6 / 10_000
        assert run.code == 0

    def test_says_what_it_lost(self, struck, technique):
        assert struck(technique).row["lost"] == 1

    def test_listens_on_this_machine_only(self, struck, technique):
        sockets = struck(technique).sockets
        assert sockets and set(sockets) <= set(LOOPBACK)


@pytest.mark.parametrize(
    ("technique", "words"),
    [("joblib", "A worker process managed by the executor was unexpectedly terminated"), ("multiprocessing", "lost")],
)
def test_an_engine_that_cannot_go_on_says_why(struck, technique, words):
    run = struck(technique)
    assert run.row["status"] == "failed" and words in run.row["reason"]
    assert run.code == 1 and " 1 failed," in run.err.splitlines()[-1]


@pytest.mark.parametrize("technique", WORKERS)
def test_the_other_rows_are_whole(struck, technique):
    other = struck(technique).other
    assert other["status"] == "ok" and abs(other["mean"] - 11) < 6 / 10_000


@pytest.mark.parametrize("technique", WORKERS)
def test_no_process_is_left_of_a_run_that_lost_a_worker(struck, technique):
    assert struck(technique).left == []


# ---- Ctrl-C.


def test_ctrl_c_shows_and_keeps_what_was_measured(clone):
    """That SIGTERM is taken for it is seen in tests/test_cli.py: all commands have that in common."""
    chosen = ("-t", "numba_cpu_tuned", "-t", "ray", "--save", "--machine", "m")
    with Run(*chosen, "--size", "20000", "--cores", str(HERE), "--format", "json") as run:
        run.at_work("ray::chunk_sum")
        run.popen.send_signal(signal.SIGINT)
        out, err = run.end(code=130)
        assert run.family() == []
    assert [each["technique"] for each in rows_of(out)] == ["numba_cpu_tuned"]
    assert err.endswith("stopped early\n")
    kept = store.kept_of(clone / "benchmarks/results", "m")[0]
    assert [each.technique for each in kept] == ["numba_cpu_tuned"]


# ---- Engines that run already.


REFUSE = """
import sys


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "gpu_cookbook":
            raise ModuleNotFoundError("refused")


sys.meta_path.insert(0, Refuse())
"""

REFUSING = f"""{REFUSE}
from distributed.cli import dask_scheduler, dask_worker

{{"scheduler": dask_scheduler, "worker": dask_worker}}[sys.argv.pop(1)].main()
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def answers(port):
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


class Dask:
    """A scheduler on 127.0.0.1, and workers of a Python that cannot import this package."""

    def __init__(self, workers):
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler = self.start("scheduler", "--port", str(self.port))
        until(lambda: answers(self.port))
        self.workers = [self.start("worker", self.address, "--nthreads", "1", "--no-nanny") for _ in range(workers)]
        if workers:
            from distributed import Client

            with Client(self.address) as client:
                client.wait_for_workers(workers, timeout=HANG)

    @staticmethod
    def start(*arguments):
        command = [sys.executable, "-c", REFUSING, *arguments, "--host", "127.0.0.1"]
        command += ["--dashboard-address", "127.0.0.1:0"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def dask():
    started = Dask(workers=2)
    yield started
    started.stop()


@pytest.fixture(scope="module")
def behind_scheduler(dask):
    out, _ = cookbook("--size", "4000", "--scheduler", dask.address, "--format", "json")
    return rows_of(out)


def test_the_workers_cannot_import_this_package(dask):
    import importlib

    from distributed import Client

    with Client(dask.address) as client:
        found = client.run(importlib.import_module, "gpu_cookbook", on_error="return")
    assert [str(error) for error in found.values()] == ["refused", "refused"]


def test_the_workers_behind_a_scheduler_are_used(behind_scheduler):
    (strong,) = (each for each in behind_scheduler if each["mode"] == "strong")
    assert (strong["technique"], strong["workers"], strong["kind"]) == ("dask_processes", 2, "worker")
    assert strong["status"] == "ok" and abs(strong["mean"] - 11) < 6 / 2_000


def test_what_an_engine_costs_is_known_of_workers_without_this_package(behind_scheduler):
    (empty,) = (each for each in behind_scheduler if each["mode"] == "empty")
    assert empty["status"] == "ok" and empty["round_s"] > 0


def test_the_scheduler_and_its_workers_are_there_afterwards(dask, behind_scheduler):
    from distributed import Client

    with Client(dask.address) as client:
        assert len(client.nthreads()) == 2
        assert client.submit(sum, [1, 2]).result(timeout=HANG) == 3


def test_a_scheduler_without_workers_says_so():
    alone = Dask(workers=0)
    try:
        out, err = cookbook("--size", "4000", "--scheduler", alone.address, code=1)
    finally:
        alone.stop()
    assert (out, err) == ("", f"No workers are connected to {alone.address} yet: start some first.\n")


def said_of(run, address):
    """Checks what a run says whose engine was killed just now; nothing of the run is left."""
    out, _ = run.end(code=1)
    assert run.family() == []
    (strong,) = (each for each in rows_of(out) if each["mode"] == "strong")
    assert strong["status"] == "failed"
    assert strong["reason"] == f"the engine at {address} can no longer be reached (Connection refused)"


def test_a_scheduler_that_dies_is_said():
    dying = Dask(workers=1)
    try:
        with Run("--size", "20000", "--scheduler", dying.address, "--format", "json") as run:
            worker = psutil.Process(dying.workers[0].pid)
            until(lambda: worker.memory_info().rss > 260e6)
            dying.scheduler.kill()
            said_of(run, dying.address)
    finally:
        dying.stop()


class Ray:
    """A head on 127.0.0.1 with two CPUs and one GPU by name, whose workers cannot import this package. The name of its
    folder must be short: Ray's sockets are in it, and their names end at 107 characters."""

    def __init__(self, folder):
        (folder / "sitecustomize.py").write_text(REFUSE)
        port, self.mark = free_port(), uuid.uuid4().hex
        self.address = f"127.0.0.1:{port}"
        head = [Path(sys.executable).with_name("ray"), "start", "--head", "--block", "--port", str(port)]
        what = ["--num-cpus", "2", "--num-gpus", "1", "--temp-dir", str(folder / "r")]
        self.popen = subprocess.Popen(
            [*head, *what, "--include-dashboard", "false", "--disable-usage-stats"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | NO_OTHER | {OURS: self.mark, "PYTHONPATH": str(folder)},
        )
        until(lambda: any("raylet/raylet" in command(process) for process in marked(self.mark)))
        until(lambda: answers(port))

    def stop(self):
        for process in marked(self.mark):
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.popen.wait()

    def run(self, code):
        """What this code prints, which has a ``ray`` that is connected."""
        code = f"import ray; ray.init('{self.address}', logging_level='ERROR')\n{code}"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG, env=os.environ | NO_OTHER
        )
        return done.stdout


@pytest.fixture(scope="module")
def ray(tmp_path_factory):
    started = Ray(tmp_path_factory.mktemp("r"))
    yield started
    started.stop()


def test_the_workers_of_ray_cannot_import_this_package(ray):
    code = """
@ray.remote
def found():
    try:
        import gpu_cookbook
    except ModuleNotFoundError as error:
        return str(error)

print(ray.get(found.remote()))
"""
    assert ray.run(code) == "refused\n"


@pytest.fixture(scope="module")
def behind_ray(ray):
    out, _ = cookbook("--size", "4000", "--address", ray.address, "--format", "json", **NO_OTHER)
    return rows_of(out)


def test_the_cpus_of_a_ray_that_runs_are_used(behind_ray):
    (strong,) = (each for each in behind_ray if each["mode"] == "strong")
    assert (strong["technique"], strong["workers"], strong["kind"]) == ("ray", 2, "worker")
    assert strong["status"] == "ok" and abs(strong["mean"] - 11) < 6 / 2_000


def test_what_a_ray_that_runs_costs_is_known(behind_ray):
    (empty,) = (each for each in behind_ray if each["mode"] == "empty")
    assert empty["status"] == "ok" and empty["round_s"] > 0


def test_a_ray_that_ran_before_runs_afterwards(ray, behind_ray):
    assert ray.run("print(ray.cluster_resources()['CPU'])") == "2.0\n"


def test_gpus_that_others_hold_are_said(ray, tmp_path):
    (tmp_path / "cupy.py").touch()
    holding = """
actor = ray.remote(num_cpus=0, num_gpus=1)(type("Actor", (), {"here": lambda self: True})).remote()
ray.get(actor.here.remote())
print("held", flush=True)
input()
"""
    code = f"import ray; ray.init('{ray.address}', logging_level='ERROR')\n{holding}"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | NO_OTHER,
    ) as other:
        assert other.stdout.readline() == "held\n"
        out, err = cookbook("--address", ray.address, code=1, PYTHONPATH=str(tmp_path), **NO_OTHER)
        other.communicate("\n", timeout=HANG)
    assert (out, err) == ("", f"Others are using 1 of the 1 GPUs behind {ray.address}: wait until they finish.\n")


def test_a_wrong_token_is_said(ray):
    wrong = NO_OTHER | {"RAY_AUTH_TOKEN": "1" * 64}
    _, err = cookbook("--address", ray.address, code=1, **wrong)
    assert f"Failed to connect to Ray cluster at {ray.address}" in err


def test_a_ray_that_dies_is_said(tmp_path_factory):
    dying = Ray(tmp_path_factory.mktemp("r"))
    try:
        with Run("--size", "60000", "--address", dying.address, "--format", "json", **NO_OTHER) as run:
            run.at_work("ray::chunk_sum", dying.mark)
            dying.stop()
            said_of(run, dying.address)
    finally:
        dying.stop()
