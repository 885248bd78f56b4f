"""The results of the fastest recipes beside their targets: ``python benchmarks/limits.py``.

Everything is measured with the code of one commit, each measurement in its own process. ``--save NAME`` stores the
table for a machine of that name in results/limits.jsonl; what ``gpu-cookbook compare --save --machine NAME`` has
measured of the same code, versions and driver is not measured again. ``--show`` prints the last stored table as
Markdown, and the ladders: from the recipe that one writes first to the fastest, with the gain of each step, from the
stored results of that machine.

A share is the limit's time divided by the recipe's, or the recipe's rate divided by the limit's: 1 is the limit, and
more is better. A ratio is the recipe's time divided by another time: less is better.
"""

import itertools
import multiprocessing
import statistics
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import limits as shown
from gpu_cookbook.render import tables, text
from gpu_cookbook.results import Key, Metric, Result
from gpu_cookbook.run import compare, measure
from gpu_cookbook.run.device import OpenCl
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.script import Interruptible, Save, commit_for, finish, run
from gpu_cookbook.store import asv_files as store
from gpu_cookbook.store import transfers
from gpu_cookbook.store.limits import FILE as LIMITS
from gpu_cookbook.store.limits import kept
from gpu_cookbook.terminal import complain, fail, say
from gpu_cookbook.units import seconds
from gpu_cookbook.words import reason

ROOT = Path(__file__).parents[1]
FILE = ROOT / "benchmarks" / "results" / LIMITS
CODE = ("benchmarks/limits.py", "recipes", "kernels", "gpu_cookbook")  # what a line depends on
FRAMEWORKS = ("pycuda", "pyopencl", "numba", "cupy", "torch")  # whose launch of an empty kernel is measured
# Held to the limits, of what runs in the main environment: a framework's tuned recipe, or its idiomatic one if a
# compiler does what tuning would.
TECHNIQUES = (*(f"{name}_tuned" for name in (*FRAMEWORKS, "cuda_core", "warp")), "triton", "jax")
EMPTY = 'extern "C" __global__ void empty() {}'
LARGE, SMALL = 2**28, 40_000  # elements of multiply and increment
SIZES = {
    "multiply": (SMALL, LARGE),
    "increment": (SMALL, LARGE),
    "matmul": (200, 1_000, 4_096),
    "subset_mean": (40_000,),
    "norm": (LARGE,),
    "random_subset_mean": (100_000,),
}
# What they are held against, where that is a recipe.
AGAINST = {
    **dict.fromkeys(("multiply", "increment", "matmul"), ("torch",)),
    "random_subset_mean": ("dask", "numba_cpu_tuned"),
}
IN_GRAPH = 50  # products per graph, one after another, so that the time does not include launches

# ---- Limits. Each function runs in a fresh process.


def call(function, wait=lambda: None):
    """The median time of one call, in seconds."""

    def synchronised():
        function()
        wait()

    for _ in range(20):
        synchronised()
    return statistics.median(measure.sample(measure.clocked(synchronised)))


def empty_pycuda():
    from pycuda import autoprimaryctx
    from pycuda.compiler import SourceModule

    kernel = SourceModule(EMPTY, no_extern_c=True).get_function("empty")
    kernel.prepare("")
    return call(lambda: kernel.prepared_call((1, 1), (32, 1, 1)), autoprimaryctx.context.synchronize)


def empty_pyopencl():
    import pyopencl as cl

    queue = OpenCl.default().queue
    kernel = cl.Kernel(cl.Program(queue.context, "__kernel void empty() {}").build(), "empty")
    return call(lambda: kernel(queue, (32,), (32,)), queue.finish)


def empty_numba():
    from numba import cuda

    kernel = cuda.jit(lambda: None)[1, 32]
    return call(kernel, cuda.synchronize)


def empty_cupy():
    import cupy as cp

    kernel = cp.RawKernel(EMPTY, "empty")
    return call(lambda: kernel((1,), (32,), ()), cp.cuda.get_current_stream().synchronize)


def empty_torch():
    import torch

    kernel = torch.cuda._compile_kernel(EMPTY, "empty")
    return call(lambda: kernel((1, 1, 1), (32, 1, 1)), torch.cuda.current_stream().synchronize)


def in_graph(work):
    """Seconds of one ``work()``, which launches into CuPy's current stream, averaged over many in a CUDA graph."""
    import cupy as cp

    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        work()
        stream.synchronize()
        stream.begin_capture()
        for _ in range(IN_GRAPH):
            work()
        graph = stream.end_capture()
    return call(graph.launch, cp.cuda.get_current_stream().synchronize) / IN_GRAPH


def graph_of_empty():
    import cupy as cp

    kernel = cp.RawKernel(EMPTY, "empty")
    return in_graph(lambda: kernel((1,), (32,), ()))


def graph_of_matmul():
    """Our kernel at 200×200×200, and the relative error of its result."""
    module = load("matmul", "cupy_tuned")
    a, b = catalogue.workload_module("matmul").inputs(200)
    (x, y), (out,) = module.upload(a, b), module.upload(np.full((200, 200), np.nan))
    took = in_graph(lambda: module.launch(x, y, out))
    expected = a.astype(np.float64) @ b
    return took, float(np.linalg.norm(module.download(out) - expected) / np.linalg.norm(expected))


def graph_of_cublas():
    import torch

    a, b, out = torch.rand((3, 200, 200), device="cuda")
    torch.mm(a, b, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(IN_GRAPH):
            torch.mm(a, b, out=out)
    return call(graph.replay, torch.cuda.current_stream().synchronize) / IN_GRAPH


def read_bandwidth():
    """Bytes per second of a kernel that adds up the half of subset_mean's array that contains the subset."""
    import cupy as cp

    kernel = cp.RawKernel(
        r"""
        extern "C" __global__ void add_up(const double2 *x, long long n, double *sink)
        {
            double sum = 0;
            const long long step = (long long)gridDim.x * blockDim.x;
            for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
                sum += x[i].x + x[i].y;
            if (sum == 0.1)  // never true; it keeps the compiler from removing the sum
                *sink = sum;
        }
        """,
        "add_up",
    )
    x, sink = cp.random.standard_normal(40_000 * 20_000), cp.empty(1)
    took = call(
        lambda: kernel((4096,), (256,), (x, np.int64(x.size // 2), sink)), cp.cuda.get_current_stream().synchronize
    )
    return x.nbytes / took


def load(workload, technique):
    (recipe,) = catalogue.choose([workload], [technique])
    return Loader(recipe).execute()


# ---- The run.


def alone(function):
    """The function's return value in a fresh process; None, with a message on standard error, if it fails."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(function).result(120)
        except Exception as error:  # the framework may be missing or may raise anything; its rows are left out
            print(f"{function.__name__}: {reason(error)}", file=sys.stderr)


class Results:
    """The results of gpu-cookbook compare: of each workload, all at once, as soon as the first is asked for. ``known``:
    those that are already stored."""

    def __init__(self, known: Mapping[Key, Result]) -> None:
        self.known = dict(known)
        self.measured: set[str] = set()  # workloads

    def get(self, workload: str, technique: str, size: int, metric: str) -> float | None:
        """The metric in seconds; None if there is no such recipe or metric, or if it failed, as standard error says."""
        if workload not in self.measured:
            self._measure(workload)
        result = self._of(workload, technique, size)
        return result.value(Metric(metric)) if result else None

    def _of(self, workload: str, technique: str, size: int) -> Result | None:
        recipe = catalogue.find(workload, technique)
        return self.known.get((workload, technique, size, recipe.environment)) if recipe else None

    def _measure(self, workload: str) -> None:
        names = [*AGAINST.get(workload, ()), *(name for name in TECHNIQUES if to_reach(workload, name))]
        recipes = [recipe for name in names if (recipe := catalogue.find(workload, name))]
        print(f"{workload}: {', '.join(recipe.technique for recipe in recipes)}", file=sys.stderr)
        comparison = compare.Comparison(recipes, {workload: SIZES[workload]}, self.known)  # which checks them first
        if comparison.found:
            print(f"  {tables.already_stored(comparison.found)}", file=sys.stderr)
        outcome = comparison.measure(
            lambda recipe, size: print(f"  {recipe.technique}, {size:,}", file=sys.stderr), lambda: None, save=None
        )
        self.known |= {each.key: each for each in outcome.results}
        if outcome.stopped or outcome.interrupted:
            raise outcome.stopped or KeyboardInterrupt
        self.measured.add(workload)
        for each in outcome.results:
            if not each.ok:
                print(f"  {each.technique}, {each.label}: {each.status}: {each.reason}", file=sys.stderr)

    def copy_bandwidth(self) -> float:
        """Bytes per second of a copy on the GPU, beside PyTorch's large multiply; 0 if it could not be measured."""
        self.get("multiply", "torch", LARGE, "device")
        beside = self._of("multiply", "torch", LARGE)
        return 1e9 * (beside and beside.copy_bandwidth or 0)


def to_reach(workload: str, technique: str) -> bool:
    """Whether there is a target for it: one that makes all samples has none, since that is for those of the subset."""
    return workload != "random_subset_mean" or technique.endswith("_tuned")


def rows(known):
    """Yields (what, technique, measured as text, limit as text, share or ratio, to reach, 'share' or 'ratio')."""
    results = Results(known)
    copy = results.copy_bandwidth()
    for workload in ("multiply", "increment"):
        moved = catalogue.workload_module(workload).bytes_moved(LARGE)
        torch = results.get(workload, "torch", LARGE, "device")
        best = max(copy, moved / torch if torch else 0)
        limit = f"{best / 1e9:,.0f} GB/s: {'PyTorch' if best > copy else 'a copy on the device'}"
        for technique in TECHNIQUES:
            if took := results.get(workload, technique, LARGE, "device"):
                rate = moved / took
                yield f"{workload} 2**28", technique, f"{rate / 1e9:,.0f} GB/s", limit, rate / best, 0.97, "share"

    launches = {name: took for name in FRAMEWORKS if (took := alone(globals()[f"empty_{name}"]))}
    for name, took in launches.items():
        yield "launch and synchronise of an empty kernel", name, seconds(took), "–", None, None, "ratio"
    fastest = min(launches, key=launches.get, default=None)
    for workload in ("multiply", "increment") if fastest else ():
        for metric, technique in itertools.product(("resident", "prepared"), TECHNIQUES):
            if took := results.get(workload, technique, SMALL, metric):
                empty = launches[fastest]
                limit = f"{seconds(empty)}: an empty kernel, {fastest}"
                what = f"{workload} 40,000" + ", prepared" * (metric == "prepared")
                yield what, technique, seconds(took), limit, took / empty, 1.15, "ratio"

    empty, ours, cublas = alone(graph_of_empty), alone(graph_of_matmul), alone(graph_of_cublas)
    if empty and ours and cublas:
        what = "matmul 200, device time in a graph of 50"
        yield what, "an empty kernel", seconds(empty), f"{seconds(cublas)}: cuBLAS", empty / cublas, None, "ratio"
        took = f"{seconds(ours[0])}, relative error {ours[1]:.0e}"
        yield what, "cupy_tuned", took, f"{seconds(cublas)}: cuBLAS", ours[0] / cublas, 0.55, "ratio"
    for size in (1_000, 4_096):
        cublas = results.get("matmul", "torch", size, "device")
        for technique in TECHNIQUES:
            if cublas and (took := results.get("matmul", technique, size, "device")):
                limit = f"{seconds(cublas)}: cuBLAS"
                yield f"matmul {size:,}, device", technique, seconds(took), limit, took / cublas, 1.1, "ratio"
    torch = results.get("matmul", "torch", 200, "resident")
    for metric, technique in itertools.product(("resident", "prepared"), TECHNIQUES):
        if torch and (took := results.get("matmul", technique, 200, metric)):
            what = "matmul 200" if metric == "resident" else "matmul 200, prepared"
            yield what, technique, seconds(took), f"{seconds(torch)}: PyTorch", took / torch, 0.7, "ratio"
    if bandwidth := alone(read_bandwidth):
        for workload, size, what in (("subset_mean", 40_000, "40,000²"), ("norm", LARGE, "2**28")):
            moved = catalogue.workload_module(workload).bytes_moved(size)
            read = moved / bandwidth
            limit = f"{seconds(read)}: {moved / 1e9:.1f} GB read at {bandwidth / 1e9:,.0f} GB/s"
            for technique in TECHNIQUES:
                if took := results.get(workload, technique, size, "resident"):
                    yield f"{workload} {what}", technique, seconds(took), limit, read / took, 0.9, "share"
    for technique in TECHNIQUES:
        if not to_reach("random_subset_mean", technique):
            continue
        if took := results.get("random_subset_mean", technique, 100_000, "resident"):
            goal = 0.020 if technique == "pyopencl_tuned" else 0.013
            what = "random_subset_mean 100,000²"
            yield what, technique, seconds(took), f"{seconds(goal)}: the goal", took / goal, 1, "ratio"
    dask, cpu = (results.get("random_subset_mean", name, 100_000, "resident") for name in ("dask", "numba_cpu_tuned"))
    if dask and cpu:
        what = "random_subset_mean 100,000², CPU"
        yield what, "numba_cpu_tuned", seconds(cpu), f"{seconds(dask)}: Dask", cpu / dask, 1 / 3, "ratio"


def main(
    save: Save = None,
    stored: Annotated[bool, typer.Option("--show", help="Print the last stored table as Markdown.")] = False,
):
    """Measure what this machine can do, and how close the fastest recipes come to it."""
    if stored and save is not None:
        fail("--show measures nothing: omit --save.")
    if stored:
        runs, complaints = kept(FILE.parent)
        if runs:
            print(text.as_markdown(shown.of_machine([*runs.values()][-1], store.Store().load()[0])), end="")
        elif not complaints:
            fail(f"Nothing is stored in {FILE} yet. To measure: python benchmarks/limits.py --save NAME")
        complain(complaints)
        return
    head = commit_for(save, ROOT, CODE, FILE)
    if not machine.gpus():
        fail("The limits are those of an NVIDIA GPU, but this machine has none.")
    known = {}
    if save:
        writer = store.Writer(store.Store(), save, resume=True)
        known = writer.done()
        for complaint in writer.unusable:
            say(complaint)
    found = []
    with Interruptible() as measuring:
        found += rows(known)
    line = transfers.beginning(save, head, FRAMEWORKS) | {"rows": found} if save else None
    measured = (shown.entries(row, frozenset()) for row in found)
    finish([shown.table("Limits", shown.HEADINGS, "llrlrrl", measured)], FILE, line, measuring.stopped)


if __name__ == "__main__":
    run(main)
