"""Facts about this machine, for the doctor to judge. Nothing here says what is good or bad.

Frameworks are tried in separate processes; none is imported here.
"""

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pynvml
from packaging.utils import canonicalize_name

from gpu_cookbook import catalogue, machine
from gpu_cookbook.catalogue import Recipe

TIME_LIMIT = 120  # seconds to import a framework: from a slow network disk, PyTorch takes that long
PACKAGE_MANAGERS = ("apt", "dnf", "zypper", "pacman", "apk")


@dataclass(frozen=True)
class Framework:
    """A library that recipes use. `frameworks` takes `install` and `environments` from the recipes."""

    name: str
    module: str
    distributions: tuple[str, ...]  # those that may provide it; the first installed one gives the version
    tries: str  # Python code that fails if the framework does not work; it may record what it finds in `seen`
    tries_gpu: str = ""  # more code, run only if there is an NVIDIA GPU
    needs_gpu: bool = False
    pins: tuple[str, ...] = ()  # distributions that only pin the versions of others
    install: str = ""  # the command for CUDA 13; below, only for distributions that no recipe names
    environments: tuple[str, ...] = ()  # those that it belongs to; none: every one


# The builds of CuPy. Any two of them overwrite each other's files.
CUPY = (*(f"cupy-cuda{v}x" for v in (11, 12, 13, 14)), "cupy", "cupy-rocm-7-0", "cupy-rocm-7-1", "amd-cupy")

FRAMEWORKS = (
    Framework("NumPy", "numpy", ("numpy",), "import numpy; (numpy.ones((2, 2)) @ numpy.ones(2))"),
    Framework(
        "PyCUDA",
        "pycuda",
        ("pycuda",),
        "import pycuda.driver",
        """
import pycuda.autoprimaryctx, pycuda.compiler
pycuda.compiler.SourceModule("__global__ void nothing() {}", no_extern_c=True)
""",
        needs_gpu=True,
    ),
    Framework(
        "PyOpenCL",
        "pyopencl",
        ("pyopencl",),
        """
import pyopencl as cl
platforms = [p for p in cl.get_platforms() if p.get_devices()]
seen["platforms"] = [(p.name, p.version, [d.name.strip() for d in p.get_devices()]) for p in platforms]
assert platforms, "no platform has a device"
"""
        + machine.OPENCL_BUILD,
    ),
    Framework("Numba", "numba", ("numba",), "import numba; numba.njit(lambda x: x + 1, cache=False)(1)"),
    Framework(
        "numba-cuda",
        "numba_cuda",
        ("numba-cuda",),
        # Importing numba.cuda is not enough, because the first kernel imports most of it.
        """
import numba, numba.cuda
try:
    import numba.cuda.cudaimpl
except ModuleNotFoundError:
    pass
""",
        """
x = numba.cuda.device_array(1)
numba.cuda.jit("void(float64[:])")(lambda x: None)[1, 1](x)
numba.cuda.synchronize()
""",
        needs_gpu=True,
    ),
    Framework(
        "numba-cuda-mlir",
        "numba_cuda_mlir",
        ("numba-cuda-mlir",),
        "import numba_cuda_mlir.cuda",
        """
from numba_cuda_mlir import cuda
x = cuda.device_array(1)
cuda.jit("void(float64[:])")(lambda x: None)[1, 1](x)
cuda.synchronize()
""",
        needs_gpu=True,
    ),
    Framework("CuPy", "cupy", CUPY, "import cupy", "(cupy.arange(8.0) * 2).sum().item()", needs_gpu=True),
    Framework(
        "PyTorch",
        "torch",
        ("torch",),
        "import torch; seen['cuda'] = torch.version.cuda; torch.ones(8).sum().item()",
        "torch.ones(8, device='cuda').sum().item()",
    ),
    Framework(
        "Triton",
        "triton",
        ("triton",),
        "import triton",
        # A kernel must stand in a file, as the recipe's does. In a new cache, since the user's may keep what a C
        # compiler made that is no longer there.
        """
import tempfile
with tempfile.TemporaryDirectory() as folder:
    os.environ["TRITON_CACHE_DIR"] = folder
    from gpu_cookbook.recipes.increment import with_triton
    with_triton.wait(with_triton.increment(*with_triton.upload(0)))
""",
        needs_gpu=True,
    ),
    Framework(
        "JAX",
        "jax",
        ("jax",),
        # It would take most of a GPU's memory, on which the others are tried at the same time.
        """
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax
jax.numpy.ones(8).sum().item()
seen["platform"] = jax.default_backend()
""",
    ),
    Framework(
        "Warp",
        "warp",
        ("warp-lang",),
        """
import warp
warp.config.log_level = warp.LOG_WARNING
seen["cuda"] = ".".join(map(str, warp.get_cuda_toolkit_version()))
seen["platform"] = "gpu" if warp.is_cuda_available() else "cpu"
warp.zeros(8, dtype=warp.float32).numpy().sum()
""",
    ),
    Framework("Dask", "dask", ("dask",), "import dask.array; dask.array.ones(2).compute()"),
    Framework(
        "distributed",
        "distributed",
        ("distributed",),
        "import distributed",
        install='pip install "dask[distributed]"',  # recipes get it with dask[complete] or dask-cuda
    ),
    Framework(
        "dask-cuda",
        "dask_cuda",
        ("dask-cuda",),
        "import dask_cuda",
        needs_gpu=True,
        pins=("rapids-dask-dependency",),
    ),
    Framework("pandas", "pandas", ("pandas",), "import pandas; pandas.Series([1.0]).mean()"),
    Framework("Polars", "polars", ("polars",), "import polars; polars.Series([1.0]).mean()"),
    Framework("Modin", "modin", ("modin",), "import modin.pandas"),
    Framework(
        "cuDF",
        "cudf",
        ("cudf-cu13", "cudf-cu12"),
        "import cudf",
        "import cudf; cudf.Series([1.0]).mean()",
        needs_gpu=True,
    ),
    Framework(
        "cudf-polars",
        "cudf_polars",
        ("cudf-polars-cu13", "cudf-polars-cu12"),
        "import cudf_polars",
        """
import polars
polars.LazyFrame({"x": [1.0]}).select(polars.col("x").mean()).collect(engine=polars.GPUEngine(raise_on_fail=True))
""",
        needs_gpu=True,
    ),
    Framework(
        "dask-cudf",
        "dask_cudf",
        ("dask-cudf-cu13", "dask-cudf-cu12"),
        "import dask_cudf",
        needs_gpu=True,
        pins=("rapids-dask-dependency",),
    ),
    Framework("SciPy", "scipy", ("scipy",), "import scipy.signal; scipy.signal.fftconvolve([1.0, 2.0], [1.0, 2.0])"),
    Framework(
        "scikit-learn",
        "sklearn",
        ("scikit-learn",),
        "import sklearn.linear_model; sklearn.linear_model.Ridge().fit([[1.0], [2.0]], [1.0, 2.0])",
    ),
    Framework(
        "cuML",
        "cuml",
        ("cuml-cu13", "cuml-cu12"),
        "import cuml",
        "import cuml, numpy; cuml.Ridge().fit(numpy.eye(2), numpy.ones(2))",
        needs_gpu=True,
    ),
    Framework("joblib", "joblib", ("joblib",), "import joblib"),
    Framework("Ray", "ray", ("ray",), "import ray"),
    Framework(
        "cuda-core",  # with which gpu-cookbook itself measures GPUs, too
        "cuda.core",
        ("cuda-core",),
        "import cuda.core",
        "from gpu_cookbook.run.cuda_core import Device; Device(0).set_current()",
        needs_gpu=True,
    ),
    Framework(
        "cuTile",
        "cuda.tile",
        ("cuda-tile",),
        "import cuda.tile",
        """
from cuda.tile import _compile
# tileiras, which a kernel would miss only when it is launched. It is looked for by a function that may be renamed.
getattr(_compile, "_find_compiler_bin", lambda: None)()
""",
        needs_gpu=True,
    ),
    Framework(
        "cuda.compute",
        "cuda.compute",
        ("cuda-cccl",),
        "import cuda.cccl",  # cuda.compute itself only warns if it misses the driver
        """
import cuda.compute, numpy
make = cuda.compute.make_reduce_into
x = cuda.compute.CountingIterator(numpy.int32(0))
make(d_in=x, d_out=cuda.compute.DiscardIterator(x), op=cuda.compute.OpKind.PLUS, h_init=numpy.zeros(1, numpy.int32))
""",
        needs_gpu=True,
    ),
    Framework(
        "nvmath-python",
        "nvmath",
        ("nvmath-python",),
        "import nvmath",
        # It looks for cuBLASLt when it first multiplies.
        """
import numpy
from gpu_cookbook.recipes.matmul import with_nvmath
x, y = with_nvmath.upload(*numpy.ones((2, 2, 2)))
with_nvmath.wait(with_nvmath.matmul(x, y))
""",
        needs_gpu=True,
    ),
)


def frameworks(recipes: Sequence[Recipe]) -> tuple[Framework, ...]:
    """FRAMEWORKS and those that only recipes name, with the recipes' Install lines and environments."""
    return tuple(_completed(framework, recipes) for framework in (*FRAMEWORKS, *_named_only(recipes)))


def _completed(framework: Framework, recipes: Sequence[Recipe]) -> Framework:
    """The framework with the shortest Install line that begins with it, and with the environments of every recipe
    that asks for it."""
    names = {*framework.distributions, *(_distribution_names(framework.install) if framework.install else ())}
    using = [recipe for recipe in recipes if names & {*_distribution_names(recipe.install)}]
    if not using:
        return framework
    lines = sorted({recipe.install for recipe in using}, key=lambda line: (len(line), line))
    first = [line for line in lines if _distribution_names(line)[0] in names]
    everywhere = any(not recipe.environments for recipe in using)
    return replace(
        framework,
        install=framework.install or (first or lines)[0],
        environments=() if everywhere else tuple(dict.fromkeys(name for r in using for name in r.environments)),
    )


def _named_only(recipes: Sequence[Recipe]) -> Iterator[Framework]:
    """A framework for each distribution that Install lines begin with and that FRAMEWORKS does not have. All that can
    be tried is to import it."""
    known = {name for framework in FRAMEWORKS for name in framework.distributions}
    modules = {framework.module.partition(".")[0] for framework in FRAMEWORKS}
    names = {framework.name for framework in FRAMEWORKS}
    found: dict[str, list[Recipe]] = {}
    for recipe in recipes:
        first = _distribution_names(recipe.install)[0]
        if first not in known:
            found.setdefault(first, []).append(recipe)
    for distribution, using in found.items():
        module = next((module for recipe in using for module in recipe.packages if module not in modules), None)
        if module:
            name = distribution if using[0].framework in names else using[0].framework
            names.add(name)
            needs_gpu = all(recipe.runs_on in ("NVIDIA GPU", "every NVIDIA GPU") for recipe in using)
            yield Framework(name, module, (distribution,), f"import {module}", needs_gpu=needs_gpu)


@cache
def _distribution_names(install: str) -> list[str]:
    return [canonicalize_name(requirement.name) for requirement in catalogue.requirements(install)]


@dataclass(frozen=True)
class Probe:
    """The outcome of trying a framework in its own process."""

    error: str = ""
    seen: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Nvcc:
    path: str
    version: str  # empty if it does not run
    on_path: bool

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0] or 0)


@dataclass(frozen=True)
class Facts:
    """Everything that `judge` needs to know."""

    environment: str = machine.MAIN
    environments: tuple[str, ...] = (machine.MAIN,)  # those that recipes name
    frameworks: tuple[Framework, ...] = ()
    python: str = "3.12.0"
    executable: str = "python"
    site_packages: str = "/site-packages"
    architecture: str = "x86_64"
    processor: str = ""
    root: bool = False
    container: bool = False
    system: str | None = None  # one of PACKAGE_MANAGERS
    nvidia: machine.Nvidia | None = None
    nvidia_error: str = ""  # why the driver's library does not answer; empty if there is no such library
    nvidia_on_bus: bool = False  # an NVIDIA display controller is in the machine, with or without a driver
    visible: str | None = None  # CUDA_VISIBLE_DEVICES
    preallocated: str = "0.75"  # the share of a GPU's memory that JAX takes when it starts; empty: only what it needs
    ptxas: str | None = None  # TRITON_PTXAS_PATH
    nvccs: tuple[Nvcc, ...] = ()  # the one on PATH first
    compiler: tuple[str, str] | None = None  # path, version
    headers: bool = True  # of Python, with which Triton compiles
    opencl_drivers: tuple[tuple[str, str], ...] = ()  # ICD files: path, content
    nvidia_opencl: bool = False  # the driver's libnvidia-opencl.so.1 can be loaded
    packages: dict[str, str] = field(default_factory=dict)  # every distribution's version, by its canonical name
    requirements: dict[str, list[str]] = field(default_factory=dict)  # of the frameworks' distributions
    probes: dict[str, Probe] = field(default_factory=dict)  # of the installed frameworks, by Framework.name

    @property
    def gpus(self) -> tuple[machine.Gpu, ...]:
        return self.nvidia.gpus if self.nvidia else ()

    @property
    def cuda(self) -> int:
        return machine.newest_cuda(self.nvidia)

    @property
    def driver_cuda(self) -> tuple[int, int]:
        """The newest CUDA version that the driver supports; (0, 0) without a driver."""
        return self.nvidia.cuda if self.nvidia else (0, 0)


def _preallocated() -> str:
    """As jaxlib.xla_client.generate_pjrt_gpu_plugin_options of JAX 0.10 reads the environment."""
    if os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE") in ("0", "false", "False"):
        return ""
    if os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "").lower() == "platform":
        return ""
    names = "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"
    return next(filter(None, map(os.environ.get, names)), "0.75")


def gather() -> Facts:
    """The facts about this machine."""
    nvidia, error = None, ""
    try:
        nvidia = machine.nvidia()
        if nvidia is None:
            pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        pass
    except pynvml.NVMLError as reason:
        error = str(reason)
    known = frameworks(catalogue.recipes())
    packages, requirements = _distributions(known)
    nvccs = _nvccs()
    return Facts(
        environment=machine.environment(),
        environments=tuple(catalogue.environments()),
        frameworks=known,
        python=platform.python_version(),
        executable=sys.executable,
        site_packages=sysconfig.get_path("purelib"),
        architecture=platform.machine(),
        processor=machine.processor(),
        root=os.geteuid() == 0,
        container=any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")),
        system=next((name for name in PACKAGE_MANAGERS if shutil.which(name)), None),
        nvidia=nvidia,
        nvidia_error=error,
        nvidia_on_bus=_nvidia_on_bus(),
        visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
        preallocated=_preallocated(),
        ptxas=os.environ.get("TRITON_PTXAS_PATH"),
        nvccs=nvccs,
        compiler=_compiler(),
        headers=Path(sysconfig.get_path("include", "posix_prefix"), "Python.h").exists(),  # Triton looks only there
        opencl_drivers=tuple((str(path), machine.text_of(path)) for path in machine.opencl_drivers()),
        nvidia_opencl=machine.loads("libnvidia-opencl.so.1"),
        packages=packages,
        requirements=requirements,
        probes=_probe_all(_installed_here(known, packages), bool(nvidia and nvidia.gpus)),
    )


def _distributions(known: Sequence[Framework]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The version of every installed distribution, and the requirements of those that belong to a framework."""
    packages: dict[str, str] = {}
    requirements: dict[str, list[str]] = {}
    ours = {name for framework in known for name in (*framework.distributions, *framework.pins)}
    for distribution in importlib.metadata.distributions():
        name = canonicalize_name(distribution.metadata["Name"] or "")
        if name and name not in packages:  # the first one on sys.path is the one that is imported
            packages[name] = distribution.version
            if name in ours:
                requirements[name] = list(distribution.requires or ())
    return packages, requirements


def _installed_here(known: Sequence[Framework], packages: dict[str, str]) -> list[Framework]:
    """The installed frameworks, without those that belong only to other environments."""
    here = machine.environment()
    return [
        framework
        for framework in known
        if _is_installed(framework, packages) and (not framework.environments or here in framework.environments)
    ]


def _is_installed(framework: Framework, packages: dict[str, str]) -> bool:
    if any(name in packages for name in framework.distributions):
        return True
    try:  # conda and similar tools may leave no metadata
        spec = importlib.util.find_spec(framework.module)
    except ModuleNotFoundError:
        return False
    return spec is not None and spec.origin is not None  # a folder of that name is not a framework


def _probe_all(chosen: Sequence[Framework], gpu: bool) -> dict[str, Probe]:
    pool = ThreadPoolExecutor(machine.cores())
    try:
        answers = list(pool.map(lambda framework: probe(_attempt(framework, gpu)), chosen))
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C, no more of them are started
    probes = {framework.name: answer for framework, answer in zip(chosen, answers, strict=True)}
    for framework in chosen:
        # A GPU in exclusive mode accepts one process at a time, and one whose memory is nearly full may not have
        # accepted all of them: try again, one after another.
        error = probes[framework.name].error
        if gpu and framework.tries_gpu and error and not error.startswith("no answer within"):
            probes[framework.name] = probe(_attempt(framework, gpu))
    return probes


def _attempt(framework: Framework, gpu: bool) -> str:
    return f"{framework.tries}\n{framework.tries_gpu}" if gpu else framework.tries


# os._exit, because what a library does at exit is not tested here, and it may hang.
_PROBE = """
import json, os, sys
seen, error = {}, ""
try:
    exec(sys.argv[1])
except BaseException as reason:
    while reason.__cause__ is not None:
        reason = reason.__cause__
    error = f"{type(reason).__name__}: {reason}"
print(); print(json.dumps({"error": error, "seen": seen}), flush=True)
os._exit(0)
"""


def probe(code: str, time_limit: float = TIME_LIMIT) -> Probe:
    """Runs code in its own process, without the current folder on its path, because a torch.py there would hide
    PyTorch."""
    command = [sys.executable, "-P", "-W", "ignore", "-c", _PROBE, code]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, errors="replace"
    ) as process:
        try:
            output, errors = process.communicate(timeout=time_limit)
        except subprocess.TimeoutExpired:
            process.kill()
            return Probe(f"no answer within {time_limit} s")
    try:
        answer = json.loads(output.splitlines()[-1])
        return Probe(_one_line(answer["error"]), answer["seen"])
    except (IndexError, ValueError, KeyError, TypeError):
        if process.returncode < 0:
            return Probe(f"the process was killed by {signal.Signals(-process.returncode).name}")
        return Probe(_one_line((errors.strip().splitlines() or ["no answer"])[-1]))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _run(*command: str) -> str:
    """The output of a command, or an empty string if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def _nvccs() -> tuple[Nvcc, ...]:
    folders = [folder / "bin" for folder in machine.cuda_folders()]
    folders += sorted(Path("/usr/local").glob("cuda-*/bin"), reverse=True)
    folders += sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/cu*/bin"), reverse=True)
    on_path = shutil.which("nvcc")
    paths = [on_path] + [shutil.which("nvcc", path=folder) for folder in folders]
    found = []
    for path in dict.fromkeys(filter(None, paths)):
        version = re.search(r"release [\d.]+, V([\d.]+)", _run(path, "--version"))
        found.append(Nvcc(path, version[1] if version else "", path == on_path))
    return tuple(found)


def _compiler() -> tuple[str, str] | None:
    path = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    return (path, (_run(path, "-dumpfullversion") or _run(path, "-dumpversion")).strip()) if path else None


def _nvidia_on_bus() -> bool:
    """Whether the machine has a display controller (PCI class 03) by NVIDIA (vendor 10de), with or without a driver."""
    return any(
        machine.text_of(device / "vendor").strip() == "0x10de" and machine.text_of(device / "class").startswith("0x03")
        for device in Path("/sys/bus/pci/devices").glob("*")
    )
