"""What the tests of ``gpu-cookbook scale`` share: its runs as a user starts them, and rows that are made up."""

import contextlib
import json
import os
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
from conftest import HANG, interruptible

from gpu_cookbook import catalogue
from gpu_cookbook.render import scaling_tables
from gpu_cookbook.results import Status, Timing
from gpu_cookbook.scaling import EMPTY, STRONG, WEAK, Row, completed, judged
from gpu_cookbook.store import scaling as store

COMMAND = str(Path(sys.executable).with_name("gpu-cookbook"))
HERE = len(os.sched_getaffinity(0))
OURS = "TEST_SCALE"  # a variable by which all processes of one run are found


def marked(mark):
    """All processes that inherited this mark."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(OURS) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def at_work(processes, words):
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if words in command(process) and process.memory_info().rss > 260e6:
                return process
    return None


def command(process):
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


class Run:
    """``gpu-cookbook scale`` as a user starts it. All that it starts is ended with it."""

    def __init__(self, *arguments, **variables):
        self.mark = uuid.uuid4().hex
        self.popen = subprocess.Popen(
            [COMMAND, "scale", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=interruptible,
            env=os.environ | {OURS: self.mark} | variables,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.family():
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.popen.communicate()

    def family(self):
        """The command's process and all that came of it."""
        return marked(self.mark)

    def at_work(self, words, mark=None):
        """One of the processes with these words in their command line, as soon as it holds a chunk of 5,000². ``mark``:
        that of a cluster that ran before, if not this run's own."""
        while self.popen.poll() is None:
            process = at_work(marked(mark or self.mark), words)
            if process:
                return process
            time.sleep(0.1)  # a look at all processes takes 10 ms of a core, which what is waited for needs
        raise AssertionError(f"no '{words}' was seen at work: {self.popen.communicate()}")

    def end(self, code=0):
        """(standard output, standard error) of a run that ends with ``code`` and shows nobody a traceback."""
        out, err = self.popen.communicate(timeout=HANG)
        assert self.popen.returncode == code, out + err
        assert "Traceback" not in out + err
        return out, err


def cookbook(*arguments, code=0, **variables):
    with Run(*arguments, **variables) as run:
        return run.end(code)


def rows_of(out):
    """The records of tables in JSON. In the table of weak scaling the one of one worker is that of strong scaling."""
    return [row for table in json.loads(out) for row in table["rows"] if row["mode"] == row["table"]]


def plain(text):
    """Without the frame that the words of an error are put into."""
    return " ".join(text.replace("│", " ").split())


def row(technique="ray", workers=1, time_s=1.0, mode=STRONG, status="ok", **more):
    """A Row as it is measured, of 4,000 × 4,000 numbers; of the tuned lane, with the right mean."""
    lane = catalogue.lane_of(technique)
    about = {"technique": technique, "framework": "Ray", "lane": lane, "engine": "Ray, tasks", "kind": "core"}
    how = {"workers": workers, "mode": mode, "status": Status(status), "shared_samples": lane == "tuned"}
    array = {"size": 4000, "rows": 4000 * (workers if mode == WEAK else 1), "columns": 4000, "chunk": 1000}
    measured = {"time": timing(time_s), "mean": 11.0, "lost": 0, "start_s": 1.0}
    parts = about | how | (array if mode not in (EMPTY, None) else {})
    made = Row(**parts | (measured if status == "ok" and mode != EMPTY else {}) | more)
    return made if "mean" in more or made.mean is None or made.reference is None else replace(made, mean=made.reference)


def timing(median, q1=None, q3=None):
    return Timing(median, q1 or median, q3 or median, 10)


def built(rows):
    """The tables of rows as they were measured."""
    return scaling_tables.build_tables(completed(judged(rows)))


def recipe(technique):
    return catalogue.choose(["random_subset_mean"], [technique])[0]


def spread_of_pixels(path):
    from matplotlib.image import imread

    return imread(path).std()


def keep(folder, name, rows, commit="1" * 40):
    """As a Writer of that machine and commit would, in a clone without changes."""
    writer = SimpleNamespace(
        store=SimpleNamespace(folder=folder),
        machine=SimpleNamespace(machine=name),
        commit=commit,
        refuse_what_is_not_committed=lambda: None,
    )
    store.keep(writer, rows)
