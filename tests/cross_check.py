"""The device time of the same calls by other tools' clocks: ``python tests/cross_check.py``.

cuda-bench's batch keeps the queue full, as gpu-cookbook does; its single calls each begin with empty caches. ncu adds
up what each kernel takes by itself, without the copies between them. Each tool has a process of its own.

``--drawn 20 --machine nvidia-h200`` takes twenty stored device times of that machine, drawn by lot, in place of those
in CASES, and has the published time beside the others. ``--seed`` draws the same ones again.

It needs an NVIDIA GPU, the frameworks, and ``pip install "cuda-bench[cu13]"``; without ncu, its column is empty.
"""

import argparse
import csv
import ctypes
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Metric, Result
from gpu_cookbook.run import measure, ways
from gpu_cookbook.run.device import Cuda
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.run.precision import workload_for
from gpu_cookbook.store.asv_files import Store
from gpu_cookbook.store.commits import StoreError
from gpu_cookbook.store.selecting import select

Case = tuple[str, str, int | tuple[int, ...]]  # workload, technique, size
CASES: tuple[Case, ...] = (
    ("multiply", "cupy", 1_000_000),
    ("multiply", "torch", 1_000_000),
    ("multiply", "pycuda_tuned", 2**28),
    ("multiply", "torch", 2**28),
    ("increment", "numba_tuned", 2**28),
    ("matmul", "torch", 200),
    ("matmul", "cupy", 4_096),
    ("subset_mean", "cupy_tuned", 10_000),
    ("random_subset_mean", "cupy_tuned", 20_000),
)
PUBLISHED, EVENTS, KERNELS = "published", "by events", "ncu, kernels"
TAGS = {"cuda-bench, batch": "nv/batch/time/gpu/mean", "cuda-bench, single": "nv/cold/time/gpu/mean"}
WAYS = (PUBLISHED, EVENTS, "by the host's clock", "in a graph", *TAGS, KERNELS)
NCU = (
    *("ncu", "--csv", "--metrics=gpu__time_duration.sum", "--print-units=base", "--profile-from-start=off"),
    *("--clock-control=none", "--cache-control=none"),
)
WARM, PROFILED = 10, 5  # calls
LIMIT = 240  # seconds that one tool may take with one case


def drawn(results: Sequence[Result], count: int, seed: int) -> list[Result]:
    """So many results with a device time that nothing speaks against, of recipes that run here as they are now. None of
    an OpenCL queue, of which CUDA's events, cuda-bench and ncu see nothing."""
    recipes = {(each.workload, each.technique): each for each in catalogue.recipes()}
    fit = [
        result
        for result in sorted(results, key=lambda result: str(result.key))
        if result.ok
        and Metric.DEVICE in result.timings
        and Metric.DEVICE not in result.doubts
        and not result.stale
        and result.environment == machine.environment()
        and recipes[result.workload, result.technique].runs_on != "OpenCL device"
        and not machine.obstacle(recipes[result.workload, result.technique])
    ]
    return random.Random(seed).sample(fit, min(count, len(fit)))


def prepared(case: Case) -> measure.Calls:
    """The calls of a case, after a few that compile and fill what is kept."""
    workload, technique, size = case
    (recipe,) = catalogue.choose([workload], [technique])
    calls = measure.Calls(Loader(recipe).execute(), workload_for(recipe), size)
    calls.begin(poisoned=True)
    for _ in range(WARM):
        calls.wait(calls.call())
    return calls


def clocked(case: Case) -> dict[str, float]:
    """{way: seconds} in our ways, and by cuda-bench."""
    from cuda import bench

    found: dict[str, float] = {}

    def work(state):
        calls = prepared(case)
        start = time.perf_counter()
        calls.wait(calls.call())
        wall = time.perf_counter() - start
        device = Cuda()
        found[EVENTS] = statistics.median(device.device_times(calls.call, wall))
        (recipe,) = catalogue.choose([case[0]], [case[1]])
        others = ways.others(device, recipe.framework, calls.call, wall)
        found.update({way: each.seconds for way, each in others.items()})
        state.set_stream(device.stream)
        state.exec(lambda launch: calls.call(), batched=True)
        calls.verify_all()

    bench.register(work)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "results.json")
        bench.run_all_benchmarks([sys.argv[0], "--devices", "0", "--json", str(path)])
        ((state,),) = (each["states"] for each in json.loads(path.read_text())["benchmarks"])
    values = {each["tag"]: each["data"][0]["value"] for each in state.get("summaries") or ()}
    return found | {way: float(values[tag]) for way, tag in TAGS.items() if tag in values}


def profiled(case: Case) -> None:
    """What ncu looks at: PROFILED calls."""
    driver, calls = ctypes.CDLL("libcuda.so.1"), prepared(case)
    driver.cuProfilerStart()
    for _ in range(PROFILED):
        calls.wait(calls.call())
    driver.cuProfilerStop()


def seconds_of(report: str) -> float | None:
    """What the kernels of one call take together, from what ncu wrote; None if it saw none."""
    lines = [line for line in report.splitlines() if line.startswith('"')]
    durations = [float(row["Metric Value"].replace(",", "")) for row in csv.DictReader(lines)]  # nanoseconds
    return sum(durations) / PROFILED * 1e-9 or None


def asked(tool: str, case: Case) -> dict[str, float]:
    """{way: seconds} that one tool finds in a process of its own. Whatever it says goes to stderr if it fails."""
    command = [sys.executable, __file__, "--tool", tool, json.dumps(case)]
    if tool == KERNELS:
        command = [*NCU, *command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        print(f"{case}, {tool}: {error}\n{str(error.stderr or '')[-2000:]}", file=sys.stderr)
        return {}
    if tool == KERNELS:
        seconds = seconds_of(done.stdout)
        return {KERNELS: seconds} if seconds else {}
    return json.loads(done.stdout.splitlines()[-1])


def row(case: Case, times: Mapping[str, float]) -> str:
    workload, technique, size = case
    cells = (f"{1e6 * times[way]:,.2f}" if way in times else "–" for way in WAYS)
    label = catalogue.workload_module(workload).label(size)
    return f"| {workload}, {label}, {technique} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drawn", type=int, metavar="COUNT", help="so many stored results, drawn by lot")
    parser.add_argument("--machine", help="whose stored results")
    parser.add_argument("--seed", type=int, help="of the lot; if omitted, another one each time, which is printed")
    parser.add_argument("--tool", help=argparse.SUPPRESS)
    parser.add_argument("case", nargs="?", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tool:
        workload, technique, size = json.loads(options.case)
        case = workload, technique, tuple(size) if isinstance(size, list) else size
        if options.tool == KERNELS:
            profiled(case)
        else:
            print(json.dumps(clocked(case)))
        return
    if bool(options.drawn) != bool(options.machine):
        parser.error("--drawn and --machine belong together: so many results of that machine")
    cases: dict[Case, dict[str, float]] = {case: {} for case in CASES}
    if options.drawn:
        try:
            results, _ = select(Store().load()[0], machines=[options.machine])
        except StoreError as error:
            parser.error(str(error))
        seed = random.randrange(10**6) if options.seed is None else options.seed
        print(f"Drawn with --seed {seed} from the device times of {options.machine}.")
        cases = {
            result.work: {PUBLISHED: result.timings[Metric.DEVICE].median}
            for result in drawn(results, options.drawn, seed)
        }
    tools = ("cuda-bench", *([KERNELS] if shutil.which("ncu") else ()))
    print("In µs.", f"| workload, size, technique | {' | '.join(WAYS)} |", "| --- |" + " ---: |" * len(WAYS), sep="\n")
    for case, times in cases.items():
        for tool in tools:
            times |= asked(tool, case)
        print(row(case, times), flush=True)


if __name__ == "__main__":
    main()
