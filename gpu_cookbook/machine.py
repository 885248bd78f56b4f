"""What this machine has, determined without importing any framework."""

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psutil
import pynvml
from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from gpu_cookbook.units import memory

if TYPE_CHECKING:  # the catalogue imports this module
    from gpu_cookbook.catalogue import Recipe

# What Install lines name that has no version for CUDA 11 with which the recipes run.
NOT_FOR_CUDA_11 = (
    "cuda-cccl",
    "cuda-pathfinder",
    "cuda-tile",
    "cudf-",
    "cuml-",
    "dask-cuda",
    "jax[cuda13]",
    "numba-cuda",
    "nvmath-python",
    "rmm-cu",
    "warp-lang",
)
GONE = "not installed, and no longer published for CUDA 11"
# The smallest kernel, on the device that OpenCL recipes take.
OPENCL_BUILD = """
import pyopencl as cl
devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])
cl.Program(cl.Context([device]), "__kernel void nothing() {}").build()
"""
POCL = "Portable Computing Language"  # its platform's name
UNKNOWN_PROCESSOR = "unknown target CPU"  # Clang's words, in PoCL
POCL_IS_OLDER = "no OpenCL driver for this processor, which is newer than PoCL's compiler"
NO_WORKING_OPENCL = "no OpenCL driver that works: gpu-cookbook doctor says which there are"
# The UUID of each device that CUDA sees, in its order.
COUNTED_BY_CUDA = """
import ctypes, uuid
cuda = ctypes.CDLL("libcuda.so.1")
count, device, number = ctypes.c_int(), ctypes.c_int(), (ctypes.c_ubyte * 16)()
ask = getattr(cuda, "cuDeviceGetUuid_v2", None) or cuda.cuDeviceGetUuid  # which knows nothing of MIG
if not (cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))):
    for place in range(count.value):
        if not (cuda.cuDeviceGet(ctypes.byref(device), place) or ask(number, device)):
            print(uuid.UUID(bytes=bytes(number)))
"""
MAIN = "main"  # the environment of recipes that name none
NEW_GROUP = "memory.max", "memory.current", "inactive_file"
OLD_GROUP = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"  # in version 1 of control groups
VARIABLE = "GPU_COOKBOOK_ENVIRONMENT"


def in_environment(name: str, command: str) -> str:
    """The command as it is given here for the recipes of an environment, which may be another one."""
    return command if name == environment() else f"{VARIABLE}={name} {command}"


def environment() -> str:
    """The environment that this process runs in: what GPU_COOKBOOK_ENVIRONMENT names. make ENVIRONMENT=NAME sets it."""
    return os.environ.get(VARIABLE) or MAIN


@dataclass(frozen=True)
class Gpu:
    """An NVIDIA GPU, or an instance of one in MIG mode, as the driver's management library (NVML) describes it.
    ``index``: that of the whole GPU there and in nvidia-smi. ``instance``: the UUID of the instance."""

    index: int
    name: str
    memory_bytes: int
    compute_capability: tuple[int, int]
    instance: str = ""

    @property
    def visible(self) -> int | str:
        """What CUDA_VISIBLE_DEVICES calls it with CUDA_DEVICE_ORDER=PCI_BUS_ID."""
        return self.instance or self.index


@dataclass(frozen=True)
class Nvidia:
    """The NVIDIA driver: its version, the newest CUDA that it can run, and its GPUs, in the order of CUDA's numbers."""

    driver: str
    cuda: tuple[int, int]
    gpus: tuple[Gpu, ...]


@cache
def nvidia() -> Nvidia | None:
    """The NVIDIA driver and GPUs, or None. CUDA_VISIBLE_DEVICES is respected. A GPU that the driver cannot describe, as
    one that has fallen off the bus, is left out: CUDA cannot use it either."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    cuda = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    gpus = []
    count = pynvml.nvmlDeviceGetCount()
    for index, instance in _seen_by_cuda(count) if _only_cuda_knows(count) else ((i, "") for i in _visible(count)):
        with contextlib.suppress(pynvml.NVMLError):
            whole = pynvml.nvmlDeviceGetHandleByIndex(index)
            handle = pynvml.nvmlDeviceGetHandleByUUID(instance) if instance else whole
            gpus.append(
                Gpu(
                    index,
                    _text(pynvml.nvmlDeviceGetName(handle)),
                    _memory(handle).total,
                    tuple(pynvml.nvmlDeviceGetCudaComputeCapability(whole)),
                    instance,
                )
            )
    return Nvidia(_text(pynvml.nvmlSystemGetDriverVersion()), (cuda // 1000, cuda % 1000 // 10), tuple(gpus))


def _only_cuda_knows(count: int) -> bool:
    """Whether these GPUs differ, which CUDA counts by their speed unless it is told to count them as NVML does, or one
    is in MIG mode: then CUDA sees a single instance."""
    names = set()
    for index in range(count):
        with contextlib.suppress(pynvml.NVMLError):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            if _is_in_mig_mode(handle):
                return True
            names.add(_text(pynvml.nvmlDeviceGetName(handle)))
    return len(names) > 1 and os.environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID"


def _is_in_mig_mode(handle: Any) -> bool:
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(handle)[0])
    except pynvml.NVMLError:  # a GPU or a driver without that mode
        return False


def _seen_by_cuda(count: int) -> list[tuple[int, str]]:
    """(index, UUID of the instance) of what CUDA says that it sees. It is asked in a process of its own, in which it
    stays."""
    places: dict[str, tuple[int, str]] = {}
    for index in range(count):
        with contextlib.suppress(pynvml.NVMLError):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            if _is_in_mig_mode(handle):
                places |= {instance.removeprefix("MIG-"): (index, instance) for instance in _instances(handle)}
            else:
                places[_uuid(index).removeprefix("GPU-")] = index, ""
    command = [sys.executable, "-I", "-S", "-c", COUNTED_BY_CUDA]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [places[uuid] for uuid in done.stdout.split() if uuid in places]


def _instances(handle: Any) -> Iterator[str]:
    """The UUIDs of the instances of a GPU in MIG mode."""
    for place in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        with contextlib.suppress(pynvml.NVMLError):  # there are fewer
            yield _text(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)))


def _visible(count: int) -> list[int]:
    """The GPU indices that CUDA_VISIBLE_DEVICES allows; as in CUDA, the first unknown one ends the list."""
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    if setting is None:
        return list(range(count))
    indices = []
    for word in filter(None, (word.strip() for word in setting.split(","))):
        if word.startswith("GPU-"):
            match = [i for i in range(count) if _uuid(i).startswith(word)]
            if not match:
                break
            indices.append(match[0])
        elif word.isdecimal() and int(word) < count and _uuid(int(word)):
            indices.append(int(word))
        else:
            break
    return indices


def _uuid(index: int) -> str:
    """An empty string if the driver cannot describe this GPU."""
    try:
        return _text(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(index)))
    except pynvml.NVMLError:
        return ""


def _memory(handle: Any) -> Any:
    try:
        return pynvml.nvmlDeviceGetMemoryInfo(handle)
    except pynvml.NVMLError_NotSupported:  # GB10 and similar: the GPU uses the machine's memory
        memory = psutil.virtual_memory()
        return SimpleNamespace(total=memory.total, used=memory.used, free=memory.available)


def _handle(gpu: Gpu) -> Any:
    if gpu.instance:
        return pynvml.nvmlDeviceGetHandleByUUID(gpu.instance)
    return pynvml.nvmlDeviceGetHandleByIndex(gpu.index)


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def gpus() -> tuple[Gpu, ...]:
    found = nvidia()
    return found.gpus if found else ()


def is_gpu(device: str | None) -> bool:
    """Whether this name stands for one or several of the NVIDIA GPUs here."""
    return device is not None and any(device == gpu.name or device.endswith(f" × {gpu.name}") for gpu in gpus())


def device_memory() -> list[tuple[int, int]]:
    """[(used, free)] in bytes for each visible NVIDIA GPU, whoever uses them."""
    infos = [_memory(_handle(gpu)) for gpu in gpus()]
    return [(info.used, info.free) for info in infos]


def processes_on_gpus() -> list[list[str]]:
    """For each visible NVIDIA GPU, the processes that compute there, including ours: ['process 4711 (python3, 3.1 GB)',
    …]; [] if NVML does not report them."""
    found = []
    for gpu in gpus():
        processes = []
        with contextlib.suppress(pynvml.NVMLError):
            processes = pynvml.nvmlDeviceGetComputeRunningProcesses(_handle(gpu))
        found.append(
            [
                f"process {process.pid} ({_program_of(process.pid)}, {memory(process.usedGpuMemory or 0)})"
                for process in processes
            ]
        )
    return found


def _program_of(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.Error:  # of another container, or just ended
        return "unknown here"


def host_memory_free() -> int:
    """Bytes that can be allocated before the machine starts to swap or to kill processes, or the control group that
    this process is in reaches its limit, as in a container."""
    return min([psutil.virtual_memory().available, *(free for _, free in _control_groups())])


def host_memory() -> int:
    """Bytes that this process could have if nothing else was there."""
    return min([psutil.virtual_memory().total, *(limit for limit, _ in _control_groups())])


def _control_groups() -> Iterator[tuple[int, int]]:
    """(its limit, what is left of that) in bytes, of each control group that this process is in. Files in the page
    cache count as used there, but those that were not read lately give way."""
    for folder, version in _groups_of("memory"):
        most, used, idle = NEW_GROUP if version == 2 else OLD_GROUP
        with contextlib.suppress(OSError, ValueError):  # "max" is no number
            limit, taken = (int((folder / name).read_text()) for name in (most, used))
            files = re.search(rf"^{idle} (\d+)", text_of(folder / "memory.stat"), re.MULTILINE)
            yield limit, max(0, limit - taken + int(files[1] if files else 0))


def _groups_of(controller: str) -> Iterator[tuple[Path, int]]:
    """(folder, version) of each control group that this process is in."""
    for line in text_of(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, version = Path("/sys/fs/cgroup"), 2
        elif controller in controllers.split(","):
            root, version = Path("/sys/fs/cgroup", controller), 1
        else:
            continue
        here = root / path.lstrip("/")
        for folder in (here, *here.parents):
            if folder.is_relative_to(root):  # in a container, the path may be that of the host: then only root is there
                yield folder, version


def cores() -> int:
    """How many cores this process can keep busy all the time, at least one: a container's quota of 1.5 leaves one."""
    return max(1, int(_quota()))


def core_count() -> str:
    """'16', the cores that this process may use, or '1.5 of 16' where a quota gives it the time of fewer."""
    every, quota = len(os.sched_getaffinity(0)), _quota()
    return f"{round(quota, 2):g} of {every}" if quota < every else str(every)


def _quota() -> float:
    """How many cores' time a control group leaves to this process, of those that it may use."""
    least: float = len(os.sched_getaffinity(0))
    for folder, version in _groups_of("cpu"):
        names = ("cpu.max",) if version == 2 else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        with contextlib.suppress(ValueError):  # "max" is no number, and without the controller there are none
            quota, period = map(int, " ".join(text_of(folder / name) for name in names).split())
            if quota > 0:  # in version 1, -1 is no limit
                least = min(least, quota / period)
    return least


def cores_in_use() -> float:
    """How many cores other programs keep busy, over one second."""
    return sum(psutil.cpu_percent(1.0, percpu=True)) / 100


@cache
def processor() -> str:
    """The CPU's name and the cores that this process may use: 'AMD EPYC, 2 cores'; see core_count()."""
    # Last, since it starts a process.
    name = _cpuinfo().get("model name") or platform.processor() or platform.machine()
    return f"{name}, {core_count()} cores"


@cache
def processor_model() -> str:
    """'vendor_id AuthenticAMD, cpu family 26, model 2, stepping 1', or what Linux says of a processor by Arm: it tells
    more processors apart than the name, as that is 'AMD EPYC' in many virtual machines. Empty if nothing is said."""
    facts = _cpuinfo()
    of_x86, of_arm = ("vendor_id", "cpu family", "model", "stepping"), ("CPU implementer", "CPU part", "CPU variant")
    return ", ".join(f"{name} {facts[name]}" for name in of_x86 + of_arm if name in facts)


@cache
def _cpuinfo() -> dict[str, str]:
    """What Linux says of the first core."""
    first = text_of(Path("/proc/cpuinfo")).partition("\n\n")[0]
    pairs = (line.partition(":")[::2] for line in first.splitlines())
    return {name.strip(): value.strip() for name, value in pairs}


def installed(module: str) -> bool:
    """Whether a top-level module, or a part of a namespace package, can be imported, without importing it."""
    return module in sys.modules or importlib.util.find_spec(module) is not None  # which raises for __main__


@cache
def versions(packages: tuple[str, ...]) -> str:
    """'Python 3.12.3, cupy-cuda13x 14.2.0, numpy 2.4.6': the versions of Python and of these modules' distributions."""
    return ", ".join(dict.fromkeys(filter(None, [python_version(), *map(distributions, sorted(packages))])))


def python_version() -> str:
    return f"Python {platform.python_version()}"


@cache
def distributions(module: str) -> str:
    """'cupy-cuda13x 14.2.0': the distribution that installed this top-level module; '' if there is none. Of several
    that share it, as cuda-core and cuda-bench share cuda, only those that an extra of gpu-cookbook installs."""
    names = distribution_names(module)
    if len(names) > 1:
        names = [name for name in names if canonicalize_name(name) in _of_extras()] or names
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


@cache
def _of_extras() -> frozenset[str]:
    """The names of what gpu-cookbook with all its extras would install; none if it is not installed itself."""
    if not has_distribution("gpu-cookbook"):
        return frozenset()
    extras = importlib.metadata.metadata("gpu-cookbook").get_all("Provides-Extra", [])
    return closure((f"gpu-cookbook[{','.join(extras)}]",))


def distribution_names(module: str) -> list[str]:
    """The distributions that installed this top-level module."""
    return sorted(set(_packages_distributions().get(module, ())))


_packages_distributions = cache(importlib.metadata.packages_distributions)


def has_distribution(name: str) -> bool:
    """Whether a distribution is installed."""
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


@cache
def closure(requirements: tuple[str, ...]) -> frozenset[str]:
    """The names of the distributions that these requirements install, as far as they are installed here: what is not
    is named, but not what it requires."""
    found: set[tuple[str, frozenset[str]]] = set()
    left = [Requirement(each) for each in requirements]
    while left:
        each = left.pop()
        key = canonicalize_name(each.name), frozenset(each.extras)
        if key not in found:
            found.add(key)
            left += _required(*key)
    return frozenset(name for name, _ in found)


def _required(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    texts = importlib.metadata.requires(name) if has_distribution(name) else []
    for text in texts or []:
        with contextlib.suppress(InvalidRequirement, UndefinedComparison, UndefinedEnvironmentName):
            each = Requirement(text)
            if not each.marker or any(each.marker.evaluate({"extra": extra}) for extra in extras or {""}):
                yield each


@cache
def instance() -> str | None:
    """Twelve hexadecimal digits that tell this machine from others of its kind: of the hash of what its first GPU, or
    else its system, is identified by. None if that is not known."""
    path = Path("/etc/machine-id")
    text = path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""
    if gpus():
        text = _text(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(gpus()[0].index)))
    # With a word of ours in it, as systemd asks for, the hash is no use to anyone who knows the machine's number.
    return hashlib.sha256(f"gpu-cookbook {text}".encode()).hexdigest()[:12] if text else None


@cache
def clock() -> str:
    """'SM up to 1,980 MHz, memory 3,201 MHz': the maximum clocks of the first NVIDIA GPU, which varies its own."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(gpus()[0].index)
    core, memory = (
        pynvml.nvmlDeviceGetMaxClockInfo(handle, kind) for kind in (pynvml.NVML_CLOCK_SM, pynvml.NVML_CLOCK_MEM)
    )
    return f"SM up to {core:,} MHz, memory {memory:,} MHz"


@cache
def program(name: str) -> str | None:
    """The path of a program, or None. nvcc is also searched for where CUDA installs it, because it is often missing
    from PATH, and gpu-cookbook adds its folder to PATH for the recipes that it starts."""
    found = shutil.which(name)
    if not found and name == "nvcc":
        for folder in cuda_folders():
            found = found or shutil.which(name, path=folder / "bin")
    return found


def cuda_folders() -> list[Path]:
    """Folders in which a CUDA toolkit may be, the most explicit first."""
    named = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")]
    return [Path(folder) for folder in [*named, "/usr/local/cuda"] if folder]


@cache
def opencl_drivers() -> tuple[Path, ...]:
    """The paths of the OpenCL drivers (ICD files) that a program on this machine will find."""
    folders = [Path(os.environ.get("OCL_ICD_VENDORS") or "/etc/OpenCL/vendors")]
    spec = importlib.util.find_spec("pyopencl")  # PoCL's wheel puts its ICD file beside PyOpenCL's loader
    if spec and spec.origin:
        folders.append(Path(spec.origin).parent / ".libs")
    return tuple(icd for folder in folders for icd in ([folder] if folder.is_file() else sorted(folder.glob("*.icd"))))


@cache
def lacks_opencl() -> str | None:
    """Why OpenCL recipes cannot run here, or None.

    A process of its own tries it if a driver's library cannot be loaded, and with PoCL, which says only when it
    compiles that it does not know the processor: the newest on PyPI, 3.0 of 2022, takes AMD's Zen 5, for one, for a
    'generic' target, which its Clang refuses."""
    drivers = opencl_drivers()
    if not drivers:
        return 'no OpenCL driver found: pip install "pyopencl[pocl]"'
    libraries = [text_of(icd).strip() for icd in drivers]
    if not any("pocl" in library for library in libraries) and all(map(loads, libraries)):
        return None
    command = [sys.executable, "-P", "-c", OPENCL_BUILD]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None  # the recipe's own process will say what is wrong
    if UNKNOWN_PROCESSOR in done.stderr:
        return POCL_IS_OLDER
    return NO_WORKING_OPENCL if re.search("PLATFORM_NOT_FOUND|^IndexError", done.stderr, re.MULTILINE) else None


def loads(library: str) -> bool:
    """Whether the dynamic linker finds a library, tried in another process, because loading can have side effects."""
    command = [sys.executable, "-I", "-S", "-c", f"import ctypes; ctypes.CDLL({library!r})"]
    try:
        return bool(library) and subprocess.run(command, capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def text_of(path: Path) -> str:
    """What is in a file; empty if it cannot be read, as a link that leads nowhere."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def obstacle(recipe: "Recipe") -> str | None:
    """Why this recipe cannot run here, in one line, or None."""
    if recipe.fault:
        return recipe.fault
    if lacks_gpu(recipe):  # first: no environment helps
        return "needs an NVIDIA GPU, but this machine has none"
    if recipe.environment != environment():
        return f"belongs to the environment {recipe.environment}: make compare ENVIRONMENT={recipe.environment}"
    if missing(recipe):
        return missing(recipe)
    if recipe.needs and not program(recipe.needs):
        return f"needs {recipe.needs} on PATH: gpu-cookbook doctor says how to get it"
    return lacks_opencl() if recipe.runs_on == "OpenCL device" else None


def lacks_gpu(recipe: "Recipe") -> bool:
    """Whether the recipe needs an NVIDIA GPU, which this machine does not have."""
    return recipe.runs_on in ("NVIDIA GPU", "every NVIDIA GPU") and not gpus()


def absent(recipe: "Recipe") -> list[str]:
    """Which of the packages that a recipe imports are not installed. Of a namespace package, which several
    distributions share, that is the part it imports: cuda.tile, where there is a cuda with cuda.core only."""
    names = []
    for name in recipe.imports:
        package, _, rest = name.partition(".")
        if not installed(package):
            names.append(package)
        elif rest and _is_namespace(package) and not installed(part := f"{package}.{rest.partition('.')[0]}"):
            names.append(part)
    return list(dict.fromkeys(names))


def _is_namespace(package: str) -> bool:
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:  # an imported module without one, as __main__ is
        return False
    return spec is not None and spec.origin is None and spec.submodule_search_locations is not None


def missing(recipe: "Recipe") -> str | None:
    """Which of the recipe's packages are not installed, and how to install them; None if all are."""
    from gpu_cookbook.run import rules  # which imports this module

    packages = absent(recipe)
    if packages and (fault := rules.never_installed(recipe)):
        return fault
    install = install_command(recipe)
    reason = f"not installed: {install}" if install else GONE
    return f"{', '.join(packages)} {reason}" if packages else None


def install_command(recipe: "Recipe") -> str:
    """The recipe's Install line, adapted to this machine."""
    return for_driver(recipe.install, nvidia())


def for_driver(install: str, driver: Nvidia | None) -> str:
    """An Install line, adapted to the CUDA version that this driver and its GPUs support. Without a GPU, JAX needs none
    of the gigabytes that it installs for CUDA."""
    if not driver or not driver.gpus:
        return install.replace('"jax[cuda13]"', "jax")
    return for_cuda(install, newest_cuda(driver))


def newest_cuda(driver: Nvidia | None) -> int:
    """The newest CUDA major version, 13 at most, that the driver and each of its GPUs support."""
    if not driver or not driver.gpus:
        return 13
    old = min(gpu.compute_capability for gpu in driver.gpus) < (7, 5)  # CUDA 13 dropped every GPU before Turing
    return min(driver.cuda[0], 12 if old else 13)


def for_cuda(install: str, major: int) -> str:
    """An Install line, written for CUDA 13, with the packages for the CUDA version ``major``; '' if there are none."""
    if major == 13:
        return install
    if major == 11 and any(name in install for name in NOT_FOR_CUDA_11):
        return ""
    install = install.replace("cuda13x", f"cuda{major}x").replace("cu13", f"cu{major}")
    install = install.replace("jax[cuda13]", f"jax[cuda{major}]")
    if major == 12:  # from 1.18 on, PyPI's wheels are for CUDA 13
        install = install.replace("warp-lang", '"warp-lang<1.18"')
    install = install.replace("nvidia-cublas", f"nvidia-cublas-cu{major}")  # since CUDA 13 its name has no suffix
    install = install.replace("cuda-bindings>=13", f"cuda-bindings=={major}.*")
    if major == 11:  # newer versions of cuda-core are not for it, and its CuPy brings no toolkit
        install = install.replace("cuda-core[cu11]", "cuda-core[cu11]==0.3.*").replace("[ctk]", "")
    return install
