"""What a launch takes in several frameworks, with 1, 4 and 16 arguments: ``python benchmarks/launches.py``.

Each script of docs/launches runs in a process of its own with a time limit. docs/launches.md says what is measured;
gpu_cookbook/run/launches.py does it, and checks that each launch has added one to each array. Without an NVIDIA GPU,
it takes the times of what runs on the CPU. Only the scripts of the environment that GPU_COOKBOOK_ENVIRONMENT names are
measured.

``--save NAME`` appends a line for a machine of that name to results/launches.jsonl. The site shows the newest line of
each framework.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import launches as shown
from gpu_cookbook.results import Timing
from gpu_cookbook.run import runner
from gpu_cookbook.script import Interruptible, Save, commit_for, finish, run
from gpu_cookbook.store import transfers
from gpu_cookbook.store.transfers import Step
from gpu_cookbook.terminal import fail

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "docs" / "launches"
FILE = ROOT / "benchmarks" / "results" / transfers.LAUNCHES
CODE = ("benchmarks/launches.py", "docs/launches", "gpu_cookbook")  # what a line depends on
LIMIT = 120  # seconds without a message: until the first one, a process imports, compiles and opens the device


def script_of(name: str) -> tuple[str, str]:
    """The script that launches in this way, and its function that makes the arrays."""
    script, _, others = name.partition("_on_")
    return script, f"zeros_of_{others}" if others else "zeros"


def recipe_of(name: str) -> catalogue.Recipe:
    return catalogue.read(SCRIPTS / f"with_{script_of(name)[0]}.py")


def ways_here() -> list[str]:
    """Those whose scripts belong to the environment that this process runs in."""
    return [name for name in shown.WAYS if recipe_of(name).environment == machine.environment()]


def measured(name: str) -> Iterator[Step]:
    """Every time of one framework, or a Step of its name that says why there is none."""
    recipe, (_, zeros) = recipe_of(name), script_of(name)
    if obstacle := machine.obstacle(recipe):
        yield Step(name, reason=obstacle)
        return
    with runner.Process({"action": "launch", "path": str(recipe.path), "zeros": zeros}) as process:
        for message in process.messages(LIMIT, LIMIT):
            match message:
                case {"device": device} if machine.gpus() and not machine.is_gpu(device):
                    yield Step(name, reason=f"it runs on {device}, not on the GPU")
                    return
                case {"launch": (count, what, outcome)}:
                    step = f"{name}_{count}_{what}"
                    yield Step(step, outcome) if isinstance(outcome, Timing) else Step(step, reason=outcome)
                case {"ending": reason}:
                    yield Step(name, reason=reason)


def main(save: Save = None):
    """Measure what a launch takes in several frameworks."""
    head = commit_for(save, ROOT, CODE, FILE)
    names = ways_here()
    if not names:
        known = ", ".join(sorted({recipe_of(name).environment for name in shown.WAYS}))
        fail(f"No script of docs/launches belongs to the environment {machine.environment()}: those of {known} do.")
    steps: list[Step] = []
    with Interruptible() as measuring:
        for name in names:
            print(name, file=sys.stderr)
            steps += measured(name)
    packages = {package for name in names for package in recipe_of(name).packages}
    line = transfers.line(save, head, sorted(packages), 1, steps) if save else None
    title = "What a launch takes, by number of arguments"
    finish([shown.table({step.name: step for step in steps}, title)], FILE, line, measuring.stopped)


if __name__ == "__main__":
    run(main)
