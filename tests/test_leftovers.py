"""Nothing stays behind when gpu-cookbook itself is killed, which it cannot notice."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import HANG, has_ended, until
from scaling import Run

from gpu_cookbook.run import family


def shared_memory():
    """What joblib and multiprocessing keep in shared memory."""
    return {path.name for name in ("joblib*", "loky*", "psm_*", "sem.*") for path in Path("/dev/shm").glob(name)}


def test_kill_9_leaves_no_worker_and_no_folder(tmp_path):
    """A worker, a child of it in a session of its own, and the folders of both."""
    program = """
        import subprocess
        from gpu_cookbook import catalogue
        from gpu_cookbook.run import family, runner
        path = str(catalogue.find("multiply", "numpy").path)
        with runner.Process({"action": "check", "path": path, "sizes": [255]}) as process:
            command = ["sleep", "600"]
            environment = {family.MARK: process.folder}
            orphan = subprocess.Popen(command, env=environment, start_new_session=True)
            print(orphan.pid, flush=True)
            orphan.wait()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as killed:
        child = int(killed.stdout.readline())
        assert list(tmp_path.glob("gpu-cookbook-*/*/stderr"))
        killed.kill()
    until(lambda: has_ended(child), limit=30)
    until(lambda: not list(tmp_path.iterdir()), limit=30)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["joblib", "multiprocessing", "dask_processes"])
def test_kill_9_leaves_nothing_of_an_engine(engine, tmp_path):
    before = shared_memory()
    with Run("-t", engine, "--cores", "2", "-s", "20000", "--chunk", "5000", TMPDIR=str(tmp_path)) as run:
        until(lambda: len(run.family()) >= 5)  # the command, the one that watches it, the worker and two of the engine
        run.popen.kill()
        run.popen.wait()
        until(lambda: not run.family(), limit=30)
    until(lambda: not list(tmp_path.glob("gpu-cookbook-*")), limit=30)
    until(lambda: shared_memory() <= before, limit=30)


def test_an_end_in_peace_leaves_nothing_either(tmp_path):
    with Run("-t", "numpy", "--cores", "1", "-s", "1000", TMPDIR=str(tmp_path)) as run:
        run.end()
        assert run.family() == []
    assert list(tmp_path.glob("gpu-cookbook-*")) == []


def test_no_folder_can_be_made_is_said(monkeypatch):
    monkeypatch.setattr(family.sys, "executable", "/bin/false")
    family.home.cache_clear()
    try:
        with pytest.raises(OSError, match="set TMPDIR"):
            family.home()
    finally:
        family.home.cache_clear()


@pytest.mark.slow
def test_compare_is_killed_and_loses_nothing_and_leaves_nothing():
    """python tests/kills.py 50 for longer."""
    script = Path(__file__).with_name("kills.py")
    chosen = ("--workload", "multiply", "--technique", "numpy", "--technique", "pyopencl", "--limit", "5")
    done = subprocess.run([sys.executable, script, "3", *chosen], capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.match(r"3 kills, [\d,]+ reads: 0 unreadable, 0 results lost, 0 processes left", done.stdout), done.stdout
