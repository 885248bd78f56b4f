"""What an all-reduce takes with several engines, on two GPUs and on all: ``python benchmarks/all_reduce.py``.

Each script of docs/all-reduce runs in a process of its own with a time limit. docs/all-reduce.md says what is measured;
gpu_cookbook/run/all_reduce.py does it, and checks the sums.

``--save NAME`` appends a line for a machine of that name to results/all_reduce.jsonl, for each number of GPUs. The site
shows the newest line of each engine.
"""

import os
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import all_reduce as shown
from gpu_cookbook.render.all_reduce import REDUCED
from gpu_cookbook.results import Timing
from gpu_cookbook.run import runner
from gpu_cookbook.script import Interruptible, Save, commit_for, finish, run
from gpu_cookbook.store import transfers
from gpu_cookbook.store.transfers import Step
from gpu_cookbook.terminal import fail

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "docs" / "all-reduce"
FILE = ROOT / "benchmarks" / "results" / transfers.ALL_REDUCES
CODE = ("benchmarks/all_reduce.py", "docs/all-reduce", "gpu_cookbook")  # what a line depends on
LIMIT = 120  # seconds without a message: until the first one, a process imports, compiles and starts the engine


def nccl() -> list[str]:
    """The version of NCCL that pip installed, and what the environment sets for it."""
    found = [f"{each.name} {each.version}" for each in metadata.distributions() if "nvidia-nccl" in each.name]
    # NCCL_VERSION is no setting: NVIDIA's containers say with it which NCCL they brought themselves.
    names = sorted(name for name in os.environ if name.startswith("NCCL_") and name != "NCCL_VERSION")
    return [*found, *(f"{name}={os.environ[name]}" for name in names)]


def script_of(name: str) -> catalogue.Recipe:
    return catalogue.read(SCRIPTS / f"with_{name}.py")


def measured(name: str, gpus: list[int]) -> Iterator[Step]:
    """Every time of one script on these GPUs, or a Step that says why there is none."""
    script, count = script_of(name), len(gpus)
    if obstacle := machine.obstacle(script):
        yield Step(shown.key(name, count), reason=obstacle)
        return
    job = {"action": "all_reduce", "path": str(script.path), "gpus": count, "counts": REDUCED}
    with runner.Process(job, gpus=gpus) as process:
        for message in process.messages(LIMIT, LIMIT):
            match message:
                case {"all_reduce": (elements, outcome)}:
                    step = shown.key(name, count, elements)
                    yield Step(step, outcome) if isinstance(outcome, Timing) else Step(step, reason=outcome)
                case {"ending": reason}:
                    yield Step(shown.key(name, count), reason=reason)


def main(
    names: Annotated[
        list[str] | None, typer.Option("--technique", "-t", metavar="T", help="Only this script. Can be repeated.")
    ] = None,
    save: Save = None,
):
    """Measure what an all-reduce takes with several engines."""
    head = commit_for(save, ROOT, CODE, FILE)
    gpus = [gpu.index for gpu in machine.gpus()]
    if len(gpus) < 2:
        fail(f"An all-reduce takes at least two NVIDIA GPUs, and this machine has {len(gpus)}.")
    for name in names or ():
        if name not in shown.WAYS:
            fail(catalogue.nearest("technique", name, list(shown.WAYS)))
    chosen = [name for name in shown.WAYS if not names or name in names]
    for count in sorted({2, len(gpus)}, reverse=True):
        steps: list[Step] = []
        packages: set[str] = set()
        with Interruptible() as measuring:
            for name in chosen:
                print(f"{name} on {count} GPUs", file=sys.stderr)
                before = len(steps)
                steps += measured(name, gpus[:count])
                if any(step.time for step in steps[before:]):
                    packages |= {*script_of(name).packages}
        line = None
        if save:
            line = transfers.line(save, head, sorted(packages), REDUCED[-1], steps)
            line |= {"versions": ", ".join([line["versions"], *nccl()])}
        found = {step.name: step for step in steps}
        finish([shown.table(found, count, f"An all-reduce on {count} GPUs")], FILE, line, measuring.stopped)


if __name__ == "__main__":
    run(main)
