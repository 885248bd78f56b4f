"""What does not fit on this machine, and the command that mends it.

`judge` is a pure function of the facts that facts.py collects; `table` shows what it found.
"""

import contextlib
import re
import shlex
import textwrap
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gpu_cookbook.doctor.facts import FRAMEWORKS, gather

# Package manager -> the command for a C++ compiler, and for nvcc where pip has none.
SYSTEM = {
    "apt": ("sudo apt install g++", "sudo apt install nvidia-cuda-toolkit"),
    "dnf": ("sudo dnf install gcc-c++", ""),
    "zypper": ("sudo zypper install gcc-c++", ""),
    "pacman": ("sudo pacman -S gcc", "sudo pacman -S cuda"),
    "apk": ("sudo apk add g++", ""),
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    group: str
    name: str
    value: str  # its version, or what was found
    status: str  # ok, missing (not there; nothing is at fault), broken (there, and does not work)
    explanation: str = ""
    mend: str = ""  # a shell command


def examine():
    """The findings about this machine."""
    return judge(gather())


def judge(facts):
    """Facts -> findings. A pure function: what it says of a machine can be tested on any other."""
    findings = [
        Finding("Machine", "Python", facts.python, "ok", facts.executable),
        *_judge_gpus(facts),
        _judge_nvcc(facts),
        _judge_compiler(facts),
        *_judge_opencl(facts),
        *(_judge_framework(framework, facts) for framework in FRAMEWORKS),
    ]
    if facts.root:  # containers have no sudo
        findings = [replace(finding, mend=finding.mend.replace("sudo ", "")) for finding in findings]
    return findings


def _judge_gpus(facts):
    nvidia = facts.nvidia
    if nvidia:
        runs = f"runs CUDA up to {nvidia.cuda[0]}.{nvidia.cuda[1]}"
        yield Finding("Machine", "NVIDIA driver", nvidia.driver, "ok", runs)
        for gpu in nvidia.gpus:
            memory, (major, minor) = gpu.memory_bytes / 2**30, gpu.compute_capability
            about = f"{memory:.0f} GiB, compute capability {major}.{minor}"
            yield Finding("Machine", f"GPU {gpu.index}", gpu.name, "ok", about)
        if not nvidia.gpus and facts.visible is not None:
            hidden = f"CUDA_VISIBLE_DEVICES={shlex.quote(facts.visible)} hides every GPU"
            yield Finding("Machine", "NVIDIA GPU", "none", "missing", hidden, "unset CUDA_VISIBLE_DEVICES")
        elif not nvidia.gpus:
            yield Finding("Machine", "NVIDIA GPU", "none", "missing", "the driver is there and finds no GPU")
    elif facts.nvidia_error and (facts.nvidia_on_bus or "mismatch" in facts.nvidia_error.lower()):
        if "mismatch" in facts.nvidia_error.lower():
            why, mend = "was updated, and the old one is still loaded", "sudo reboot"
        else:
            why, mend = f"does not answer: {facts.nvidia_error}", "sudo modprobe nvidia && nvidia-smi"
        yield Finding("Machine", "NVIDIA driver", "", "broken", why, mend)
    elif facts.nvidia_on_bus and facts.container:
        why = "the machine has an NVIDIA GPU, which this container was not given: start it with --gpus all"
        yield Finding("Machine", "NVIDIA GPU", "none", "missing", why)
    elif facts.nvidia_on_bus:
        why = "the machine has an NVIDIA GPU and no driver for it"
        mend = "sudo ubuntu-drivers install" if facts.system == "apt" else ""
        yield Finding("Machine", "NVIDIA driver", "none", "missing", why, mend)
    else:
        why = "the recipes for CPUs and OpenCL run without one; the others are skipped"
        yield Finding("Machine", "NVIDIA GPU", "none", "missing", why)


def _judge_nvcc(facts):
    fits = [nvcc for nvcc in facts.nvccs if nvcc.version and (not facts.gpus or nvcc.major <= facts.nvidia.cuda[0])]
    mend = f"export PATH={shlex.quote(str(Path(fits[0].path).parent))}:$PATH" if fits else _install_nvcc(facts)
    first = next((nvcc for nvcc in facts.nvccs if nvcc.on_path), None)
    if first in fits:
        return Finding("Machine", "nvcc", first.version, "ok", first.path)
    if first and not first.version:
        return Finding("Machine", "nvcc", "", "broken", f"{first.path} does not run", mend)
    if first:
        driver = ".".join(map(str, facts.nvidia.cuda))
        why = f"{first.path} compiles for CUDA {first.major}; the driver runs CUDA up to {driver}"
        return Finding("Machine", "nvcc", first.version, "broken", why, mend)
    if not facts.gpus:
        return Finding("Machine", "nvcc", "", "missing", "not on PATH; only PyCUDA needs it, and an NVIDIA GPU")
    if fits:
        return Finding("Machine", "nvcc", fits[0].version, "missing", f"{fits[0].path} is not on PATH", mend)
    return Finding("Machine", "nvcc", "", "missing", "PyCUDA compiles its kernels with it", mend)


def _install_nvcc(facts):
    """NVIDIA's wheels have had nvcc since CUDA 13; the system's packages, often an older one, before."""
    if facts.gpus and facts.nvidia.cuda[0] < 13:
        return SYSTEM[facts.system][1] if facts.system else ""
    minor = f"{facts.nvidia.cuda[0]}.{facts.nvidia.cuda[1]}" if facts.gpus else "13"
    folder = shlex.quote(f"{facts.site_packages}/nvidia/cu{minor.partition('.')[0]}/bin")
    return f'pip install "cuda-toolkit[nvcc]=={minor}.*" && export PATH={folder}:$PATH'


def _judge_compiler(facts):
    if facts.compiler:
        path, version = facts.compiler
        return Finding("Machine", "C++ compiler", version, "ok", path)
    mend = SYSTEM[facts.system][0] if facts.system else ""
    why = "nvcc, torch.compile and the building of PyCUDA need one"
    return Finding("Machine", "C++ compiler", "", "missing", why, mend)


def _judge_opencl(facts):
    pyopencl = facts.probes.get("PyOpenCL")
    platforms = pyopencl.seen.get("platforms", []) if pyopencl else []
    for name, version, devices in platforms:
        for device in devices:
            yield Finding("OpenCL", "Device", device, "ok", f"{name}, {' '.join(version.split()[:2])}")
    files = [path for path, _ in facts.opencl_drivers]
    if files:
        names = ", ".join(Path(path).name for path in files)
        folders = ", ".join(dict.fromkeys(_short(Path(path).parent, facts) for path in files))
        yield Finding("OpenCL", "Driver files", names, "ok", f"in {folders}")
    else:
        why = "no file *.icd names an OpenCL driver"
        yield Finding("OpenCL", "Driver files", "none", "missing", why, _install_opencl(facts))
    if facts.gpus:
        named = any("nvidia" in content.lower() for _, content in facts.opencl_drivers)
        if named and facts.nvidia_opencl:
            return  # its devices are listed above
        if facts.nvidia_opencl:
            why = "OpenCL does not see the GPU: no file in /etc/OpenCL/vendors names NVIDIA's driver"
            yield Finding("OpenCL", "NVIDIA", "", "missing", why, WRITE_NVIDIA_ICD)
        else:
            why = "libnvidia-opencl.so.1 is not installed (in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility)"
            yield Finding("OpenCL", "NVIDIA", "", "broken" if named else "missing", why)


WRITE_NVIDIA_ICD = (
    "sudo mkdir -p /etc/OpenCL/vendors && echo libnvidia-opencl.so.1 | sudo tee /etc/OpenCL/vendors/nvidia.icd"
)


def _install_opencl(facts):
    if facts.gpus and facts.nvidia_opencl:
        return WRITE_NVIDIA_ICD
    if facts.architecture != "x86_64":  # PyPI's PoCL is for that one alone
        return "sudo apt install pocl-opencl-icd" if facts.system == "apt" else ""
    return 'pip install "pyopencl[pocl]"'


def _short(path, facts):
    """A path, with the folder of this Python's packages left out."""
    path = Path(path)
    return str(path.relative_to(facts.site_packages) if path.is_relative_to(facts.site_packages) else path)


def _judge_framework(framework, facts):
    def found(status, explanation="", mend=""):
        return Finding("Frameworks", framework.name, version, status, explanation, mend)

    installed = [name for name in framework.distributions if name in facts.packages]
    version = facts.packages[installed[0]] if installed else ""
    install = _install(framework, facts)
    tried = facts.probes.get(framework.name)
    if tried is None:
        if framework.needs_gpu and not facts.gpus:
            return found("missing", "not installed; needs an NVIDIA GPU")
        return found("missing", "not installed", install)

    if framework.name == "CuPy" and len(installed) > 1:
        return found(
            "broken",
            f"{' and '.join(installed)} overwrite each other's files",
            f"pip uninstall -y {' '.join(installed)} && {install}",
        )
    misfits = list(_misfits(framework, facts))
    if misfits:
        asked, there = misfits[0]
        wanted = " ".join(f'"{requirement}"' for requirement, _ in misfits)
        return found("broken", f"asks for {asked}, and {there} is installed", f"pip install {wanted}")
    if tried.error:
        return found(*_explain(framework, installed, tried, install, facts))

    built_for = tried.seen.get("cuda")
    if framework.name == "PyTorch":
        return found("ok", f"built for CUDA {built_for}" if built_for else "built for the CPU")
    if framework.name == "CuPy" and facts.gpus:
        return found("ok", installed[0] if installed else "")
    if framework.needs_gpu and not facts.gpus:
        return found("ok", "computes only on an NVIDIA GPU")
    return found("ok")


def _misfits(framework, facts):
    """(requirement, what is installed) for each framework in a version that this one does not take."""
    others = {name for other in FRAMEWORKS for name in other.distributions}
    for name in (*framework.distributions, *framework.pins):
        for text in facts.requirements.get(name, ()):
            with contextlib.suppress(InvalidRequirement, InvalidVersion):
                asked = Requirement(text)
                there = facts.packages.get(canonicalize_name(asked.name))
                applies = asked.marker is None or asked.marker.evaluate({"extra": ""})
                known = there and applies and canonicalize_name(asked.name) in others
                if known and not asked.specifier.contains(Version(there), prereleases=True):
                    yield f"{asked.name}{asked.specifier}", f"{asked.name} {there}"


def _explain(framework, installed, tried, install, facts):
    """(status, explanation, mend) of a framework that did not work when tried."""
    name, error = framework.name, tried.error
    # Uninstalling first leaves the other packages as they are; --force-reinstall would bring the newest of each.
    reinstall = f"pip uninstall -y {' '.join(installed)} && {install}" if installed else install
    if name == "numba-cuda" and "row_stack" in error:
        numpy = facts.packages.get("numpy", "")
        return "broken", f"calls numpy.row_stack, which NumPy {numpy} no longer has", 'pip install "numpy<2.5"'
    if name == "PyOpenCL" and not tried.seen.get("platforms") and re.search("platform", error, re.IGNORECASE):
        return "broken", "finds no OpenCL device", _install_opencl(facts)
    if framework.needs_gpu and not facts.gpus and re.search(r"libcuda\b|CUDA driver|nvml", error, re.IGNORECASE):
        return "missing", "installed, but does not start without an NVIDIA GPU", ""
    if facts.gpus:
        built_for = _built_for(framework, installed, tried, facts)
        if built_for > facts.cuda:
            return "broken", _too_new(built_for, facts), reinstall
        if name == "PyTorch" and not tried.seen.get("cuda", True):
            return "broken", "is built for the CPU, and there is a GPU", reinstall
        nvcc = _judge_nvcc(facts)
        if name == "PyCUDA" and nvcc.status != "ok":
            return "broken", "cannot compile a kernel: no nvcc on PATH that fits", nvcc.mend
        if name == "PyCUDA" and not facts.compiler:
            return "broken", "cannot compile a kernel: nvcc needs a C++ compiler", _judge_compiler(facts).mend
    if error.startswith("ModuleNotFoundError"):  # pip brings what is missing
        return "broken", error, install
    return "broken", error, reinstall


def _built_for(framework, installed, tried, facts):
    """The CUDA major version that a framework was built for; 0 where it cannot be told."""
    if framework.name == "CuPy":
        version = re.fullmatch(r"cupy-cuda(\d+)x", installed[0] if installed else "")
        return int(version[1]) if version else 0
    if framework.name == "PyTorch":
        return int((tried.seen.get("cuda") or "0").partition(".")[0])
    if framework.name in ("numba-cuda", "cuda-core"):
        return int(facts.packages.get("cuda-bindings", "0").partition(".")[0])
    return 0


def _too_new(built_for, facts):
    if facts.nvidia.cuda[0] < built_for:
        driver = ".".join(map(str, facts.nvidia.cuda))
        return f"built for CUDA {built_for}; the driver, {facts.nvidia.driver}, runs CUDA up to {driver}"
    oldest = min(facts.gpus, key=lambda gpu: gpu.compute_capability)
    return f"built for CUDA {built_for}, which no longer runs on {oldest.name}"


def _install(framework, facts):
    """The command that installs a framework for the CUDA that this machine takes."""
    if framework.name == "PyTorch" and facts.cuda < 13:
        if min(gpu.compute_capability for gpu in facts.gpus) < (7, 5):  # left out of PyPI's wheels before CUDA 13 was
            return 'pip install "torch<2.11" --index-url https://download.pytorch.org/whl/cu126'
        return 'pip install "torch<2.11"'  # since then PyPI's wheels are for CUDA 13
    return framework.install.format(cuda=facts.cuda)


def as_json(findings):
    """The findings as plain data."""
    return [asdict(finding) for finding in findings]


def table(findings):
    """The findings for rich: a line each, and the command under what can be mended."""
    return _Report(tuple(findings))


@dataclass(frozen=True)
class _Report:
    findings: tuple[Finding, ...]

    def __rich_console__(self, console, options):
        marks = {"ok": ("\u2713", "green"), "missing": ("\u2013", "yellow"), "broken": ("\u2717", "bold red")}
        if options.ascii_only:
            marks = {"ok": ("+", "green"), "missing": ("-", "yellow"), "broken": ("X", "bold red")}
        names = max(len(finding.name) for finding in self.findings)
        short = [len(f.value) for f in self.findings if len(f.value) <= 16]
        commands = set()
        for group in dict.fromkeys(finding.group for finding in self.findings):
            yield Text(group, style="bold")
            for finding in (f for f in self.findings if f.group == group):
                mark, colour = marks[finding.status]
                if finding.status == "missing" and not finding.mend:
                    colour = "dim"
                row = Table.grid(padding=(0, 2, 0, 0))
                row.add_column(width=1)
                row.add_column(width=names, no_wrap=True)
                row.add_column(min_width=max(short), overflow="fold")
                row.add_column(overflow="fold")
                quiet = "dim" if finding.status == "ok" or colour == "dim" else ""
                row.add_row(
                    Text(mark, colour),
                    Text(finding.name, "dim" if colour == "dim" else ""),
                    Text(finding.value, quiet and colour if colour == "dim" else ""),
                    Text(finding.explanation, quiet),
                )
                yield Padding(row, (0, 0, 0, 2))
                if finding.mend in commands:
                    yield Text(" " * 7 + "the command that stands above", style="dim")
                    continue
                commands |= {finding.mend} - {""}
                for indent, line in _continued(finding.mend, 7, options.max_width - 1):
                    # No Padding: it fills the line with spaces, and a backslash before one joins nothing.
                    yield Text.assemble(" " * indent, (line, "cyan"), no_wrap=True)
            yield Text("")
        yield self._summary()

    def _summary(self):
        count = {s: sum(f.status == s for f in self.findings) for s in ("ok", "missing", "broken")}
        words = Text(f"{count['ok']} ok, {count['missing']} missing, ")
        words.append(f"{count['broken']} broken", "bold red" if count["broken"] else "")
        return words.append(". The command under a line mends it." if any(f.mend for f in self.findings) else ".")


def _continued(command, indent, width):
    """(indent, line) of a command in lines that a shell, when they are copied, reads as one."""
    lines = textwrap.wrap(command, width - indent - 2, break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines):
        line += " \\" if number + 1 < len(lines) else ""
        start = indent
        while len(line) > width - start:  # a path: its rest must not be indented, or it would be two words
            yield start, line[: width - start - 1] + "\\"
            line, start = line[width - start - 1 :], 0
        yield start, line
