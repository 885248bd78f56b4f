"""What is on this machine: facts for the doctor, which judges them. Nothing here says what is good or bad.

Frameworks are tried in processes of their own: none is imported here.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pynvml
from packaging.utils import canonicalize_name

from gpu_cookbook import machine

TIME_LIMIT = 120  # seconds to import a framework: PyTorch takes that long from a slow network disk
PACKAGE_MANAGERS = ("apt", "dnf", "zypper", "pacman", "apk")


@dataclass(frozen=True)
class Framework:
    """A library that recipes use. `{cuda}` in `install` is the CUDA major version that the machine takes."""

    name: str
    module: str
    distributions: tuple[str, ...]  # what brings it; the first one installed gives the version
    install: str
    tries: str  # Python that fails where the framework does not work; it may put what it sees into `seen`
    tries_gpu: str = ""  # and this too, where there is an NVIDIA GPU
    needs_gpu: bool = False
    pins: tuple[str, ...] = ()  # distributions that only say which versions of others this one takes


# The builds of CuPy: two of them overwrite each other's files, whichever they are.
CUPY = (*(f"cupy-cuda{v}x" for v in (11, 12, 13, 14)), "cupy", "cupy-rocm-7-0", "cupy-rocm-7-1", "amd-cupy")

FRAMEWORKS = (
    Framework("NumPy", "numpy", ("numpy",), "pip install numpy", "import numpy; (numpy.ones((2, 2)) @ numpy.ones(2))"),
    Framework(
        "PyCUDA",
        "pycuda",
        ("pycuda",),
        "pip install pycuda",
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
        'pip install "pyopencl[pocl]"',
        """
import pyopencl as cl
platforms = [p for p in cl.get_platforms() if p.get_devices()]
seen["platforms"] = [(p.name, p.version, [d.name.strip() for d in p.get_devices()]) for p in platforms]
assert platforms, "no platform has a device"
for p in platforms:
    cl.Program(cl.Context(p.get_devices()), "__kernel void nothing() {}").build()
""",
    ),
    Framework(
        "Numba", "numba", ("numba",), "pip install numba", "import numba; numba.njit(lambda x: x + 1, cache=False)(1)"
    ),
    Framework(
        "numba-cuda",
        "numba_cuda",
        ("numba-cuda",),
        'pip install "numba-cuda[cu{cuda}]" "numpy<2.5"',
        # Importing numba.cuda is not enough: most of it is imported by the first kernel.
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
        "CuPy",
        "cupy",
        CUPY,
        "pip install cupy-cuda{cuda}x",
        "import cupy",
        "(cupy.arange(8.0) * 2).sum().item()",
        needs_gpu=True,
    ),
    Framework(
        "PyTorch",
        "torch",
        ("torch",),
        "pip install torch",
        "import torch; seen['cuda'] = torch.version.cuda; torch.ones(8).sum().item()",
        "torch.ones(8, device='cuda').sum().item()",
    ),
    Framework(
        "Dask", "dask", ("dask",), 'pip install "dask[array]"', "import dask.array; dask.array.ones(2).compute()"
    ),
    Framework("distributed", "distributed", ("distributed",), 'pip install "dask[distributed]"', "import distributed"),
    Framework(
        "dask-cuda",
        "dask_cuda",
        ("dask-cuda",),
        "pip install dask-cuda",
        "import dask_cuda",
        needs_gpu=True,
        pins=("rapids-dask-dependency",),
    ),
    Framework("joblib", "joblib", ("joblib",), "pip install joblib", "import joblib"),
    Framework("Ray", "ray", ("ray",), "pip install ray", "import ray"),
    Framework(
        "cuda-core",
        "cuda.core",
        ("cuda-core",),
        'pip install "cuda-core[cu{cuda}]"',
        "import cuda.core",
        "cuda.core.Device(0).set_current()",
        needs_gpu=True,
    ),
)


@dataclass(frozen=True)
class Probe:
    """What came of trying a framework in a process of its own."""

    error: str = ""
    seen: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Nvcc:
    path: str
    version: str  # empty: it does not run
    on_path: bool

    @property
    def major(self):
        return int(self.version.partition(".")[0] or 0)


@dataclass(frozen=True)
class Facts:
    """Everything that `judge` looks at."""

    python: str = "3.12.0"
    executable: str = "python"
    site_packages: str = "/site-packages"
    architecture: str = "x86_64"
    processor: str = ""
    root: bool = False
    container: bool = False
    system: str | None = None  # one of PACKAGE_MANAGERS
    nvidia: machine.Nvidia | None = None
    nvidia_error: str = ""  # why the driver's library gives no answer; empty where there is no such library
    nvidia_on_bus: bool = False  # an NVIDIA display controller is in the machine, driver or not
    visible: str | None = None  # CUDA_VISIBLE_DEVICES
    nvccs: tuple[Nvcc, ...] = ()  # those on PATH first
    compiler: tuple[str, str] | None = None  # path, version
    opencl_drivers: tuple[tuple[str, str], ...] = ()  # ICD files: path, content
    nvidia_opencl: bool = False  # the driver's libnvidia-opencl.so.1 can be loaded
    packages: dict[str, str] = field(default_factory=dict)  # every distribution's version, by its canonical name
    requirements: dict[str, list[str]] = field(default_factory=dict)  # of the frameworks' distributions
    probes: dict[str, Probe] = field(default_factory=dict)  # by Framework.name: of those that are installed

    @property
    def gpus(self):
        return self.nvidia.gpus if self.nvidia else ()

    @property
    def cuda(self):
        """The newest CUDA major version that the driver and every GPU here take."""
        if not self.gpus:
            return 13
        # CUDA 13 has left out everything before Turing.
        old = min(gpu.compute_capability for gpu in self.gpus) < (7, 5)
        return min(self.nvidia.cuda[0], 12 if old else 13)


def gather():
    """The facts of this machine."""
    nvidia, error = None, ""
    try:
        nvidia = machine.nvidia()
        if nvidia is None:
            pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        pass
    except pynvml.NVMLError as reason:
        error = str(reason)
    packages, requirements = _distributions()
    nvccs = _nvccs()
    return Facts(
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
        nvccs=nvccs,
        compiler=_compiler(),
        opencl_drivers=tuple((str(path), _read(path)) for path in machine.opencl_drivers()),
        nvidia_opencl=_loads("libnvidia-opencl.so.1"),
        packages=packages,
        requirements=requirements,
        probes=_probe_all(packages, bool(nvidia and nvidia.gpus)),
    )


def _distributions():
    packages, requirements = {}, {}
    ours = {name for framework in FRAMEWORKS for name in (*framework.distributions, *framework.pins)}
    for distribution in importlib.metadata.distributions():
        name = canonicalize_name(distribution.metadata["Name"] or "")
        if name and name not in packages:  # the first one on sys.path is the one that is imported
            packages[name] = distribution.version
            if name in ours:
                requirements[name] = list(distribution.requires or ())
    return packages, requirements


def _is_installed(framework, packages):
    if any(name in packages for name in framework.distributions):
        return True
    try:  # conda and the like may leave no metadata
        spec = importlib.util.find_spec(framework.module)
    except ModuleNotFoundError:
        return False
    return spec is not None and spec.origin is not None  # a folder of that name is not a framework


def _probe_all(packages, gpu):
    chosen = [framework for framework in FRAMEWORKS if _is_installed(framework, packages)]
    pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    try:
        answers = list(pool.map(lambda framework: probe(_attempt(framework, gpu)), chosen))
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C starts no more of them
    probes = {framework.name: answer for framework, answer in zip(chosen, answers, strict=True)}
    for framework in chosen:
        # A GPU in exclusive mode takes one process at a time, and a full one fewer than were just tried.
        error = probes[framework.name].error
        if gpu and framework.tries_gpu and error and not error.startswith("no answer"):
            probes[framework.name] = probe(_attempt(framework, gpu))
    return probes


def _attempt(framework, gpu):
    return f"{framework.tries}\n{framework.tries_gpu}" if gpu else framework.tries


# os._exit: what a library does at the end of a process is not in question, and may hang.
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


def probe(code, time_limit=TIME_LIMIT):
    """Runs code in a process of its own, without the current folder on its path: a torch.py there is not PyTorch."""
    command = [sys.executable, "-P", "-W", "ignore", "-c", _PROBE, code]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, errors="replace"
    ) as process:
        try:
            output, errors = process.communicate(timeout=time_limit)
        except subprocess.TimeoutExpired:
            process.kill()
            return Probe(f"no answer in {time_limit} s")
    try:
        answer = json.loads(output.splitlines()[-1])
        return Probe(_one_line(answer["error"]), answer["seen"])
    except (IndexError, ValueError, KeyError, TypeError):
        if process.returncode < 0:
            return Probe(f"the process died of {signal.Signals(-process.returncode).name}")
        return Probe(_one_line((errors.strip().splitlines() or ["no answer"])[-1]))


def _one_line(text, width=200):
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def _run(*command):
    """What a command prints, or an empty string where it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _nvccs():
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


def _compiler():
    path = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    return (path, (_run(path, "-dumpfullversion") or _run(path, "-dumpversion")).strip()) if path else None


def _nvidia_on_bus():
    """Whether a display controller (PCI class 03) of NVIDIA (vendor 10de) is in the machine, driver or not."""
    return any(
        _read(device / "vendor").strip() == "0x10de" and _read(device / "class").startswith("0x03")
        for device in Path("/sys/bus/pci/devices").glob("*")
    )


def _read(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _loads(library):
    """Whether the dynamic linker finds a library, tried in another process: loading can have effects."""
    code = f"import ctypes; ctypes.CDLL({library!r}); print('yes')"
    return bool(_run(sys.executable, "-I", "-S", "-c", code))
