"""NVIDIA's compute-sanitizer for every recipe here that has a CUDA kernel of its own: ``python tests/sanitize.py``.

First come recipes with a planted fault (tests/wrong/sanitizer): if a tool does not find it, its zeros say nothing. What
does not end in time, or is not reached, is named and never counted as right. What the tools say of kernels of libraries
is counted apart. All logs go into one file, in the folder $OUT if that is set.
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from sanitized import ENDED, RIGHT

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run import family, runner

TOOLS = ("memcheck", "initcheck", "synccheck", "racecheck")  # that which takes longest comes last
HERE = Path(__file__).parent
PLANTED = HERE / "wrong" / "sanitizer" / "multiply"  # with_TOOL….py, each with a fault that this tool finds
FOUND = {  # how the tool names it
    "memcheck": "Invalid __global__ read",
    "racecheck": "Error: Race reported between",
    "initcheck": "Uninitialized __global__ memory read",
    "synccheck": "Barrier error detected",
}
OWN_KERNEL = re.compile(
    r"cuda\.jit|RawKernel|RawModule|rawkernel|ElementwiseKernel|ReductionKernel|SourceModule|triton\.jit|load_inline"
    r"|_compile_kernel|torch\.compile|vectorize|wp\.kernel|ct\.kernel"
)
ON_GPU = ("NVIDIA GPU", "every NVIDIA GPU", "NVIDIA GPU or CPU")
# The names of kernels of cuBLAS, CUB, cuRAND, PyTorch, CuPy and PyCUDA. No kernel of a recipe has such a name.
LIBRARIES = re.compile(
    r"\b(at|c10|cub|thrust|at_cuda_detail)::|\bcupy_|cublas|cutlass|gemm|gemv|xmma|splitKreduce|curand|generate_seed|\breduce_kernel_stage"
)
PREFIX = "========="
# What the tools say besides faults. "Program hit": an error code of the CUDA interface, which frameworks provoke.
NO_FAULTS = (
    *("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "LEAK SUMMARY", "Program hit"),
    *("Target application returned an error", "Error: process didn't terminate successfully"),
    *("Error: Target application terminated before first instrumented API call", "Tracking kernels launched by child"),
)
PORTS = 100  # for each run: the tool and the processes that it looks at find each other by the numbers of ports
FIRST_PORT = 20_000
MOST_LOGGED = 50_000  # characters of each run
LONGEST = 160  # characters of a line


@dataclass
class Run:
    """One recipe under one tool, and what came of it."""

    tool: str
    recipe: catalogue.Recipe
    planted: bool = False
    seconds: float | None = None  # None: not run
    fault: str | None = None  # why it says nothing: it has not ended, or the recipe is wrong
    errors: Counter = field(default_factory=Counter)  # {what and where: how often}
    libraries: Counter = field(default_factory=Counter)

    @property
    def name(self):
        return f"{self.tool}, {self.recipe.workload}/{self.recipe.technique}"


def has_own_kernel(recipe):
    text = recipe.path.read_text(encoding="utf-8")
    return recipe.runs_on in ON_GPU and bool(recipe.kernels or OWN_KERNEL.search(text))


def sanitizer():
    """The path of compute-sanitizer."""
    folders = [str(path / "bin") for path in (*machine.cuda_folders(), *sorted(Path("/usr/local").glob("cuda*")))]
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(folders))


def command(program, known, tool, log, number):
    """``known``: what the program says of its options."""
    wanted = {"--show-backtrace": "no", "--print-limit": "1000"}
    wanted |= {"--port": str(FIRST_PORT + number % 400 * PORTS), "--max-connections": str(PORTS)}
    if tool == "memcheck":
        wanted["--report-api-errors"] = "no"
    options = [word for name, value in wanted.items() if name in known for word in (name, value)]
    return [program, "--tool", tool, "--target-processes", "all", *options, "--log-file", str(log), sys.executable]


def reports(text):
    """[what the tool says, the lines below it] for each of its messages."""
    found = []
    for line in text.splitlines():
        words = line.removeprefix(PREFIX)
        if words == line or not words.strip():
            continue
        if words.startswith("  "):
            if found:
                found[-1].append(words.strip())
        else:
            found.append([words.strip()])
    return found


def kernels(report):
    """The functions on the GPU that a message names: 'at multiply(float *)+0x70', or 'at 0x70 in multiply(float *)'."""
    places = (re.search(r"\bat (?:(.+?)\+0x[0-9a-f]+|0x[0-9a-f]+ in (.+))", line) for line in report)
    return [place[1] or place[2] for place in places if place]


def is_of_library(report):
    names = kernels(report)
    return bool(names) and all(map(LIBRARIES.search, names))


def read_log(run, text):
    """Puts what the tool has said into ``run``; returns why that is not all, or None."""
    for report in reports(text):
        if not report[0].startswith(NO_FAULTS):
            what = re.sub(r" at \S.*", "", report[0])
            where = " and ".join(dict.fromkeys(kernels(report))) or "no kernel"
            counter = run.libraries if is_of_library(report) else run.errors
            counter[f"{what} at {where}"] += 1
    if missing := re.search(r"[\d,]+ \w+ (was|were) not printed", text):
        return missing[0]
    if not re.search(rf"^{PREFIX} (?:ERROR|RACECHECK) SUMMARY: ", text, re.MULTILINE):
        return "not ended: the tool has printed no summary"
    return None


def judge(run, output, log, timed_out):
    """Puts into ``run`` what its output and the tool's log say."""
    lines = output.splitlines()
    incomplete = read_log(run, log + "\n".join(line for line in lines if line.startswith(PREFIX)))
    ends = [line.removeprefix(ENDED) for line in lines if line.startswith(ENDED)]
    said = [line for line in (*log.splitlines(), *lines) if line.strip()]
    last = said[-1].removeprefix(PREFIX).strip() if said else "none"
    if timed_out:
        run.fault = f"not ended after {run.seconds:.0f} s; its last words: {last}"
    elif not ends:
        run.fault = f"not ended: the process broke off; its last words: {last}"
    elif incomplete:
        run.fault = incomplete
    elif ends[-1] != RIGHT:
        run.fault = f"the check says: {ends[-1]}"


class Session:
    """All runs: several at a time, each in processes of its own, with a limit for each and one for all."""

    def __init__(self, program, folder, log, jobs, limit, budget):
        self.program, self.folder, self.log = program, folder, log
        self.jobs, self.limit, self.deadline = jobs, limit, time.monotonic() + budget
        helped = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60)
        self.known = helped.stdout + helped.stderr
        self.lock = threading.Lock()

    def all(self, runs):
        with ThreadPoolExecutor(self.jobs) as pool:
            futures = {pool.submit(self.one, number, run): run for number, run in enumerate(runs)}
            for count, future in enumerate(as_completed(futures), 1):
                run = futures[future]
                if error := future.exception():
                    run.fault = f"not ended: {type(error).__name__}: {error}"
                if run.seconds is not None:
                    found = f"{sum(run.errors.values())} errors{', ' * bool(run.fault)}{(run.fault or '')[:60]}"
                    print(f"{count}/{len(runs)} {run.name}: {run.seconds:.0f} s, {found}", file=sys.stderr, flush=True)

    def one(self, number, run):
        limit = min(self.limit, self.deadline - time.monotonic())
        if limit < 1:
            run.fault = "not run: the time for all was over"
            return
        folder = self.folder / str(number)
        folder.mkdir()
        path = folder / "log"
        words = [*command(self.program, self.known, run.tool, path, number), str(HERE / "sanitized.py")]
        words += [str(run.recipe.path), run.tool]
        # The caches are shared by all runs: what one tool has made a recipe compile is there for the next.
        settings = runner.environment(str(self.folder)) | {family.MARK: str(folder)}
        settings |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "2")
        settings["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # else processes, which the tool would look at, too
        start, timed_out = time.monotonic(), False
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=settings, start_new_session=True
            )
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                timed_out = True
            run.seconds = time.monotonic() - start
            family.kill(str(folder))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(family.KILL_LIMIT)
        output, log = (
            (folder / name).read_text(errors="replace") if (folder / name).exists() else ""
            for name in ("output", "log")
        )
        judge(run, output, log, timed_out)
        with self.lock, self.log.open("a", encoding="utf-8") as file:
            end = output[-MOST_LOGGED // 10 :]
            file.write(
                f"#### {run.name}: {run.seconds:.1f} s, {run.fault}\n{' '.join(words)}\n{end}\n{log[:MOST_LOGGED]}\n"
            )


def summary(runs):
    """(the lines of the tables, whether nothing was found)."""
    lines = [f"{'tool':<10} {'recipes':>8} {'ended':>6} {'errors':>7} {'in libraries':>13} {'seconds':>8}"]
    details = []
    for tool in dict.fromkeys(run.tool for run in runs):
        mine = [run for run in runs if run.tool == tool and not run.planted]
        ended = [run for run in mine if not run.fault]
        errors, libraries = (sum(sum(getattr(run, kind).values()) for run in mine) for kind in ("errors", "libraries"))
        seconds = sum(run.seconds or 0 for run in mine)
        lines.append(f"{tool:<10} {len(mine):>8} {len(ended):>6} {errors:>7} {libraries:>13} {seconds:>8.0f}")
        for run in (run for run in runs if run.planted and run.tool == tool):
            found = [what for what in run.errors if what.startswith(FOUND[tool]) and "multiply" in what]
            if not found:
                words = f"{run.recipe.technique}: the planted fault was not found, so that zeros of {tool} say nothing"
                details.append(f"{words}: {run.fault or 'no error'}")
        for run in mine:
            details += [f"{run.name}: {count} × {what}" for what, count in run.errors.items()]
            if run.fault and run.seconds is not None:
                details.append(f"{run.name}: {run.fault}")
        if missed := [run for run in mine if run.seconds is None]:
            names = ", ".join(f"{run.recipe.workload}/{run.recipe.technique}" for run in missed)
            details.append(f"{tool}: {len(missed)} {missed[0].fault}: {names}")
    total = sum((run.libraries for run in runs if not run.planted), Counter())
    apart = [f"in libraries: {count} × {what}" for what, count in total.most_common(10)]
    details = [line if len(line) <= LONGEST or " not run" in line else f"{line[: LONGEST - 2]} …" for line in details]
    return [*lines, *(line[:LONGEST] for line in apart), *details], not details


def planned(recipes, tools):
    """Planted faults first; then what starts no engine, because engines are slow under the tools."""
    planted = [catalogue.read(path) for path in sorted(PLANTED.glob("with_*.py"))]
    runs = [Run(tool, each, planted=True) for tool in tools for each in planted if each.technique.startswith(tool)]
    for engine in (False, True):
        runs += [Run(tool, each) for tool in tools for each in recipes if bool(each.engine) == engine]
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tool", action="append", choices=TOOLS, help="default: all four")
    parser.add_argument("--workload", action="append", default=[])
    parser.add_argument("--technique", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=6, help="how many run at a time (default: 6)")
    parser.add_argument("--limit", type=float, default=100, help="seconds for each (default: 100)")
    parser.add_argument("--budget", type=float, default=480, help="seconds for all (default: 480)")
    options = parser.parse_args()
    program = sanitizer()
    if not program:
        print("compute-sanitizer is neither on PATH nor in /usr/local/cuda*/bin")
        return 1
    recipes = [
        recipe
        for recipe in catalogue.choose(options.workload, options.technique)
        if has_own_kernel(recipe) and not machine.obstacle(recipe)
    ]
    log = Path(os.environ.get("OUT") or tempfile.gettempdir(), "sanitize.log")
    log.write_text("")
    runs = planned(recipes, options.tool or TOOLS)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sanitize-", ignore_cleanup_errors=True) as folder:
        Session(program, Path(folder), log, options.jobs, options.limit, options.budget).all(runs)
    lines, right = summary(runs)
    print(f"{time.monotonic() - start:.0f} s in all. The logs are in {log}.", *lines, sep="\n")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
