"""Hands arrays from every library to every other one: ``python benchmarks/together.py``.

docs/together has a script for each library, and docs/together.md says what is looked at; gpu_cookbook/run/together.py
does so, for all pairs in one process. If that crashes, the pair is recorded, and another process goes on with the next.
What cannot be imported, and without an NVIDIA GPU what needs one, is left out with its reason. Run it in each
environment: GPU_COOKBOOK_ENVIRONMENT=rapids has cuDF.

``--save NAME`` appends a line for a machine of that name to results/together.jsonl. The site shows the newest line of
each pair.
"""

import itertools
import multiprocessing
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import typer

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import together as shown
from gpu_cookbook.run import runner, together
from gpu_cookbook.script import Interruptible, Save, commit_for, finish, run
from gpu_cookbook.store import together as store
from gpu_cookbook.store import transfers
from gpu_cookbook.terminal import fail
from gpu_cookbook.together import LIBRARIES, Handover, by_pair
from gpu_cookbook.words import reason

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / store.SCRIPTS
FILE = ROOT / "benchmarks" / "results" / store.FILE
CODE = ("benchmarks/together.py", store.SCRIPTS, "gpu_cookbook")  # what a line depends on
LIMIT = 120  # seconds without a message: until all are imported, and of one handover, which may compile

Pair = tuple[str, str]


def script_of(name: str) -> catalogue.Recipe:
    return catalogue.read(SCRIPTS / f"with_{name}.py")


def obstacles() -> dict[str, str]:
    """{library: why its script cannot run here}."""
    found = {name: machine.obstacle(script_of(name)) for name in LIBRARIES}
    return {name: why for name, why in found.items() if why}


def measured(pairs: list[Pair], missing: dict[str, str]) -> Iterator[Handover]:
    """The handovers of all pairs. Those that cannot be imported are added to ``missing``."""
    found: list[Handover] = []
    left = list(pairs)
    producer = None
    while left:
        names = [name for name in LIBRARIES if any(name in pair for pair in left)]
        known = [(each.producer, each.consumer, each.way) for each in found]
        paths = [str(script_of(name).path) for name in names]
        begun = ending = None
        with runner.Process({"action": "together", "paths": paths, "pairs": left, "known": known}) as process:
            for message in process.messages(LIMIT, LIMIT):
                match message:
                    case {"missing": (name, why)}:
                        missing[name] = why
                    case {"begins": begun}:
                        if begun[0] != producer:
                            producer = begun[0]
                            print(f"from {LIBRARIES[producer]}", file=sys.stderr)
                    case {"handover": handover}:
                        found.append(handover)
                        yield handover
                        begun = None
                    case {"pair": pair}:
                        left.remove(pair)
                    case {"ending": ending}:
                        print(ending, file=sys.stderr)
        if begun:
            found.append(Handover(*begun, reason=ending or "ended without a word"))
            yield found[-1]
        elif left and not any(each.reason for each in found[len(known) :]):
            fail("It cannot even begin, for the reason above: nothing is stored.")


def pooled() -> dict[str, str]:
    """{library: why it does not allocate from RMM's pool}, in a fresh process; nothing without RMM."""
    path = SCRIPTS / f"{store.POOL}.py"
    if machine.obstacle(catalogue.read(path)):
        return {}
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # which ends the process, even one that hangs
        try:
            return pool.apply_async(together.pooled, (path,)).get(120)
        except multiprocessing.TimeoutError:  # RMM may also take the process with it
            return {"rmm": "not done after 120 s"}
        except Exception as error:  # RMM may raise anything
            return {"rmm": reason(error)}


def main(save: Save = None):
    """Hand arrays from every library to every other one."""
    head = commit_for(save, ROOT, CODE, FILE)
    start = time.perf_counter()
    missing = obstacles()
    here = [name for name in LIBRARIES if name not in missing]
    handovers: list[Handover] = []
    pool: dict[str, str] = {}
    with Interruptible() as measuring:
        handovers += measured([*itertools.product(here, here)], missing)
        pool = pooled()
    packages = {package for name in here for package in script_of(name).packages}
    line = transfers.beginning(save, head, sorted(packages)) | store.record(handovers, missing, pool) if save else None
    pairs = by_pair(handovers)
    notes = [f"{LIBRARIES[name]} took no part: {why}\n" for name, why in missing.items()]
    notes += [f"one pool, {name}: {why or 'allocates from it'}\n" for name, why in pool.items()]
    reasons = sum(bool(each.reason) for each in handovers)
    wrong = sum(not each.reason and not each.right for each in handovers)
    took = f"{time.perf_counter() - start:.0f} s"
    notes += [f"{len(pairs)} pairs, {len(handovers)} handovers: {reasons} refused, {wrong} wrong; {took}\n"]
    tables = [*shown.tables(pairs), *shown.faults(pairs)]
    finish(tables, FILE, line, measuring.stopped, "".join(notes))
    if wrong:
        raise typer.Exit(1)


if __name__ == "__main__":
    run(main)
