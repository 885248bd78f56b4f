"""What does not work on this machine, and the commands that fix it.

`judge` is a pure function of the facts that facts.py collects; `table` shows its findings.
"""

import contextlib
import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gpu_cookbook import catalogue, machine
from gpu_cookbook.doctor.facts import Facts, Framework, Probe, gather
from gpu_cookbook.words import make_plain

# Package manager -> the commands that install a C++ compiler, which brings one for C, nvcc if pip has none, and the
# headers of this Python.
SYSTEM = {
    "apt": ("sudo apt install g++", "sudo apt install nvidia-cuda-toolkit", "sudo apt install python{}.{}-dev"),
    "dnf": ("sudo dnf install gcc-c++", "", "sudo dnf install python{}.{}-devel"),
    "zypper": ("sudo zypper install gcc-c++", "", "sudo zypper install python{}{}-devel"),
    "pacman": ("sudo pacman -S gcc", "sudo pacman -S cuda", "sudo pacman -S python"),
    "apk": ("sudo apk add g++", "", "sudo apk add python3-dev"),
}
# What the driver, or a library that works for it, says of PTX that is newer than it.
UNREADABLE_PTX = re.compile(r"unsupported_?ptx_?version|an unsupported toolchain|unsupported \.version", re.IGNORECASE)
# Distributions that make PTX, with CUDA's version as theirs; up to CUDA 12 their names end in its number.
MAKE_PTX = re.compile(r"cuda-toolkit|nvidia-(cuda-nvrtc|cuda-nvcc|nvvm)(-cu\d+)?")


@dataclass(frozen=True)
class Finding:
    """One thing that was examined."""

    group: str
    name: str
    value: str  # its version, or what was found
    # ok, missing (not installed, which is not an error), broken (installed, but does not work), or elsewhere (belongs
    # to another environment)
    status: str
    explanation: str = ""
    fix: str = ""  # a shell command

    def __post_init__(self) -> None:
        make_plain(self)


def examine() -> list[Finding]:
    """The findings about this machine. It takes seconds; meanwhile a terminal shows a message on standard error."""
    with Console(stderr=True).status("Trying every installed framework …"):
        return judge(gather())


def judge(facts: Facts) -> list[Finding]:
    """Facts -> findings. A pure function, so what it says about one machine can be tested on any other."""
    findings = [
        Finding("Machine", "Python", facts.python, "ok", facts.executable),
        _judge_environment(facts),
        *_judge_gpus(facts),
        _judge_nvcc(facts),
        _judge_compiler(facts),
        *_judge_opencl(facts),
        *(_judge_framework(framework, facts) for framework in facts.frameworks),
    ]
    if facts.root:  # as in a container, which often has no sudo
        findings = [replace(finding, fix=finding.fix.replace("sudo ", "")) for finding in findings]
    return findings


def _judge_environment(facts: Facts) -> Finding:
    here, names = facts.environment, ", ".join(facts.environments)
    if here not in facts.environments:
        why = f"{machine.VARIABLE} names an unknown environment; there are: {names}"
        return Finding("Machine", "Environment", here, "broken", why, f"unset {machine.VARIABLE}")
    others = [name for name in facts.environments if name != here]
    about = f"there is also {', '.join(others)}: make doctor ENVIRONMENT=NAME" if others else ""
    return Finding("Machine", "Environment", here, "ok", about)


def _judge_gpus(facts: Facts) -> Iterator[Finding]:
    nvidia = facts.nvidia
    if nvidia:
        supports = f"supports CUDA up to {nvidia.cuda[0]}.{nvidia.cuda[1]}"
        yield Finding("Machine", "NVIDIA driver", nvidia.driver, "ok", supports)
        for number, gpu in enumerate(nvidia.gpus):
            memory, (major, minor) = gpu.memory_bytes / 2**30, gpu.compute_capability
            about = f"{memory:.0f} GiB, compute capability {major}.{minor}"
            if gpu.instance:
                about += "; a MIG instance: CUDA takes one, and CUDA_VISIBLE_DEVICES=MIG-… chooses another"
            elif gpu.index != number:
                about += f"; CUDA's number {number}"
            yield Finding("Machine", f"GPU {gpu.index}", gpu.name, "ok", about)
        if not nvidia.gpus and facts.visible is not None:
            hidden = f"CUDA_VISIBLE_DEVICES={shlex.quote(facts.visible)} hides every GPU"
            yield Finding("Machine", "NVIDIA GPU", "none", "missing", hidden, "unset CUDA_VISIBLE_DEVICES")
        elif not nvidia.gpus:
            yield Finding(
                "Machine",
                "NVIDIA GPU",
                "none",
                "missing",
                "the driver is installed, but CUDA finds no GPU; one in MIG mode needs an instance: nvidia-smi -L",
            )
    elif facts.nvidia_error and (facts.nvidia_on_bus or "mismatch" in facts.nvidia_error.lower()):
        if "mismatch" in facts.nvidia_error.lower():
            why, fix = "was updated, but the old one is still loaded", "sudo reboot"
        else:
            why, fix = f"does not answer: {facts.nvidia_error}", "sudo modprobe nvidia && nvidia-smi"
        yield Finding("Machine", "NVIDIA driver", "", "broken", why, fix)
    elif facts.nvidia_on_bus and facts.container:
        why = "the machine has an NVIDIA GPU, but this container cannot access it: start the container with --gpus all"
        yield Finding("Machine", "NVIDIA GPU", "none", "missing", why)
    elif facts.nvidia_on_bus:
        why = "the machine has an NVIDIA GPU but no driver for it"
        fix = "sudo ubuntu-drivers install" if facts.system == "apt" else ""
        yield Finding("Machine", "NVIDIA driver", "none", "missing", why, fix)
    else:
        why = "recipes for CPUs and OpenCL run without one; the others are skipped"
        yield Finding("Machine", "NVIDIA GPU", "none", "missing", why)


def _judge_nvcc(facts: Facts) -> Finding:
    fits = [nvcc for nvcc in facts.nvccs if nvcc.version and (not facts.gpus or nvcc.major <= facts.driver_cuda[0])]
    fix = f"export PATH={shlex.quote(str(Path(fits[0].path).parent))}:$PATH" if fits else _install_nvcc(facts)
    first = next((nvcc for nvcc in facts.nvccs if nvcc.on_path), None)
    if first in fits:
        return Finding("Machine", "nvcc", first.version, "ok", first.path)
    if first and not first.version:
        return Finding("Machine", "nvcc", "", "broken", f"{first.path} does not run", fix)
    if first:
        driver = ".".join(map(str, facts.driver_cuda))
        why = f"{first.path} compiles for CUDA {first.major}, but the driver supports CUDA only up to {driver}"
        return Finding("Machine", "nvcc", first.version, "broken", why, fix)
    if not facts.gpus:
        why = "not on PATH; only PyCUDA needs it, and only with an NVIDIA GPU"
        return Finding("Machine", "nvcc", "", "missing", why)
    if fits:
        return Finding("Machine", "nvcc", fits[0].version, "missing", f"{fits[0].path} is not on PATH", fix)
    return Finding("Machine", "nvcc", "", "missing", "PyCUDA needs it to compile kernels", fix)


def _install_nvcc(facts: Facts) -> str:
    """NVIDIA's wheels include nvcc since CUDA 13; before that, use the system's package, which is often older."""
    if facts.gpus and facts.driver_cuda[0] < 13:
        return _system(facts, 1)
    minor = f"{facts.driver_cuda[0]}.{facts.driver_cuda[1]}" if facts.gpus else "13"
    folder = shlex.quote(f"{facts.site_packages}/nvidia/cu{minor.partition('.')[0]}/bin")
    return f'pip install "cuda-toolkit[nvcc]=={minor}.*" && export PATH={folder}:$PATH'


def _system(facts: Facts, which: int) -> str:
    """One of the commands in SYSTEM; '' if the package manager is not known."""
    return SYSTEM[facts.system][which].format(*facts.python.split(".")) if facts.system else ""


def _judge_compiler(facts: Facts) -> Finding:
    if facts.compiler:
        path, version = facts.compiler
        return Finding("Machine", "C++ compiler", version, "ok", path)
    fix = _system(facts, 0)
    why = "nvcc, Triton, torch.compile and building PyCUDA need one"
    return Finding("Machine", "C++ compiler", "", "missing", why, fix)


def _judge_opencl(facts: Facts) -> Iterator[Finding]:
    pyopencl = facts.probes.get("PyOpenCL")
    platforms = pyopencl.seen.get("platforms", []) if pyopencl else []
    too_new = machine.UNKNOWN_PROCESSOR in (pyopencl.error if pyopencl else "")
    for name, version, devices in platforms:
        useless = too_new and name == machine.POCL
        rest = ", which compiles nothing for it" * useless
        for device in devices:
            status = "missing" if useless else "ok"  # broken is what can be mended
            yield Finding("OpenCL", "Device", device, status, f"{name}, {' '.join(version.split()[:2])}{rest}")
    files = [path for path, _ in facts.opencl_drivers]
    if files:
        names = ", ".join(Path(path).name for path in files)
        folders = ", ".join(dict.fromkeys(_short(Path(path).parent, facts) for path in files))
        yield Finding("OpenCL", "Driver files", names, "ok", f"in {folders}")
    else:
        why = "no *.icd file names an OpenCL driver"
        yield Finding("OpenCL", "Driver files", "none", "missing", why, _install_opencl(facts))
    if facts.gpus:
        named = any("nvidia" in content.lower() for _, content in facts.opencl_drivers)
        if named and facts.nvidia_opencl:
            return  # its devices are listed above
        if facts.nvidia_opencl:
            why = "OpenCL does not see the GPU: no file in /etc/OpenCL/vendors names NVIDIA's driver"
            yield Finding("OpenCL", "NVIDIA", "", "missing", why, WRITE_NVIDIA_ICD)
        else:
            container = "in a container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility"
            why = f"libnvidia-opencl.so.1 is not installed ({container})"
            yield Finding("OpenCL", "NVIDIA", "", "broken" if named else "missing", why)


WRITE_NVIDIA_ICD = (
    "sudo mkdir -p /etc/OpenCL/vendors && echo libnvidia-opencl.so.1 | sudo tee /etc/OpenCL/vendors/nvidia.icd"
)


def _install_opencl(facts: Facts) -> str:
    if facts.gpus and facts.nvidia_opencl:
        return WRITE_NVIDIA_ICD
    if facts.architecture != "x86_64":  # PyPI has PoCL only for x86-64
        return "sudo apt install pocl-opencl-icd" if facts.system == "apt" else ""
    return 'pip install "pyopencl[pocl]"'


def _short(path: Path, facts: Facts) -> str:
    """A path, without the folder of this Python's packages."""
    return str(path.relative_to(facts.site_packages) if path.is_relative_to(facts.site_packages) else path)


def _judge_framework(framework: Framework, facts: Facts) -> Finding:
    def found(status: str, explanation: str = "", fix: str = "") -> Finding:
        return Finding("Frameworks", framework.name, version, status, explanation, fix)

    installed = [name for name in framework.distributions if name in facts.packages]
    version = facts.packages[installed[0]] if installed else ""
    if framework.environments and facts.environment not in framework.environments:
        home = framework.environments[0]
        return found("elsewhere", f"belongs to the environment {home}: make doctor ENVIRONMENT={home}")
    install = _install(framework, facts)
    tried = facts.probes.get(framework.name)
    if tried is None:
        if framework.needs_gpu and not facts.gpus:
            return found("missing", "not installed; needs an NVIDIA GPU")
        return found("missing", "not installed" if install else machine.GONE, install)

    if framework.name == "CuPy" and len(installed) > 1:
        return found(
            "broken",
            f"{' and '.join(installed)} overwrite each other's files",
            f"pip uninstall -y {' '.join(installed)} && {install}",
        )
    others = {name for other in facts.frameworks for name in other.distributions}
    misfit = _explain_misfits(framework, facts, others)
    if misfit:
        return found(*misfit)
    if tried.error:
        return found(*_explain(framework, installed, tried, install, facts))

    built_for = tried.seen.get("cuda")
    if framework.name == "PyTorch":
        return found("ok", f"built for CUDA {built_for}" if built_for else "built for the CPU")
    if framework.name == "JAX":
        return found(*_explain_jax(framework, tried, install, facts))
    if framework.name == "Warp":
        return found(*_explain_warp(tried, install, facts))
    if framework.name == "CuPy" and facts.gpus:
        return found("ok", installed[0] if installed else "")
    if framework.needs_gpu and not facts.gpus:
        return found("ok", "computes only on an NVIDIA GPU")
    return found("ok")


def _explain_misfits(
    framework: Framework, facts: Facts, names: Collection[str], extras: Collection[str] = ()
) -> tuple[str, str, str] | None:
    """(status, explanation, fix) of a framework that does not accept the installed versions of some of the
    distributions with these names; None if it accepts them all. ``extras``: those with which it was installed."""
    misfits = {}
    for own in (*framework.distributions, *framework.pins):
        for text in facts.requirements.get(own, ()):
            with contextlib.suppress(InvalidRequirement, InvalidVersion):
                asked = Requirement(text)
                name = canonicalize_name(asked.name)
                applies = asked.marker is None or any(asked.marker.evaluate({"extra": each}) for each in ("", *extras))
                there = facts.packages.get(name, "") if applies and name in names else ""
                if there and not asked.specifier.contains(Version(there), prereleases=True):
                    misfits[f"{asked.name}{asked.specifier}"] = f"{asked.name} {there}"
    if not misfits:
        return None
    first, there = next(iter(misfits.items()))
    wanted = " ".join(f'"{requirement}"' for requirement in misfits)
    return "broken", f"requires {first}, but {there} is installed", f"pip install {wanted}"


def _explain(
    framework: Framework, installed: Sequence[str], tried: Probe, install: str, facts: Facts
) -> tuple[str, str, str]:
    """(status, explanation, fix) of a framework that did not work when tried."""
    name, error = framework.name, tried.error
    # Uninstalling first leaves the other packages alone; --force-reinstall would also upgrade them.
    uninstall = f"pip uninstall -y {' '.join(installed)}" if installed else ""
    reinstall = " && ".join(filter(None, (uninstall, install)))
    if name == "numba-cuda" and "row_stack" in error:
        numpy = facts.packages.get("numpy", "")
        return "broken", f"calls numpy.row_stack, which NumPy {numpy} no longer has", install
    if name == "PyOpenCL" and not tried.seen.get("platforms") and re.search("platform", error, re.IGNORECASE):
        return "broken", "finds no OpenCL device", _install_opencl(facts)
    if name == "PyOpenCL" and machine.UNKNOWN_PROCESSOR in error:
        return "missing", machine.POCL_IS_OLDER, ""
    if framework.needs_gpu and not facts.gpus and re.search(r"libcuda\b|CUDA driver|nvml", error, re.IGNORECASE):
        return "missing", "installed, but does not start without an NVIDIA GPU", ""
    if facts.gpus:
        built_for = _built_for(framework, installed, tried, facts)
        if built_for > facts.cuda:
            return "broken", _too_new(built_for, facts), reinstall
        if name == "PyTorch" and not tried.seen.get("cuda", True):
            return "broken", "is built for the CPU, but there is a GPU", reinstall
        if name == "Triton":
            explained = _explain_triton(error, facts)
            if explained:
                return explained
        nvcc = _judge_nvcc(facts)
        if name == "PyCUDA" and nvcc.status != "ok":
            return "broken", "cannot compile a kernel: no suitable nvcc on PATH", nvcc.fix
        if name == "PyCUDA" and not facts.compiler:
            return "broken", "cannot compile a kernel: nvcc needs a C++ compiler", _judge_compiler(facts).fix
        if UNREADABLE_PTX.search(error):
            return _explain_ptx(framework, facts)
    short = error if len(error) <= 200 else f"{error[:197]}..."
    if error.startswith("ModuleNotFoundError"):  # pip installs what is missing
        return "broken", short, install
    return _explain_misfits(framework, facts, facts.packages, _extras(framework, facts)) or ("broken", short, reinstall)


def _extras(framework: Framework, facts: Facts) -> set[str]:
    """Those with which a framework is installed for the CUDA version that this machine supports."""
    install = machine.for_driver(framework.install, facts.nvidia)
    return catalogue.requirements(install)[0].extras if install else set()


def _explain_triton(error: str, facts: Facts) -> tuple[str, str, str] | None:
    """(status, explanation, fix) of Triton, if it is what it works with that fails: a C compiler, which makes what
    launches its kernels, ptxas, or PyTorch."""
    if "Failed to find C compiler" in error:
        return "broken", "cannot compile what launches its kernels: there is no C compiler", _system(facts, 0)
    if "CalledProcessError" in error and not facts.headers:
        return "broken", "cannot compile what launches its kernels: Python.h is missing", _system(facts, 2)
    if facts.ptxas and "ptxas" in error and UNREADABLE_PTX.search(error):  # its own ptxas can read it
        return "broken", "makes PTX that the ptxas which TRITON_PTXAS_PATH names cannot read", "unset TRITON_PTXAS_PATH"
    pytorch = next((_judge_framework(each, facts) for each in facts.frameworks if each.name == "PyTorch"), None)
    if pytorch and pytorch.status != "ok":
        return "broken", "works on PyTorch's tensors, but PyTorch does not work on the GPU", pytorch.fix
    return None


def _explain_ptx(framework: Framework, facts: Facts) -> tuple[str, str, str]:
    """(status, explanation, fix) of a framework whose PTX is too new for the driver."""
    cuda = ".".join(map(str, facts.driver_cuda))
    newer = []
    for name, there in facts.packages.items():
        with contextlib.suppress(InvalidVersion):
            release = Version(there).release
            if MAKE_PTX.fullmatch(name) and release[:1] == facts.driver_cuda[:1] and release[:2] > facts.driver_cuda:
                newer.append(name)
    driver = f"the driver, {facts.nvidia.driver}," if facts.nvidia else "the driver"
    why = f"makes PTX that is too new for {driver} which supports CUDA only up to {cuda}"
    if not newer or framework.name in ("PyTorch", "Triton", "JAX"):  # their wheels bring or require what makes it
        return "broken", f"{why}: install a version that was built for that CUDA, or a newer driver", ""
    wanted = " ".join(f'"{name}=={cuda}.*"' for name in sorted(newer))
    return "broken", f"{why}: install that CUDA's compilers, or a newer driver", f"pip install {wanted}"


def _explain_jax(framework: Framework, tried: Probe, install: str, facts: Facts) -> tuple[str, str, str]:
    """(status, explanation, fix) of JAX, which computes on the CPU where its plugin for CUDA is missing or fails."""
    if not facts.gpus:
        return "ok", "computes on the CPU", ""
    plugins = [name for name in facts.packages if re.fullmatch(r"jax-cuda\d+-(plugin|pjrt)", name)]
    built_for = max((_major(name.removeprefix("jax-cuda")) for name in plugins), default=0)
    if tried.seen.get("platform") != "cpu":
        about = [f"built for CUDA {built_for}"] if built_for else []
        if facts.preallocated:
            share = f"takes {facts.preallocated} of a GPU's memory when it starts"
            about.append(f"{share}, except with XLA_PYTHON_CLIENT_PREALLOCATE=false")
        return "ok", "; ".join(about), ""
    if not install:
        return "ok", f"computes on the CPU: its plugin for CUDA is {machine.GONE}", ""
    if built_for > facts.cuda:
        return "broken", _too_new(built_for, facts), f"pip uninstall -y {' '.join(sorted(plugins))} && {install}"
    if not built_for:
        return "broken", "is built for the CPU, but there is a GPU", install
    # It leaves a plugin unused that is not of its own version.
    misfit = _explain_misfits(framework, facts, facts.packages, _extras(framework, facts))
    return misfit or ("broken", "does not find the GPU", install)


def _explain_warp(tried: Probe, install: str, facts: Facts) -> tuple[str, str, str]:
    """(status, explanation, fix) of Warp, which computes on the CPU where the driver is older than its CUDA."""
    if not facts.gpus:
        return "ok", "computes on the CPU", ""
    built_for = _major(tried.seen.get("cuda") or "")
    if tried.seen.get("platform") != "cpu":
        return "ok", f"built for CUDA {built_for}", ""
    if not install:
        return "ok", f"computes on the CPU: for this GPU it is {machine.GONE}", ""
    return "broken", _too_new(built_for, facts) if built_for > facts.cuda else "does not find the GPU", install


def _built_for(framework: Framework, installed: Sequence[str], tried: Probe, facts: Facts) -> int:
    """The CUDA major version that a framework was built for; 0 if that is unknown."""
    if framework.name == "CuPy":
        version = re.fullmatch(r"cupy-cuda(\d+)x", installed[0] if installed else "")
        return int(version[1]) if version else 0
    if framework.name == "PyTorch":
        return _major(tried.seen.get("cuda") or "")
    if framework.name in ("numba-cuda", "cuda-core"):
        return _major(facts.packages.get("cuda-bindings", ""))
    return 0


def _major(version: str) -> int:
    found = re.match(r"\d{1,4}\b", version, re.ASCII)
    return int(found[0]) if found else 0


def _too_new(built_for: int, facts: Facts) -> str:
    if facts.nvidia and facts.nvidia.cuda[0] < built_for:
        supported = ".".join(map(str, facts.nvidia.cuda))
        driver = f"the driver, {facts.nvidia.driver}, supports CUDA only up to {supported}"
        return f"built for CUDA {built_for}, but {driver}"
    oldest = min(facts.gpus, key=lambda gpu: gpu.compute_capability)
    return f"built for CUDA {built_for}, which no longer runs on {oldest.name}"


def _install(framework: Framework, facts: Facts) -> str:
    """The command that installs a framework for the CUDA version that this machine supports."""
    if framework.name == "PyTorch" and facts.cuda < 13:
        if facts.cuda == 11:
            return 'pip install "torch<2.8" --index-url https://download.pytorch.org/whl/cu118'
        # PyPI's wheels dropped GPUs before Turing earlier than they moved to CUDA 13.
        if min(gpu.compute_capability for gpu in facts.gpus) < (7, 5):
            return 'pip install "torch<2.11" --index-url https://download.pytorch.org/whl/cu126'
        return 'pip install "torch<2.11"'  # from 2.11 on, PyPI's wheels are for CUDA 13
    return machine.for_driver(framework.install, facts.nvidia)


def as_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The findings as plain data."""
    return [asdict(finding) for finding in findings]


def table(findings: Sequence[Finding]) -> RenderableType:
    """The findings for rich: one line each, and below it the command that fixes it."""
    return _Report(tuple(findings))


@dataclass(frozen=True)
class _Report:
    findings: tuple[Finding, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        colours = {"ok": "green", "missing": "yellow", "broken": "bold red", "elsewhere": "dim"}
        marks = dict(zip(colours, "+-X." if options.ascii_only else "\u2713\u2013\u2717\u00b7", strict=True))
        names = max(len(finding.name) for finding in self.findings)
        short = [len(f.value) for f in self.findings if len(f.value) <= 16]
        commands: set[str] = set()
        for group in dict.fromkeys(finding.group for finding in self.findings):
            yield Text(group, style="bold")
            for finding in (f for f in self.findings if f.group == group):
                mark, colour = marks[finding.status], colours[finding.status]
                if finding.status == "missing" and not finding.fix:
                    colour = "dim"
                row = Table.grid(padding=(0, 2, 0, 0))
                row.add_column(width=1)
                row.add_column(width=names, no_wrap=True)
                row.add_column(min_width=max(short), overflow="fold")
                row.add_column(overflow="fold")
                words, command = finding.explanation, finding.fix
                room = options.max_width - 9 - names - max(*short, len(finding.value))  # what the other columns leave
                if len(words) > room and ": make " in words:  # where it would be broken, it stands below, whole
                    words, _, rest = words.partition(": make ")
                    command = f"make {rest}"
                quiet = "dim" if finding.status == "ok" or colour == "dim" else ""
                row.add_row(
                    Text(mark, colour),
                    Text(finding.name, "dim" if colour == "dim" else ""),
                    Text(finding.value, quiet and colour if colour == "dim" else ""),
                    Text(words, quiet),
                )
                yield Padding(row, (0, 0, 0, 2))
                if command in commands:
                    yield Text(" " * 7 + "the same command as above", style="dim")
                    continue
                commands |= {command} - {""}
                for indent, line in _continued(command, 7, options.max_width - 1):
                    # Not Padding: it fills the line with spaces, and a backslash before a space does not continue
                    # the line.
                    yield Text.assemble(" " * indent, (line, "cyan"), no_wrap=True)
            yield Text("")
        yield self._summary()

    def _summary(self) -> Text:
        count = Counter(finding.status for finding in self.findings)
        words = Text(f"{count['ok']} ok, {count['missing']} missing, ")
        words.append(f"{count['broken']} broken", "bold red" if count["broken"] else "")
        if count["elsewhere"]:
            words.append(f"; {count['elsewhere']} belong to other environments")
        return words.append(". The command below a line fixes it." if any(f.fix for f in self.findings) else ".")


def _continued(command: str, indent: int, width: int) -> Iterator[tuple[int, str]]:
    """(indent, line) of a command that is split into lines which a shell reads as one when they are copied."""
    width = max(width, 3)  # a sign and the backslash; a terminal that is even narrower shows nothing whole
    indent = min(indent, width - 3)
    lines = textwrap.wrap(command, width - indent - 2, break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines):
        line += " \\" if number + 1 < len(lines) else ""
        start = indent
        while len(line) > width - start:  # a long path: if its rest were indented, the shell would read two words
            yield start, line[: width - start - 1] + "\\"
            line, start = line[width - start - 1 :], 0
        yield start, line
