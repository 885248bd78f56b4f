"""Ends a recipe's process and all that it has started, so that no process and no folder of ours stays behind.

``python -m gpu_cookbook.run.family`` waits until its standard input ends, as it does however gpu-cookbook ends, by
kill -9 as well. Then it ends what is left, and deletes the folder whose name it has printed at its start, and one
of that name in memory.
"""

import atexit
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psutil

MARK = "GPU_COOKBOOK_WORKER"  # the environment variable that identifies the processes of a worker: its folder
IN_MEMORY = Path("/dev/shm")
KILL_LIMIT = 5  # seconds: a process that is still alive by then is stuck in the driver


def members(folder: str) -> Iterator[psutil.Process]:
    """The processes of the worker with this folder, or of all workers with a folder in it: even orphaned ones and those
    in other sessions have inherited its name in their environment."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            mark = process.environ().get(MARK)
            if mark and Path(mark).is_relative_to(folder):
                yield process


def kill(folder: str) -> None:
    """Ends all of them."""
    # multiprocessing's resource trackers exit by themselves once they have freed the shared memory of processes that
    # have ended.
    _end(lambda: [process for process in members(folder) if "resource_tracker" not in " ".join(_command(process))])
    psutil.wait_procs(list(members(folder)), timeout=3)
    _end(lambda: list(members(folder)))


def _end(family: Callable[[], list[Any]]) -> None:
    """Kills all processes of a family, including those that they started in the meantime."""
    deadline = time.monotonic() + KILL_LIMIT
    while (processes := family()) and time.monotonic() < deadline:
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.01)


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@cache
def home() -> str:
    """The folder for those of the workers. It and all that belongs to them is gone soon after this process."""
    watcher = subprocess.Popen(
        [sys.executable, "-P", "-m", "gpu_cookbook.run.family"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != MARK},
        start_new_session=True,  # neither Ctrl-C nor what kills our group reaches it
    )
    assert watcher.stdin and watcher.stdout
    folder = os.fsdecode(watcher.stdout.readline().removesuffix(b"\n"))
    if not folder:
        raise OSError("No folder for temporary files can be made: set TMPDIR to a folder that you can write to.")
    atexit.register(watcher.communicate)
    return folder


@cache
def in_memory() -> Path | None:
    """A folder like home(), on a file system in memory, if there is one to which we can write."""
    if ("tmpfs", str(IN_MEMORY)) not in {(each.fstype, each.mountpoint) for each in psutil.disk_partitions(all=True)}:
        return None
    folder = IN_MEMORY / Path(home()).name
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700)  # not if it exists: other users know the name, as home() has it, too
        return folder
    return None


def require_room() -> None:
    """OSError if nothing can be written into that folder any more: its file system may be full, or read-only by now."""
    try:
        with tempfile.TemporaryFile(dir=home()) as file:
            file.write(bytes(4096))
    except OSError as error:
        why = f"nothing more can be written into {home()} ({error.strerror})"
        raise OSError(f"{why}: make room there, or set TMPDIR to another folder") from None


def main() -> None:
    try:
        folder = tempfile.mkdtemp(prefix="gpu-cookbook-")
    except OSError:
        return  # home() says so
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(os.fsencode(folder) + b"\n")
        sys.stdout.flush()
    sys.stdin.buffer.read()
    kill(folder)
    for each in (folder, IN_MEMORY / Path(folder).name):
        shutil.rmtree(each, ignore_errors=True)


if __name__ == "__main__":
    main()
