"""Kills ``gpu-cookbook compare --save`` again and again, and looks at what is left: ``python tests/kills.py COUNT``.

What has been stored stays, the store can be read at any moment, and 30 s after a kill nothing of the command is there:
no process, no folder for temporary files, no memory of a GPU. The results go to a repository of their own. Without a
GPU or an editable installation this works as well: PYTHONPATH may name the package.
"""

import argparse
import contextlib
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import fields, replace
from pathlib import Path

import psutil
from cloning import git, make_repository

from gpu_cookbook import machine
from gpu_cookbook.results import Metric
from gpu_cookbook.run import family
from gpu_cookbook.store import asv_files

# Without the checks before: the kills are meant for what is measured and stored.
CODE = """
from gpu_cookbook.cli import app
from gpu_cookbook.run import compare
compare.check = lambda recipes, finished: compare.Outcome()
app(prog_name="gpu-cookbook")
"""
COMMAND = (sys.executable, "-P", "-c", CODE)
OURS = "TEST_KILLS"  # a variable by which all processes of one run are found
CLEAN_UP = 30  # seconds
SOON = 0.2  # seconds after a write to the store has begun: it takes about half of that
PATIENCE = 120  # seconds in which a command writes something
ROUNDING = 2**26  # bytes by which the memory of a GPU that is in use may differ


class Reader(threading.Thread):
    """Reads the store all the time, and compares what is there with what was there before."""

    def __init__(self, store):
        super().__init__(daemon=True)
        self.store = store
        self.known = {}
        self.reads = 0
        self.unreadable, self.lost = [], []
        self.resume, self.commit = True, None  # of the command that is running
        self.lock, self.done = threading.Lock(), threading.Event()

    def run(self):
        while not self.done.wait(0.02):
            self.read()

    def read(self):
        with self.lock:
            self.reads += 1
            try:
                results, complaints = self.store.load()
            except Exception as error:
                complaints = [f"{type(error).__name__}: {error}"]
            if complaints:
                self.unreadable.append("; ".join(complaints))
                return
            found = {(each.stored.commit, each.key): replace(each, origin=None) for each in results}
            self.lost += [
                f"{' '.join(map(str, key))}: {changed(result, found.get((commit, key)))}"
                for (commit, key), result in self.known.items()
                if found.get((commit, key)) != result and not self.measured_again(commit, key, found)
            ]
            self.known = found

    def measured_again(self, commit, key, found):
        if commit != self.commit:
            return False
        if self.resume:
            return self.known[commit, key].value(Metric.RESIDENT) is None
        # Its first new result replaces all that a recipe had.
        return any(
            result != self.known.get((commit, other))
            for (where, other), result in found.items()
            if where == commit and other[:2] == key[:2]
        )


def changed(before, after):
    """What was in a result, and what is there now, if that is something else."""
    if after is None:
        return "gone"
    pairs = {each.name: (getattr(before, each.name), getattr(after, each.name)) for each in fields(before)}
    return ", ".join(f"{name} was {old} and is {new}" for name, (old, new) in pairs.items() if old != new)


class Run:
    """One command, in a folder for temporary files of its own."""

    def __init__(self, folder, arguments):
        self.mark = uuid.uuid4().hex
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        with (self.folder / "stderr").open("wb") as self.errors:
            self.popen = subprocess.Popen(
                [*COMMAND, *arguments],
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                env=os.environ | {OURS: self.mark, "TMPDIR": str(self.folder)},
            )

    def ends_within(self, seconds):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(seconds)
        return self.popen.returncode is not None

    def ends_before_it_writes(self, lock):
        """Waits for one of the next writes to the store, each of which opens this file."""
        deadline = time.monotonic() + PATIENCE
        for _ in range(random.randint(1, 3)):
            before = opened(lock)
            while opened(lock) == before and time.monotonic() < deadline:
                if self.ends_within(0.002):
                    return True
        return self.ends_within(random.uniform(0, SOON))

    def processes(self):
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                environment = process.environ()
                ours = environment.get(OURS) == self.mark or str(self.folder) in environment.get(family.MARK, "")
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def folders(self):
        return [path.name for path in self.folder.glob("gpu-cookbook-*")]

    def said(self):
        return (self.folder / "stderr").read_text(errors="replace").strip().splitlines()[-1:]


def command_of(process):
    with contextlib.suppress(psutil.Error):
        return f"process {process.pid} ({' '.join(process.cmdline())[:100]})"
    return f"process {process.pid}, which has just ended"


def opened(lock):
    return lock.stat().st_mtime_ns if lock.exists() else None


def used_memory():
    return sum(used for used, _ in machine.device_memory())


def on_gpus():
    """The processes that compute on the GPUs, by their numbers."""
    return {words.split(" (")[0] for gpu in machine.processes_on_gpus() for words in gpu}


def kill_often(folder, options):
    clone = folder / "clone"
    make_repository(clone)
    os.chdir(clone)
    lock = clone / ".asv" / "lock"
    reader = Reader(asv_files.Store())
    reader.commit = git(clone, "rev-parse", "HEAD")
    reader.start()
    memory_before, computing_before = used_memory(), on_gpus()
    faults = []
    left = dict.fromkeys(("processes", "folders", "bytes"), 0)
    kills, begin = 0, time.monotonic()
    techniques = [word for technique in options.technique for word in ("--technique", technique)]
    arguments = ["compare", *options.workload, *techniques, "--save", "--machine", "killed"]
    while kills < options.count and time.monotonic() - begin < options.budget:
        seen = len(reader.unreadable), len(reader.lost)
        reader.resume = not reader.known or kills % 5 != 4
        run = Run(folder, [*arguments, "--resume"] if reader.resume else arguments)
        start = time.monotonic()
        ended = run.ends_within(random.uniform(0.3, options.limit))
        if not ended and kills % 2:  # or all too few kills would fall into a write
            ended = run.ends_before_it_writes(lock)
        run.popen.kill()
        run.popen.wait()
        moment = time.monotonic() - start
        kills += not ended

        while True:
            running, computing = run.processes(), on_gpus() - computing_before
            processes = [*(command_of(each) for each in running), *computing]
            folders, more = run.folders(), used_memory() - memory_before
            clean = not processes and not folders and more <= ROUNDING
            if clean or time.monotonic() > start + moment + CLEAN_UP:
                break
            time.sleep(0.1)
        reader.read()

        what = f"kill {kills}, {moment:.2f} s after the start" if not ended else f"an end after {moment:.2f} s"
        wrong = [f"unreadable: {each}" for each in reader.unreadable[seen[0] :]]
        wrong += [f"lost: {each}" for each in reader.lost[seen[1] :]]
        wrong += [f"left: {each}" for each in (*processes, *folders)]
        if more > ROUNDING:
            wrong.append(f"left: {more:,} bytes of device memory")
            left["bytes"] += more
            memory_before += more
        stored = any(commit == reader.commit for commit, _ in reader.known)
        broken = ended and (run.popen.returncode not in (0, 1) or not stored)
        if broken:
            wrong.append(f"ended with exit code {run.popen.returncode}: {''.join(run.said())}")
        left["processes"] += len(processes)
        left["folders"] += len(folders)
        computing_before |= computing
        for process in running:
            with contextlib.suppress(psutil.Error):
                process.kill()
        wrong = list(dict.fromkeys(wrong))  # every read says it again
        faults += [f"{what}: {each}" for each in wrong]
        print(
            f"{what}: {len(reader.known)} results stored, {reader.reads:,} reads", *wrong, sep="\n  ", file=sys.stderr
        )
        if broken:
            break
        if ended:  # all is stored: the next commit has nothing yet
            git(clone, "commit", "--quiet", "--allow-empty", "--message=next")
            reader.commit = git(clone, "rev-parse", "HEAD")
    reader.done.set()
    reader.join()
    return kills, reader, left, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int, help="how many kills")
    parser.add_argument("--workload", action="append", help="default: multiply and increment")
    parser.add_argument("--technique", action="append", default=[], help="default: all that run here")
    parser.add_argument("--limit", type=float, default=8, help="seconds within which it is killed")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds after which no other run is started")
    options = parser.parse_args()
    options.workload = options.workload or ["multiply", "increment"]
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        kills, reader, left, faults = kill_often(Path(folder), options)
        os.chdir("/")
    for fault in faults:
        print(fault)
    print(
        f"{kills} kills, {reader.reads:,} reads: {len(reader.unreadable)} unreadable, {len(reader.lost)} results lost,"
        f" {left['processes']} processes left, {left['folders']} folders left,"
        f" {left['bytes']:,} bytes of device memory left" + (" (no NVIDIA GPU here)" if not machine.gpus() else "")
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
