"""Lines of ``python benchmarks/transfers.py --save``, and of launches.py, concepts.py and all_reduce.py: one line of a
file of the same name in benchmarks/results per run; of all_reduce.py, one per number of GPUs. Those that came in from
others are in a file of that name in their machine's folder."""

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Origin, Timing
from gpu_cookbook.store import commits, door
from gpu_cookbook.store.commits import StoreError
from gpu_cookbook.store.machines import refuse_another_machine, require_name

FILE, KIND = "transfers.jsonl", "transfers"
LAUNCHES, CONCEPTS, ALL_REDUCES = "launches.jsonl", "concepts.jsonl", "all_reduce.jsonl"
FILES = (FILE, LAUNCHES, CONCEPTS, ALL_REDUCES)  # whose lines are of this kind
RECIPES = {  # the steps of a recipe: its workload and technique
    "recipe_page_locked": ("multiply", "cupy_transfer_tuned"),
    "recipe": ("multiply", "cupy_transfer_tuned"),
    "recipe_torch_page_locked": ("multiply", "torch_transfer_tuned"),
    "recipe_torch": ("multiply", "torch_transfer_tuned"),
    "recipe_pycuda_page_locked": ("multiply", "pycuda_transfer_tuned"),
    "recipe_pycuda": ("multiply", "pycuda_transfer_tuned"),
    "recipe_numba_page_locked": ("multiply", "numba_transfer_tuned"),
    "recipe_numba": ("multiply", "numba_transfer_tuned"),
    "recipe_pyopencl_page_locked": ("multiply", "pyopencl_transfer_tuned"),
    "recipe_pyopencl": ("multiply", "pyopencl_transfer_tuned"),
    "host_copies": ("multiply", "cupy_transfer_tuned"),
    "small_unchanged": ("matmul", "cupy_transfer_tuned"),
    "small_page_locked": ("matmul", "cupy_transfer_tuned"),
    "small": ("matmul", "cupy_transfer_tuned"),
    "small_copy_in": ("matmul", "cupy_transfer_tuned"),
    "small_kernels": ("matmul", "cupy_transfer_tuned"),
    "small_copy_out": ("matmul", "cupy_transfer_tuned"),
    "small_rest": ("matmul", "cupy_transfer_tuned"),
    "small_torch": ("matmul", "torch_transfer_tuned"),
    "small_torch_copy_in": ("matmul", "torch_transfer_tuned"),
    "small_torch_kernels": ("matmul", "torch_transfer_tuned"),
    "small_torch_copy_out": ("matmul", "torch_transfer_tuned"),
    "small_torch_rest": ("matmul", "torch_transfer_tuned"),
}
SCRIPTS = {  # of docs/transfers, of the steps whose names differ
    "allocate_page_locked": "page_locked",
    "gpu_to_gpu": "between_gpus",
    "gpu_to_gpu_through_host": "between_gpus",
}

LAUNCH = re.compile(r"(?P<way>(?P<script>\w+?)(_on_\w+)?)_[0-9]+_[a-z]+")  # of a launch: "numba_on_cupy_4_resident"
# An all-reduce: its script, GPUs and elements on each: "all_reduce_cupy_kernel_4_1048576". Without elements: why not.
ALL_REDUCE = re.compile(r"(?P<way>all_reduce_(?P<script>[a-z_]+)_(?P<gpus>[0-9]+))(_(?P<count>[0-9]+))?")
CONCEPT = re.compile("(coalescing|divergence|occupancy|memories)_[a-z0-9_]+")  # a step: the file with its kernels
# Of the scripts in docs/launches that launch a kernel in C: the file that it is in.
KERNELS = {"cuda_core": "add_one.cu", "cupy": "add_one.cu", "pycuda": "add_one.cu", "pyopencl": "add_one.cl"}

Bar = tuple[str, float, float]  # what was busy, from when, and for how long, in µs


@dataclass(frozen=True)
class Step:
    """One way from host arrays to a host array, one copy, one launch, or one load. ``time`` is None if it was not
    measured, for a ``reason``. ``moved``: bytes, where they are counted.

    ``bars`` are those of one call, which took ``traced`` seconds under the profiler; gaps of up to ``closed`` µs are
    not in them. ``busy``: for how many µs at least one of the same kind was busy, with those gaps."""

    name: str
    time: Timing | None = None
    reason: str = ""
    bars: tuple[Bar, ...] = ()
    traced: float = 0
    closed: float = 0
    busy: Mapping[str, float] = field(default_factory=dict)
    stale: bool = False  # its code has changed since
    moved: int = 0


@dataclass(frozen=True)
class Kept:
    """One stored run and its origin."""

    origin: Origin
    device: str
    driver: str
    processor: str
    versions: str
    elements: int
    steps: Mapping[str, Step]  # in the order in which they are shown

    def seconds(self, name: str) -> float | None:
        """The median of a step; None if it was not measured."""
        step = self.steps.get(name)
        return step.time.median if step and step.time else None


def record(step: Step) -> dict[str, Any]:
    """The step as plain data, for JSON."""
    if not step.time:
        return {"step": step.name, "reason": step.reason}
    time = step.time
    data = {"step": step.name, "time_s": time.median, "q1_s": time.q1, "q3_s": time.q3, "samples": time.count}
    data |= {"moved_bytes": step.moved} if step.moved else {}
    traced = {"traced_s": step.traced, "closed_us": step.closed, "busy_us": step.busy, "bars": step.bars}
    return data | (traced if step.bars else {})


def commit_here(save: str, root: Path, code: Sequence[str]) -> str:
    """The commit that a line for a machine of this name belongs to; StoreError if there is none, no such name, or if it
    is another machine's. ``code``: what the line depends on."""
    require_name(save, "--save")
    refuse_another_machine(root / "benchmarks" / "results" / save)
    head = commits.head(root)
    if commits.is_changed(root, code):
        raise StoreError(f"A stored line belongs to a commit: commit your changes in {', '.join(code)} first.")
    return head


def line(save: str, commit: str, packages: Sequence[str], elements: int, steps: Iterable[Step]) -> dict[str, Any]:
    """What this machine has measured, as plain data. ``elements``: of each array."""
    return beginning(save, commit, packages) | {"elements": elements, "steps": [record(step) for step in steps]}


def beginning(save: str, commit: str, packages: Sequence[str]) -> dict[str, Any]:
    """How a line begins: where, when and with what something was run."""
    nvidia = machine.nvidia()
    on_gpu = nvidia if nvidia and nvidia.gpus else None
    return {
        "machine": save,
        "device": on_gpu.gpus[0].name if on_gpu else machine.processor(),
        "driver": on_gpu.driver if on_gpu else "",
        "processor": machine.processor(),
        "versions": machine.versions(tuple(packages)),
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit,
    }


def kept(folder: Path, file: str = FILE) -> tuple[dict[str, Kept], list[str]]:
    """{machine: its last line} in this file and in those of the machines, and what is wrong with each line that cannot
    be used. Of a machine that is in both, the newest counts."""
    runs, complaints = every(folder, file)
    return {run.origin.machine: run for run in runs}, complaints


def every(folder: Path, file: str = FILE) -> tuple[list[Kept], list[str]]:
    """The runs of all lines, the newest last, and what is wrong with each line that cannot be used."""
    found, complaints = [], []
    for path, machine_name in door.everywhere(folder, file).items():
        runs, faults = kept_in(path, folder.parents[1], machine_name)
        found += runs
        complaints += faults
    return sorted(found, key=lambda run: run.origin.date), complaints


def by_way(runs: Sequence[Kept]) -> dict[str, Kept]:
    """{way to launch or to reduce: the newest run that has it, with the steps of that way alone}: what excludes each
    other is installed in different environments, and each of them has lines of its own.

    ``runs``: those of one machine, the newest last. What was measured on another device than the newest is left out."""
    found: dict[str, Kept] = {}
    for run in runs:
        if run.device == runs[-1].device:
            ways: dict[str, dict[str, Step]] = {}
            for step in run.steps.values():
                found_in = LAUNCH.fullmatch(step.name) or ALL_REDUCE.fullmatch(step.name)
                ways.setdefault(found_in["way"] if found_in else step.name, {})[step.name] = step
            found |= {way: replace(run, steps=steps) for way, steps in ways.items()}
    return found


def kept_in(path: Path, root: Path, machine_name: str | None) -> tuple[list[Kept], list[str]]:
    """The runs in one file, and what is wrong with each line that cannot be used. ``root``: of the clone;
    ``machine_name``: whose lines they must be, unless the file is shared."""
    return door.made_of_lines(path, KIND, partial(_kept, root), machine_name)


def _kept(root: Path, line: Mapping[str, Any]) -> Kept:
    """ValueError if a step makes no sense; StoreError if the repository does not have the commit."""
    changed = commits.changed_since(root, line["commit"])
    steps = {data["step"]: _step(data, changed) for data in line["steps"]}
    if len(steps) < len(line["steps"]):
        raise ValueError("has a step twice")
    origin = Origin(line["machine"], line["commit"], "", line["date"])
    return Kept(origin, line["device"], line["driver"], line["processor"], line["versions"], line["elements"], steps)


def _step(data: Mapping[str, Any], changed: frozenset[str]) -> Step:
    """``changed``: the files whose code is no longer that of the line's commit."""
    name = data["step"]
    if "reason" in data:
        return Step(name, reason=data["reason"])
    time = Timing(data["time_s"], data["q1_s"], data["q3_s"], data["samples"])
    if not data["q1_s"] <= time.median <= data["q3_s"]:
        raise ValueError(f"the quartiles of {name} do not enclose its median")
    bars = tuple((row, start, duration) for row, start, duration in data.get("bars", ()))
    traced = data.get("traced_s", 0)
    if any(start + duration > 1e6 * traced + 1 for _, start, duration in bars):
        raise ValueError(f"a bar of {name} ends after its call")
    busy = data.get("busy_us", {})
    if any(each > 1e6 * traced + 1 for each in busy.values()):
        raise ValueError(f"something is busy for longer than {name} takes")
    closed, stale, moved = data.get("closed_us", 0), bool(sources(name) & changed), data.get("moved_bytes", 0)
    return Step(name, time, "", bars, traced, closed, busy, stale, moved)


def sources(name: str) -> set[str]:
    """The files whose code a step runs, as git names them."""
    if launch := LAUNCH.fullmatch(name):
        files = [f"with_{launch['script']}.py", *filter(None, [KERNELS.get(launch["script"])])]
        return {f"docs/launches/{file}" for file in files}
    if reduced := ALL_REDUCE.fullmatch(name):
        files = [f"with_{reduced['script']}.py", *["sum_part.cu"] * (reduced["script"] == "cupy_kernel")]
        return {f"docs/all-reduce/{file}" for file in files}
    if concept := CONCEPT.fullmatch(name):
        return {f"docs/concepts/{concept[1]}.cu"}
    recipe = catalogue.find(*RECIPES[name]) if name in RECIPES else None
    return commits.sources(recipe) if recipe else {f"docs/transfers/{SCRIPTS.get(name, name)}.py"}
