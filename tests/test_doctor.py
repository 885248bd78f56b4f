"""`gpu-cookbook doctor`: what it says about machines that are described here, and about this one."""

import ctypes
import dataclasses
import io
import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path
from types import SimpleNamespace

import pynvml
import pytest
from conftest import HANG, ROOT, in_opencl
from rich.console import Console

from gpu_cookbook import catalogue, doctor, machine
from gpu_cookbook.doctor import facts
from gpu_cookbook.doctor.facts import Facts, Nvcc, Probe
from gpu_cookbook.run import device, runner

GIB = 2**30
H200 = machine.Gpu(0, "NVIDIA H200", 140 * GIB, (9, 0))
EVERY = facts.frameworks(catalogue.recipes())
FRAMEWORKS = tuple(each for each in EVERY if not each.environments or machine.MAIN in each.environments)
V100 = machine.Gpu(0, "Tesla V100-SXM2-16GB", 16 * GIB, (7, 0))
NVCC = Nvcc("/usr/local/cuda/bin/nvcc", "13.0.88", on_path=True)
DRIVER_12 = machine.Nvidia("550.54.15", (12, 4), (H200,))

# A GPU machine on which everything fits.
GPU = Facts(
    frameworks=FRAMEWORKS,
    nvidia=machine.Nvidia("580.95.05", (13, 0), (H200,)),
    nvidia_on_bus=True,
    nvccs=(NVCC,),
    compiler=("/usr/bin/g++", "13.3.0"),
    opencl_drivers=(("/etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1\n"),),
    nvidia_opencl=True,
    system="apt",
    packages={
        "numpy": "2.4.6",
        "pycuda": "2026.1",
        "pyopencl": "2026.1.4",
        "numba": "0.68.1",
        "numba-cuda": "0.30.4",
        "cupy-cuda13x": "14.2.0",
        "torch": "2.13.0",
        "jax": "0.11.2",
        "jax-cuda13-plugin": "0.11.2",
        "triton": "3.6.0",
        "warp-lang": "1.19.0",
        "dask": "2026.7.1",
        "distributed": "2026.7.1",
        "dask-cuda": "26.10.0",
        "rapids-dask-dependency": "26.10.0",
        "joblib": "1.6.0",
        "ray": "2.60.0",
        "cuda-core": "1.2.2",
        "cuda-bindings": "13.5.0",
    },
    requirements={
        "cupy-cuda13x": ["numpy<2.6,>=2.0", 'scipy<1.18,>=1.14; extra == "all"'],
        "dask-cuda": ["click>=8.1", "numpy<3.0,>=2.0", "rapids-dask-dependency==26.10.*"],
        "rapids-dask-dependency": ["dask<2026.7.2,>=2026.7.1", "distributed<2026.7.2,>=2026.7.1"],
        "distributed": ["dask==2026.7.1"],
    },
    probes={
        **{framework.name: Probe() for framework in FRAMEWORKS},
        "PyOpenCL": Probe(seen={"platforms": [["NVIDIA CUDA", "OpenCL 3.0 CUDA 13.0.94", ["NVIDIA H200"]]]}),
        "PyTorch": Probe(seen={"cuda": "13.0"}),
        "JAX": Probe(seen={"platform": "gpu"}),
        "Warp": Probe(seen={"cuda": "13.4", "platform": "gpu"}),
    },
)

# A machine without a GPU, and with nothing that needs one.
CPU = dataclasses.replace(
    GPU,
    nvidia=None,
    nvidia_on_bus=False,
    nvccs=(),
    nvidia_opencl=False,
    opencl_drivers=(("/site-packages/pyopencl/.libs/pocl.icd", "libpocl-21062cec.so"),),
    packages={
        name: GPU.packages[name]
        for name in ("numpy", "pyopencl", "numba", "torch", "jax", "warp-lang", "dask", "joblib", "ray")
    },
    probes={
        **{name: Probe() for name in ("NumPy", "Numba", "Dask", "joblib", "Ray")},
        "PyOpenCL": Probe(seen={"platforms": [["Portable Computing Language", "OpenCL 3.0 PoCL 3.0", ["EPYC"]]]}),
        "PyTorch": Probe(seen={"cuda": None}),
        "JAX": Probe(seen={"platform": "cpu"}),
        "Warp": Probe(seen={"cuda": "13.4", "platform": "cpu"}),
    },
)


def but(machine_facts, **changes):
    """The facts with some of them changed; of packages and probes only those that are named. None takes one away."""
    for key in ("packages", "probes", "requirements"):
        if key in changes:
            merged = {**getattr(machine_facts, key), **changes[key]}
            changes[key] = {name: value for name, value in merged.items() if value is not None}
    return dataclasses.replace(machine_facts, **changes)


def of(name, machine_facts):
    """The one finding of this name."""
    (found,) = [finding for finding in doctor.judge(machine_facts) if finding.name == name]
    return found


def says(machine_facts, name, status, explanation, fix=""):
    found = of(name, machine_facts)
    assert (found.status, found.fix) == (status, fix)
    assert explanation in found.explanation
    return found


def test_a_machine_on_which_everything_fits():
    findings = doctor.judge(GPU)
    assert {finding.status for finding in findings} == {"ok"}
    assert not any(finding.fix for finding in findings)
    assert {finding.name for finding in findings} >= {framework.name for framework in FRAMEWORKS}
    says(GPU, "NVIDIA driver", "ok", "supports CUDA up to 13.0")
    assert says(GPU, "GPU 0", "ok", "140 GiB, compute capability 9.0").value == "NVIDIA H200"
    says(GPU, "PyTorch", "ok", "built for CUDA 13.0")
    says(GPU, "CuPy", "ok", "cupy-cuda13x")
    says(GPU, "JAX", "ok", "built for CUDA 13; takes 0.75 of a GPU's memory when it starts, except with")
    says(GPU, "Warp", "ok", "built for CUDA 13")
    assert says(GPU, "Device", "ok", "NVIDIA CUDA, OpenCL 3.0").value == "NVIDIA H200"


def test_a_machine_without_a_gpu_has_no_fault():
    findings = doctor.judge(CPU)
    assert "broken" not in {finding.status for finding in findings}
    says(CPU, "NVIDIA GPU", "missing", "run without one")
    says(CPU, "nvcc", "missing", "only PyCUDA needs it")
    says(CPU, "PyTorch", "ok", "built for the CPU")
    says(CPU, "JAX", "ok", "computes on the CPU")
    says(CPU, "Warp", "ok", "computes on the CPU")
    says(but(CPU, packages={"jax": None}, probes={"JAX": None}), "JAX", "missing", "not installed", "pip install jax")


@pytest.mark.parametrize("name", [framework.name for framework in FRAMEWORKS if framework.needs_gpu])
def test_without_a_gpu_nothing_that_needs_one_is_advised(name):
    says(CPU, name, "missing", "needs an NVIDIA GPU")


@pytest.mark.parametrize(
    "name, fix",
    [
        ("CuPy", 'pip install "cupy-cuda13x[ctk]"'),
        ("numba-cuda", 'pip install "numba-cuda[cu13]" "numpy<2.5"'),
        ("PyTorch", "pip install torch"),
        ("JAX", 'pip install "jax[cuda13]"'),
        ("Ray", "pip install ray numpy"),
    ],
)
def test_not_installed(name, fix):
    says(but(GPU, probes={name: None}), name, "missing", "not installed", fix)


def test_not_installed_on_an_old_driver():
    old = but(GPU, nvidia=DRIVER_12, probes={"CuPy": None, "numba-cuda": None, "cuda-core": None, "PyTorch": None})
    says(old, "CuPy", "missing", "not installed", 'pip install "cupy-cuda12x[ctk]"')
    says(old, "numba-cuda", "missing", "not installed", 'pip install "numba-cuda[cu12]" "numpy<2.5"')
    says(old, "cuda-core", "missing", "not installed", 'pip install "cuda-core[cu12]"')
    says(old, "PyTorch", "missing", "not installed", 'pip install "torch<2.11"')


def test_not_installed_on_a_driver_for_cuda_11():
    names = ("CuPy", "numba-cuda", "cuda-core", "PyTorch", "dask-cuda")
    old = but(GPU, nvidia=machine.Nvidia("470.256.02", (11, 4), (H200,)), probes=dict.fromkeys(names))
    says(old, "CuPy", "missing", "not installed", 'pip install "cupy-cuda11x"')
    says(old, "cuda-core", "missing", "not installed", 'pip install "cuda-core[cu11]==0.3.*"')
    index = "--index-url https://download.pytorch.org/whl/cu118"
    says(old, "PyTorch", "missing", "not installed", f'pip install "torch<2.8" {index}')
    for name in ("numba-cuda", "dask-cuda"):
        says(old, name, "missing", "not installed, and no longer published for CUDA 11")
    broken = but(old, probes={"numba-cuda": Probe("CudaSupportError: ..."), "PyTorch": Probe("OSError: ...")})
    reinstall = f'pip uninstall -y torch && pip install "torch<2.8" {index}'
    says(broken, "PyTorch", "broken", "OSError: ...", reinstall)
    says(broken, "numba-cuda", "broken", "built for CUDA 13", "pip uninstall -y numba-cuda")


# The driver and the GPU ----------------------------------------------------------------------------------------------


def test_driver_older_than_the_wheel():
    old = but(
        GPU,
        nvidia=DRIVER_12,
        probes={
            "CuPy": Probe("CUDARuntimeError: cudaErrorInsufficientDriver: CUDA driver version is insufficient"),
            "PyTorch": Probe("RuntimeError: The NVIDIA driver on your system is too old", {"cuda": "13.0"}),
            "numba-cuda": Probe("CudaSupportError: ..."),
            "cuda-core": Probe("CUDAError: ..."),
        },
    )
    why = "built for CUDA 13, but the driver, 550.54.15, supports CUDA only up to 12.4"
    says(old, "CuPy", "broken", why, 'pip uninstall -y cupy-cuda13x && pip install "cupy-cuda12x[ctk]"')
    says(old, "PyTorch", "broken", why, 'pip uninstall -y torch && pip install "torch<2.11"')
    numba = 'pip uninstall -y numba-cuda && pip install "numba-cuda[cu12]" "numpy<2.5"'
    says(old, "numba-cuda", "broken", why, numba)
    says(old, "cuda-core", "broken", why, 'pip uninstall -y cuda-core && pip install "cuda-core[cu12]"')


def test_a_wheel_that_works_on_an_old_driver_is_left_alone():
    """As with NVIDIA's forward compatibility package: the outcome of trying it counts, not its version."""
    assert of("CuPy", but(GPU, nvidia=DRIVER_12)).status == "ok"


def test_gpu_too_old_for_cuda_13():
    nvidia = machine.Nvidia("580.95.05", (13, 0), (V100,))
    error = Probe("CUDARuntimeError: cudaErrorNoKernelImageForDevice")
    volta = but(GPU, nvidia=nvidia, probes={"CuPy": error, "PyTorch": Probe(error.error, {"cuda": "13.0"})})
    why = "built for CUDA 13, which no longer runs on Tesla V100-SXM2-16GB"
    says(volta, "CuPy", "broken", why, 'pip uninstall -y cupy-cuda13x && pip install "cupy-cuda12x[ctk]"')
    index = "--index-url https://download.pytorch.org/whl/cu126"
    says(volta, "PyTorch", "broken", why, f'pip uninstall -y torch && pip install "torch<2.11" {index}')


def test_driver_updated_but_not_loaded():
    stale = but(GPU, nvidia=None, nvidia_error="RM has detected an NVML/RM version mismatch.")
    says(stale, "NVIDIA driver", "broken", "was updated", "sudo reboot")


def test_driver_that_does_not_answer():
    silent = but(GPU, nvidia=None, nvidia_error="Driver Not Loaded")
    says(silent, "NVIDIA driver", "broken", "Driver Not Loaded", "sudo modprobe nvidia && nvidia-smi")


def test_driver_library_on_a_machine_without_a_gpu():
    """A cluster's login node."""
    says(but(CPU, nvidia_error="Driver Not Loaded"), "NVIDIA GPU", "missing", "run without one")


def test_gpu_without_a_driver():
    says(but(CPU, nvidia_on_bus=True), "NVIDIA driver", "missing", "no driver for it", "sudo ubuntu-drivers install")
    says(but(CPU, nvidia_on_bus=True, container=True), "NVIDIA GPU", "missing", "--gpus all")


def test_what_is_no_index_ends_the_list_of_visible_gpus(monkeypatch):
    monkeypatch.setattr(machine, "_uuid", lambda index: f"GPU-{index}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,²,0")
    assert machine._visible(2) == [1]


def test_hidden_gpus():
    hidden = but(GPU, nvidia=machine.Nvidia("580.95.05", (13, 0), ()), visible="")
    says(hidden, "NVIDIA GPU", "missing", "CUDA_VISIBLE_DEVICES='' hides", "unset CUDA_VISIBLE_DEVICES")


# What says that PTX is too new: Numba's linker, CuPy and cuda.core for the driver and the runtime, and nvJitLink.
UNREADABLE_PTX = {
    "numba-cuda": "LinkerError: [222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    "CuPy": "CUDADriverError: the provided PTX was compiled with an unsupported toolchain.",
    "cuda-core": "CUDAError: cudaErrorUnsupportedPtxVersion",
    "dask-cuda": "RuntimeError: NVJITLINK_ERROR_PTX_COMPILE: Unsupported .version 9.5; current version is '9.0'",
}


@pytest.mark.parametrize("name", UNREADABLE_PTX)
def test_ptx_newer_than_the_driver(name):
    """As in Colab, whose compilers have been of CUDA 12.5 beside a driver for 12.4."""
    wheels = {
        "nvidia-cuda-nvrtc": "13.5.37",
        "nvidia-nvvm": "13.5.37",
        "nvidia-cuda-nvcc": "13.0.88",
        "cuda-toolkit": "13.5.0",
    }
    newer = but(GPU, packages=wheels, probes={name: Probe(UNREADABLE_PTX[name])})
    why = (
        "makes PTX that is too new for the driver, 580.95.05, which supports CUDA only up to 13.0: install that CUDA's"
    )
    fix = 'pip install "cuda-toolkit==13.0.*" "nvidia-cuda-nvrtc==13.0.*" "nvidia-nvvm==13.0.*"'
    says(newer, name, "broken", why, fix)
    without = but(newer, packages=dict.fromkeys(wheels))  # from a toolkit that pip did not install
    says(without, name, "broken", "install a version that was built for that CUDA, or a newer driver")


def test_ptx_newer_than_a_driver_for_cuda_12():
    wheels = {"nvidia-cuda-nvrtc-cu12": "12.5.82", "nvidia-cuda-nvrtc": "13.5.37", "cuda-bindings": "12.9.1"}
    old = but(GPU, nvidia=DRIVER_12, packages=wheels, probes={"numba-cuda": Probe(UNREADABLE_PTX["numba-cuda"])})
    says(old, "numba-cuda", "broken", "only up to 12.4", 'pip install "nvidia-cuda-nvrtc-cu12==12.4.*"')
    other = but(old, packages={"cuda-bindings": "13.5.0"})
    fix = 'pip uninstall -y numba-cuda && pip install "numba-cuda[cu12]" "numpy<2.5"'
    says(other, "numba-cuda", "broken", "built for CUDA 13, but the driver", fix)


@pytest.mark.parametrize("name", ["PyTorch", "Triton", "JAX"])
def test_ptx_that_a_frameworks_own_wheel_makes(name):
    error = f"RuntimeError: {'INTERNAL: ' * 50}CUDA error: the provided PTX was compiled with an unsupported toolchain."
    newer = but(GPU, packages={"nvidia-cuda-nvrtc": "13.5.37"}, probes={name: Probe(error, GPU.probes[name].seen)})
    says(
        newer,
        name,
        "broken",
        "PTX that is too new for the driver, 580.95.05, which supports CUDA only up to 13.0: install a",
    )


def test_cutile_without_its_compiler():
    error = "FileNotFoundError: 'tileiras' compiler not found, make sure it is available in $PATH"
    environment = {"frameworks": tuple(EVERY), "environment": "cutile"}
    without = but(GPU, **environment, packages={"cuda-tile": "1.7.0"}, probes={"cuTile": Probe(error)})
    fix = 'pip uninstall -y cuda-tile && pip install "cuda-tile[tileiras]" "cupy-cuda13x[ctk]"'
    says(without, "cuTile", "broken", "'tileiras' compiler not found", fix)


# Compilers -----------------------------------------------------------------------------------------------------------


def test_no_nvcc():
    bare = but(GPU, nvccs=(), probes={"PyCUDA": Probe("FileNotFoundError: 'nvcc'")})
    fix = 'pip install "cuda-toolkit[nvcc]==13.0.*" && export PATH=/site-packages/nvidia/cu13/bin:$PATH'
    says(bare, "nvcc", "missing", "PyCUDA needs it to compile kernels", fix)
    says(bare, "PyCUDA", "broken", "no suitable nvcc on PATH", fix)


def test_nvcc_not_on_path():
    off = but(GPU, nvccs=(dataclasses.replace(NVCC, on_path=False),), probes={"PyCUDA": Probe("no nvcc")})
    fix = "export PATH=/usr/local/cuda/bin:$PATH"
    says(off, "nvcc", "missing", "/usr/local/cuda/bin/nvcc is not on PATH", fix)
    says(off, "PyCUDA", "broken", "no suitable nvcc on PATH", fix)


def test_nvcc_does_not_matter_without_a_gpu():
    off = dataclasses.replace(NVCC, on_path=False)
    says(but(CPU, nvccs=(off,)), "nvcc", "missing", "only PyCUDA needs it, and only with an NVIDIA GPU")


def test_nvcc_newer_than_the_driver():
    error = {"PyCUDA": Probe("LogicError: cuModuleLoadDataEx failed: no binary for gpu")}
    newer = but(GPU, nvidia=DRIVER_12, probes=error)
    says(newer, "nvcc", "broken", "the driver supports CUDA only up to 12.4", "sudo apt install nvidia-cuda-toolkit")
    other = Nvcc("/usr/local/cuda-12.4/bin/nvcc", "12.4.131", on_path=False)
    both = but(newer, nvccs=(NVCC, other))
    says(both, "nvcc", "broken", "compiles for CUDA 13", "export PATH=/usr/local/cuda-12.4/bin:$PATH")
    says(both, "PyCUDA", "broken", "no suitable nvcc on PATH", "export PATH=/usr/local/cuda-12.4/bin:$PATH")
    unreadable = {"PyCUDA": Probe("LogicError: the provided PTX was compiled with an unsupported toolchain.")}
    assert of("PyCUDA", but(both, probes=unreadable)).fix == "export PATH=/usr/local/cuda-12.4/bin:$PATH"


def test_nvcc_that_does_not_run():
    assert of("nvcc", but(GPU, nvccs=(dataclasses.replace(NVCC, version=""),))).status == "broken"


def test_no_compiler():
    says(but(GPU, compiler=None), "C++ compiler", "missing", "nvcc", "sudo apt install g++")
    assert set(doctor.SYSTEM) == set(facts.PACKAGE_MANAGERS)


# The header and the compiler with which Triton makes what launches a kernel.
NO_COMPILER = (
    "RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set triton.knobs.build"
)
NOT_COMPILED = (
    "CalledProcessError: Command '['/usr/bin/gcc', '/tmp/tmp1/main.c', '-O3']' returned non-zero exit status 1."
)


@pytest.mark.parametrize(
    ("system", "compiler", "headers"),
    [
        ("apt", "sudo apt install g++", "sudo apt install python3.12-dev"),
        ("dnf", "sudo dnf install gcc-c++", "sudo dnf install python3.12-devel"),
        ("zypper", "sudo zypper install gcc-c++", "sudo zypper install python312-devel"),
        ("pacman", "sudo pacman -S gcc", "sudo pacman -S python"),
        ("apk", "sudo apk add g++", "sudo apk add python3-dev"),
        (None, "", ""),
    ],
)
def test_triton_cannot_compile(system, compiler, headers):
    without = but(GPU, system=system, compiler=None, probes={"Triton": Probe(NO_COMPILER)})
    says(without, "Triton", "broken", "cannot compile what launches its kernels: there is no C compiler", compiler)
    headless = but(GPU, system=system, headers=False, probes={"Triton": Probe(NOT_COMPILED)})
    says(headless, "Triton", "broken", "cannot compile what launches its kernels: Python.h is missing", headers)


def test_triton_does_not_work_for_another_reason():
    reinstall = "pip uninstall -y triton && pip install triton torch"
    says(but(GPU, probes={"Triton": Probe(NOT_COMPILED)}), "Triton", "broken", "non-zero exit status", reinstall)
    headless = but(GPU, headers=False)
    assert of("Triton", headless).status == "ok"
    says(but(headless, probes={"Triton": Probe("KeyError: 'x'")}), "Triton", "broken", "KeyError: 'x'", reinstall)
    error = "PTXAS error: Internal Triton PTX codegen error `ptxas` stderr: fatal : Unsupported .version 8.6"
    old = but(GPU, probes={"Triton": Probe(error)}, ptxas="/usr/local/cuda-12.4/bin/ptxas")
    says(old, "Triton", "broken", "the ptxas which TRITON_PTXAS_PATH names cannot read", "unset TRITON_PTXAS_PATH")
    assert "TRITON_PTXAS_PATH" not in str(of("Triton", but(old, ptxas=None)))


def test_triton_beside_a_pytorch_that_does_not_work():
    on_cpu = Probe("AssertionError: Torch not compiled with CUDA enabled", {"cuda": None})
    both = but(GPU, probes={"PyTorch": on_cpu, "Triton": Probe("AssertionError: Torch not compiled with CUDA enabled")})
    fix = "pip uninstall -y torch && pip install torch"
    says(both, "Triton", "broken", "works on PyTorch's tensors, but PyTorch does not work on the GPU", fix)
    alone = but(both, probes={"PyTorch": None, "Triton": Probe("ModuleNotFoundError: No module named 'torch'")})
    says(alone, "Triton", "broken", "PyTorch does not work", "pip install torch")


def test_a_kernel_of_triton_is_tried_in_a_cache_of_its_own(tmp_path, monkeypatch):
    """In front of a Triton and a PyTorch that are made up."""
    fakes = {
        "triton/__init__.py": """
import os
import re
cdiv = lambda n, d: -(-n // d)
class jit:
    def __init__(self, function):
        pass
    def __getitem__(self, grid):
        return self
    def __call__(self, tensor, n, BLOCK):
        assert n == 1
        raise RuntimeError(os.environ["TRITON_CACHE_DIR"])
""",
        "triton/language.py": "constexpr = int",
        "torch.py": """
from contextlib import nullcontext
from types import SimpleNamespace
float32 = "float32"
device = str
cuda = SimpleNamespace(device_of=nullcontext)
class tensor:
    dtype = float32
    def __init__(self, values, device):
        assert device == "cuda"
    def reshape(self, shape):
        return self
    def is_contiguous(self):
        return True
    def numel(self):
        return 1
""",
    }
    for name, text in fakes.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    (triton,) = (framework for framework in FRAMEWORKS if framework.name == "Triton")
    kind, folder = facts.probe(facts._attempt(triton, gpu=True)).error.split(": ")
    assert kind == "RuntimeError" and folder != str(tmp_path)
    assert Path(folder).is_absolute() and not Path(folder).exists()
    assert facts.probe(facts._attempt(triton, gpu=False)).error == ""


# OpenCL --------------------------------------------------------------------------------------------------------------

WRITE_ICD = "sudo mkdir -p /etc/OpenCL/vendors && echo libnvidia-opencl.so.1 | sudo tee /etc/OpenCL/vendors/nvidia.icd"


def test_no_icd_file_for_nvidia():
    pocl = but(GPU, opencl_drivers=CPU.opencl_drivers, probes={"PyOpenCL": CPU.probes["PyOpenCL"]})
    says(pocl, "NVIDIA", "missing", "OpenCL does not see the GPU", WRITE_ICD)
    assert of("PyOpenCL", pocl).status == "ok"
    says(but(pocl, root=True), "NVIDIA", "missing", "does not see", WRITE_ICD.replace("sudo ", ""))


def test_pyopencl_without_any_platform():
    error = Probe("LogicError: clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR", {})
    nothing = but(CPU, opencl_drivers=(), probes={"PyOpenCL": error})
    says(nothing, "PyOpenCL", "broken", "finds no OpenCL device", 'pip install "pyopencl[pocl]"')
    says(nothing, "Driver files", "missing", "no *.icd file", 'pip install "pyopencl[pocl]"')
    arm = but(nothing, architecture="aarch64")
    says(arm, "PyOpenCL", "broken", "finds no OpenCL device", "sudo apt install pocl-opencl-icd")
    says(but(GPU, opencl_drivers=(), probes={"PyOpenCL": error}), "PyOpenCL", "broken", "finds no", WRITE_ICD)


KNOWS_NO_ZEN_5 = "RuntimeError: clBuildProgram failed: BUILD_PROGRAM_FAILURE error: unknown target CPU 'generic'"


def test_pocl_that_does_not_know_the_processor():
    seen = CPU.probes["PyOpenCL"].seen
    here = but(CPU, probes={"PyOpenCL": Probe(KNOWS_NO_ZEN_5, seen)})
    says(here, "PyOpenCL", "missing", machine.POCL_IS_OLDER)
    says(here, "Device", "missing", "compiles nothing for it")
    says(CPU, "Device", "ok", "Portable Computing Language, OpenCL 3.0")


FAKE_PYOPENCL = """
import types
device_type = types.SimpleNamespace(CPU=2, GPU=4)
class Context:
    def __init__(self, devices):
        self.devices = devices
class Program:
    def __init__(self, context, source):
        self.devices = context.devices
    def build(self):
        if [device.type for device in self.devices] == [device_type.CPU]:
            raise RuntimeError(ERROR)
def platform(kind):
    return types.SimpleNamespace(get_devices=lambda: [types.SimpleNamespace(type=kind)])
def no_platform():
    raise RuntimeError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")
"""
A_CPU, BOTH = "[platform(device_type.CPU)]", "[platform(device_type.CPU), platform(device_type.GPU)]"
LEADS_NOWHERE, POCL, LOADS, LOADS_NOT = "", "libpocl-21062cec.so", "libc.so.6", "lib-of-no-driver.so.1"


@pytest.mark.parametrize(
    ("drivers", "platforms", "error", "lacks"),
    [
        ([LEADS_NOWHERE, POCL], A_CPU, KNOWS_NO_ZEN_5, machine.POCL_IS_OLDER),
        ([POCL], A_CPU, "anything else", "None"),  # the recipe's own process will say it
        ([POCL], BOTH, KNOWS_NO_ZEN_5, "None"),  # recipes take the GPU
        ([POCL], "no_platform()", "", machine.NO_WORKING_OPENCL),
        ([LOADS], "no_platform()", "", "None"),  # not asked
        ([LOADS, LOADS_NOT], BOTH, "", "None"),
        ([LOADS_NOT], "no_platform()", "", machine.NO_WORKING_OPENCL),
        ([LOADS_NOT], "[]", "", machine.NO_WORKING_OPENCL),
        ([LEADS_NOWHERE], "no_platform()", "", machine.NO_WORKING_OPENCL),
        ([], "no_platform()", "", "no OpenCL driver found: pip install"),
    ],
)
def test_opencl_recipes_are_skipped_where_no_driver_works(drivers, platforms, error, lacks, tmp_path):
    folder = tmp_path / "pyopencl/.libs"
    folder.mkdir(parents=True)
    for number, driver in enumerate(drivers):
        icd = folder / f"{number}.icd"
        icd.write_text(f"{driver}\n") if driver else icd.symlink_to("nowhere")
    fake = f"{FAKE_PYOPENCL}\nERROR = {error!r}\ndef get_platforms():\n    return {platforms}\n"
    (tmp_path / "pyopencl/__init__.py").write_text(fake)
    found = subprocess.run(
        [sys.executable, "-c", "from gpu_cookbook import machine; print(machine.lacks_opencl())"],
        env=os.environ | {"PYTHONPATH": str(tmp_path), "OCL_ICD_VENDORS": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert found.stdout.startswith(lacks), found.stderr


@in_opencl
def test_the_smallest_kernel_compiles():
    exec(machine.OPENCL_BUILD, {})


def test_no_opencl_in_the_driver():
    without = but(GPU, nvidia_opencl=False, opencl_drivers=CPU.opencl_drivers)
    says(without, "NVIDIA", "missing", "libnvidia-opencl.so.1 is not installed")
    says(but(GPU, nvidia_opencl=False), "NVIDIA", "broken", "libnvidia-opencl.so.1 is not installed")


# Frameworks that do not fit each other -------------------------------------------------------------------------------


def test_several_cupy_wheels():
    two = but(GPU, packages={"cupy-cuda12x": "14.2.0"})
    fix = 'pip uninstall -y cupy-cuda12x cupy-cuda13x && pip install "cupy-cuda13x[ctk]"'
    says(two, "CuPy", "broken", "cupy-cuda12x and cupy-cuda13x overwrite each other", fix)


def test_numpy_too_new_for_numba_cuda():
    error = Probe("AttributeError: module 'numpy' has no attribute 'row_stack'")
    install = 'pip install "numba-cuda[cu13]" "numpy<2.5"'
    for base in (GPU, but(CPU, packages={"numba-cuda": "0.30.4"})):
        new = but(base, packages={"numpy": "2.5.5"}, probes={"numba-cuda": error})
        says(new, "numba-cuda", "broken", "which NumPy 2.5.5 no longer has", install)


def test_dask_too_new_for_dask_cuda():
    new = but(
        GPU, packages={"dask": "2026.8.0", "distributed": "2026.8.0"}, requirements={"distributed": ["dask==2026.8.0"]}
    )
    fix = 'pip install "dask<2026.7.2,>=2026.7.1" "distributed<2026.7.2,>=2026.7.1"'
    says(new, "dask-cuda", "broken", "requires dask<2026.7.2,>=2026.7.1, but dask 2026.8.0 is installed", fix)
    assert of("distributed", new).status == "ok"


def test_requirements_of_extras_and_of_other_systems_do_not_count():
    odd = ['numpy<1; extra == "old"', 'numpy<1; sys_platform == "win32"', "what is this?"]
    assert of("joblib", but(GPU, requirements={"joblib": odd})).status == "ok"


JAX_REQUIRES = [
    "jaxlib<=0.11.2,>=0.11.2",
    'jaxlib==0.11.0; extra == "ci"',
    'jax-cuda12-plugin[with-cuda]<=0.11.2,>=0.11.2; extra == "cuda12"',
    'jax-cuda13-plugin[with-cuda]<=0.11.2,>=0.11.2; extra == "cuda13"',
]


def test_a_framework_that_fails_beside_versions_that_it_does_not_accept():
    """Those of distributions that are no framework, too."""
    error = Probe("RuntimeError: jaxlib version 0.10.2 is older than jax requires")
    older = but(GPU, packages={"jaxlib": "0.10.2"}, requirements={"jax": JAX_REQUIRES}, probes={"JAX": error})
    why, fix = (
        "requires jaxlib<=0.11.2,>=0.11.2, but jaxlib 0.10.2 is installed",
        'pip install "jaxlib<=0.11.2,>=0.11.2"',
    )
    says(older, "JAX", "broken", why, fix)
    assert of("JAX", but(older, probes={"JAX": GPU.probes["JAX"]})).status == "ok"  # it does work
    fits = but(older, packages={"jaxlib": "0.11.2"})
    says(fits, "JAX", "broken", "jaxlib version 0.10.2", 'pip uninstall -y jax && pip install "jax[cuda13]"')
    cupy = but(
        GPU,
        packages={"cuda-toolkit": "12.9.1", "nvidia-nccl": "2.20"},
        requirements={
            "cupy-cuda13x": ['cuda-toolkit[nvrtc]==13.*; extra == "ctk"', 'nvidia-nccl>=2.28; extra == "all"']
        },
        probes={"CuPy": Probe("RuntimeError: CuPy failed to load libnvrtc.so.13")},
    )
    why = "requires cuda-toolkit==13.*, but cuda-toolkit 12.9.1 is installed"
    says(cupy, "CuPy", "broken", why, 'pip install "cuda-toolkit==13.*"')


def test_a_plugin_of_jax_that_is_of_another_version():
    """JAX leaves it unused, and computes on the CPU."""
    on_cpu = but(GPU, requirements={"jax": JAX_REQUIRES}, probes={"JAX": Probe(seen={"platform": "cpu"})})
    older = but(on_cpu, packages={"jax-cuda13-plugin": "0.10.2"})
    why = "requires jax-cuda13-plugin<=0.11.2,>=0.11.2, but jax-cuda13-plugin 0.10.2 is installed"
    says(older, "JAX", "broken", why, 'pip install "jax-cuda13-plugin<=0.11.2,>=0.11.2"')
    says(on_cpu, "JAX", "broken", "does not find the GPU", 'pip install "jax[cuda13]"')
    plugins = {"jax-cuda13-plugin": None, "jax-cuda12-plugin": "0.10.2"}
    old = but(on_cpu, nvidia=DRIVER_12, packages=plugins)
    says(old, "JAX", "broken", "jax-cuda12-plugin 0.10.2", 'pip install "jax-cuda12-plugin<=0.11.2,>=0.11.2"')


@pytest.mark.slow
def test_the_memory_that_jax_takes_in_advance(monkeypatch):
    assert of("JAX", but(GPU, preallocated="")).explanation == "built for CUDA 13"
    assert "; takes .5 of a GPU's memory" in of("JAX", but(GPU, preallocated=".5")).explanation
    monkeypatch.setattr(facts, "_probe_all", lambda chosen, gpu: {})
    names = ("PREALLOCATE", "ALLOCATOR", "MEM_FRACTION")
    for settings, share in (
        ({}, "0.75"),
        ({"PYTHON_CLIENT_PREALLOCATE": "false"}, ""),
        ({"PYTHON_CLIENT_PREALLOCATE": "0", "CLIENT_MEM_FRACTION": ".5"}, ""),
        ({"PYTHON_CLIENT_PREALLOCATE": "true"}, "0.75"),
        ({"PYTHON_CLIENT_PREALLOCATE": ""}, "0.75"),
        ({"PYTHON_CLIENT_ALLOCATOR": "platform"}, ""),
        ({"PYTHON_CLIENT_ALLOCATOR": "bfc"}, "0.75"),
        ({"CLIENT_MEM_FRACTION": ".5"}, ".5"),
        ({"PYTHON_CLIENT_MEM_FRACTION": ".9"}, ".9"),
    ):
        for name in (*(f"XLA_PYTHON_CLIENT_{name}" for name in names), "XLA_CLIENT_MEM_FRACTION"):
            monkeypatch.delenv(name, raising=False)
        for name, value in settings.items():
            monkeypatch.setenv(f"XLA_{name}", value)
        assert facts.gather().preallocated == share, settings


def test_a_long_error_is_shortened():
    said = of("Ray", but(GPU, probes={"Ray": Probe("ImportError: " + "x" * 500)})).explanation
    assert said.startswith("ImportError: xxx") and said.endswith("x...") and len(said) == 200
    assert facts.probe("raise ImportError('x ' * 500 + 'the reason')").error.endswith("the reason")


def test_jax_on_the_cpu_beside_a_gpu():
    """It computes there without an error where its plugin for CUDA is missing, or too new for the driver."""
    on_cpu = but(GPU, probes={"JAX": Probe(seen={"platform": "cpu"})})
    says(on_cpu, "JAX", "broken", "does not find the GPU", 'pip install "jax[cuda13]"')
    alone = but(on_cpu, packages={"jax-cuda13-plugin": None})
    says(alone, "JAX", "broken", "is built for the CPU", 'pip install "jax[cuda13]"')
    why = "built for CUDA 13, but the driver, 550.54.15, supports CUDA only up to 12.4"
    fix = 'pip uninstall -y jax-cuda13-plugin && pip install "jax[cuda12]"'
    says(but(on_cpu, nvidia=DRIVER_12), "JAX", "broken", why, fix)
    oldest = machine.Nvidia("470.1", (11, 4), (H200,))
    says(but(on_cpu, nvidia=oldest), "JAX", "ok", "computes on the CPU: its plugin for CUDA is not installed")


def test_warp_on_the_cpu_beside_a_gpu():
    """It computes there without an error where it was built for a newer CUDA than the driver's."""
    on_cpu = but(GPU, probes={"Warp": Probe(seen={"cuda": "13.4", "platform": "cpu"})})
    says(on_cpu, "Warp", "broken", "does not find the GPU", "pip install warp-lang")
    why = "built for CUDA 13, but the driver, 550.54.15, supports CUDA only up to 12.4"
    says(but(on_cpu, nvidia=DRIVER_12), "Warp", "broken", why, 'pip install "warp-lang<1.18"')
    oldest = machine.Nvidia("470.1", (11, 4), (H200,))
    says(but(on_cpu, nvidia=oldest), "Warp", "ok", "computes on the CPU: for this GPU it is not installed")


def test_pytorch_for_the_cpu_beside_a_gpu():
    error = Probe("AssertionError: Torch not compiled with CUDA enabled", {"cuda": None})
    cpu_only = but(GPU, packages={"torch": "2.13.0+cpu"}, probes={"PyTorch": error})
    says(cpu_only, "PyTorch", "broken", "is built for the CPU", "pip uninstall -y torch && pip install torch")
    old = but(cpu_only, nvidia=DRIVER_12)
    says(old, "PyTorch", "broken", "is built for the CPU", 'pip uninstall -y torch && pip install "torch<2.11"')


def test_what_does_not_import_is_broken():
    died = but(GPU, probes={"Ray": Probe("the process was killed by SIGSEGV")})
    says(died, "Ray", "broken", "killed by SIGSEGV", "pip uninstall -y ray && pip install ray numpy")
    lacks = but(GPU, probes={"Dask": Probe("ModuleNotFoundError: No module named 'toolz'")})
    says(lacks, "Dask", "broken", "No module named 'toolz'", 'pip install "dask[complete]"')


def test_what_cannot_start_without_a_gpu_is_not_broken():
    error = Probe("ImportError: libcuda.so.1: cannot open shared object file: No such file or directory")
    alone = but(CPU, packages={"pycuda": "2026.1"}, probes={"PyCUDA": error})
    says(alone, "PyCUDA", "missing", "does not start without an NVIDIA GPU")
    assert of("CuPy", but(CPU, packages={"cupy-cuda13x": "14.2.0"}, probes={"CuPy": Probe()})).status == "ok"


# Where the commands come from ----------------------------------------------------------------------------------------


def test_a_command_is_a_recipes_or_no_recipe_names_the_framework():
    lines = {recipe.install for recipe in catalogue.recipes()}
    named = {requirement.name for line in lines for requirement in catalogue.requirements(line)}
    for framework in FRAMEWORKS:
        if framework in facts.FRAMEWORKS:  # as it stands there: with a command of its own
            assert framework.install and not named & {*framework.distributions}
        else:
            assert framework.install in lines or framework.name == "distributed"


def recipe_of(framework, install, module, environments=(machine.MAIN,), runs_on="NVIDIA GPU"):
    (some, *_) = catalogue.recipes()
    return dataclasses.replace(
        some, framework=framework, install=install, imports=(module,), environments=environments, runs_on=runs_on
    )


MADE_UP = [
    recipe_of("CuPy", 'pip install "cupy-cuda13x[ctk]" scipy', "cupy"),
    recipe_of("CuPy", 'pip install "cupy-cuda13x[ctk]"', "cupy"),
    recipe_of("Dask", 'pip install "dask[complete]" "cupy-cuda13x"', "dask"),
    recipe_of("joblib", "pip install joblib", "joblib", ()),
    recipe_of("Unheard", "pip install Un_heard cupy-cuda13x", "unheard.of", ("other", "third")),
    recipe_of("Numba", "pip install numba-mlir", "numba_mlir", ("other",), "NVIDIA GPU or CPU"),
]
OTHER = but(GPU, frameworks=facts.frameworks(MADE_UP), environments=("main", "other", "third"))


def test_the_shortest_line_that_begins_with_a_framework_installs_it():
    installs = {framework.name: framework.install for framework in OTHER.frameworks}
    assert installs["CuPy"] == 'pip install "cupy-cuda13x[ctk]"'
    assert installs["Dask"] == 'pip install "dask[complete]" "cupy-cuda13x"'
    assert installs["distributed"] == 'pip install "dask[distributed]"'


def test_a_framework_that_only_recipes_know():
    new = {framework.name: framework for framework in OTHER.frameworks if framework not in GPU.frameworks}
    unheard = new["Unheard"]
    assert (unheard.module, unheard.distributions, unheard.tries) == ("unheard", ("un-heard",), "import unheard")
    assert unheard.needs_gpu and not new["numba-mlir"].needs_gpu
    there = but(OTHER, environment="other", packages={"un-heard": "1.5"}, probes={"Unheard": Probe()})
    assert says(there, "Unheard", "ok", "").value == "1.5"
    missing = but(OTHER, environment="other")
    says(missing, "Unheard", "missing", "not installed", "pip install Un_heard cupy-cuda13x")
    says(but(missing, nvidia=DRIVER_12), "Unheard", "missing", "not installed", "pip install Un_heard cupy-cuda12x")


def test_no_framework_is_tried_outside_its_environment(monkeypatch):
    packages = {"un-heard": "1.5", "joblib": "1.6.0", "dask": "2026.7.1"}
    chosen = {}
    for name in ("main", "other"):
        monkeypatch.setenv(machine.VARIABLE, name)
        chosen[name] = {framework.name for framework in facts._installed_here(OTHER.frameworks, packages)}
    assert {"joblib", "Dask"} <= chosen["main"] and "Unheard" not in chosen["main"]
    assert {"joblib", "Unheard"} <= chosen["other"] and "Dask" not in chosen["other"]


# Environments --------------------------------------------------------------------------------------------------------


def test_the_environment_is_named():
    assert says(GPU, "Environment", "ok", "").value == "main"
    here = but(OTHER, environment="other")
    assert says(here, "Environment", "ok", "there is also main, third: make doctor ENVIRONMENT=NAME").value == "other"


def test_an_unknown_environment():
    unknown = but(OTHER, environment="othre")
    why = "GPU_COOKBOOK_ENVIRONMENT names an unknown environment; there are: main, other, third"
    says(unknown, "Environment", "broken", why, "unset GPU_COOKBOOK_ENVIRONMENT")


def test_frameworks_of_other_environments_are_not_missing():
    says(OTHER, "Unheard", "elsewhere", "belongs to the environment other: make doctor ENVIRONMENT=other")
    assert of("CuPy", OTHER).status == of("joblib", OTHER).status == "ok"
    there = but(OTHER, environment="third")
    says(there, "Dask", "elsewhere", "belongs to the environment main: make doctor ENVIRONMENT=main")
    says(there, "distributed", "elsewhere", "belongs to the environment main")
    assert of("CuPy", there).status == of("joblib", there).status == "ok"
    assert "2 belong to other environments" in " ".join(shown(doctor.judge(OTHER), 80).split())


def test_the_facts_name_this_environment(monkeypatch):
    monkeypatch.setenv(machine.VARIABLE, "nowhere")
    monkeypatch.setattr(facts, "_probe_all", lambda chosen, gpu: {})
    (found,) = [finding for finding in doctor.examine() if finding.name == "Environment"]
    assert (found.value, found.status) == ("nowhere", "broken")


# Trying --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code, error",
    [
        ("seen['a'] = 1", ""),
        ("raise ImportError('a\\n  b')", "ImportError: a b"),
        ("try: f()\nexcept NameError as e: raise ImportError('x') from e", "NameError: name 'f' is not defined"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "the process was killed by SIGSEGV"),
        ("import os; os.write(2, b'one\\ntwo\\n'); os._exit(3)", "two"),
        ("print('{}'); print('noise', end='')", ""),
        ("import time; time.sleep(60)", "no answer within 2 s"),
    ],
)
def test_probe(code, error):
    assert facts.probe(code, time_limit=2 if "sleep" in code else 60).error == error


def test_probe_is_not_led_astray_by_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong one')")
    (tmp_path / "numpy.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    assert facts.probe("import numpy; seen['version'] = numpy.__version__").seen["version"]


def test_a_program_may_print_anything():
    assert facts._run("printf", r"\377 12") == "\N{REPLACEMENT CHARACTER} 12"


@pytest.mark.slow
def test_this_machine():
    findings = {finding.name: finding for finding in doctor.examine()}
    assert findings["Python"].status == "ok"
    assert findings["NumPy"].status == "ok"
    for framework in FRAMEWORKS:
        found = findings[framework.name]
        assert found.status in ("ok", "missing", "broken", "elsewhere")
        if found.status == "ok":
            assert found.value[0].isdigit()
        else:
            assert found.explanation
    if not machine.gpus():
        assert findings["NVIDIA GPU"].status == "missing"
    json.dumps(doctor.as_json(list(findings.values())))


def test_examining_imports_no_framework():
    code = (
        "import sys\nfrom gpu_cookbook import doctor\nfrom gpu_cookbook.doctor import facts\n"
        "facts.probe = lambda code: facts.Probe()\n"
        "doctor.examine()\n"
        "print(sorted({f.module.partition('.')[0] for f in facts.FRAMEWORKS} & set(sys.modules) - {'cuda'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Showing -------------------------------------------------------------------------------------------------------------

TROUBLE = but(
    GPU,
    nvidia=DRIVER_12,
    nvccs=(),
    site_packages="/home/somebody/projects/measurements/.venv/lib/python3.12/site-packages",
    opencl_drivers=(),
    packages={"cupy-cuda12x": "14.2.0", "numpy": "2.5.5", "dask": "2026.8.0"},
    probes={
        "numba-cuda": Probe("AttributeError: module 'numpy' has no attribute 'row_stack'"),
        "PyOpenCL": Probe("LogicError: clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR"),
        "PyTorch": Probe("too old", {"cuda": "13.0"}),
        "Ray": Probe("ImportError: " + "a long story " * 15),
        "joblib": None,
    },
)


def shown(findings, width):
    console = Console(file=io.StringIO(), width=width)
    console.print(doctor.table(findings))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("machine_facts", [GPU, CPU, TROUBLE, but(TROUBLE, nvidia=GPU.nvidia), OTHER])
def test_table(machine_facts, width):
    findings = doctor.judge(machine_facts)
    text = shown(findings, width)
    assert max(map(len, text.splitlines())) <= width
    for finding in findings:
        assert finding.name in text
        assert "".join(finding.explanation.split()[:2]) in "".join(text.split())
        if finding.fix:
            assert finding.fix in copied(text)


def copied(text):
    """As a shell reads it: a backslash at the end of a line joins it with the next."""
    return " ".join(text.replace("\\\n", "").split())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_command_is_whole_when_it_is_copied(width):
    folder = "/home/somebody/projects/measurements/of-this-year/.venv/lib/python3.12/site-packages/nvidia/cu13/bin"
    findings = [doctor.Finding("Machine", "nvcc", "", "missing", "why", f"echo one 'two' {folder}:$PATH && echo three")]
    lines = shown(findings, width).splitlines()
    start = next(i for i, line in enumerate(lines) if "echo one" in line)
    command = "\n".join(lines[start : lines.index("", start)])
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, env={"PATH": "/bin"})
    assert done.stdout == f"one two {folder}:/bin\nthree\n"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_command_for_another_environment_is_never_broken_over_lines(width):
    lines = shown(doctor.judge(OTHER), width).splitlines()
    for command in ("make doctor ENVIRONMENT=NAME", "make doctor ENVIRONMENT=other"):
        assert any(line.rstrip().endswith(command) for line in lines)


@pytest.mark.parametrize("width", [1, 4, 8, 9, 10, 11, 20])
def test_in_a_narrow_terminal_a_command_takes_more_lines(width):
    command = "pip install a-long-name==1.2.3 && echo"
    lines = [line for _, line in doctor._continued(command, 7, width)]
    assert "\n".join(lines).replace("\\\n", "") == command
    assert max(map(len, lines)) <= max(width, 3)
    shown(doctor.judge(TROUBLE), width)


def test_a_terminal_that_knows_ascii_only():
    buffer = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Console(file=buffer, width=80).print(doctor.table(doctor.judge(TROUBLE)))


# ---- What the machine itself is asked.


class Driver:
    """pynvml on a machine with this many GPUs, of which the ``lost`` ones have fallen off the bus."""

    def __init__(self, count, lost):
        self.count, self.lost = count, lost

    def __getattr__(self, name):
        answers = {
            "nvmlInit": None,
            "nvmlSystemGetCudaDriverVersion_v2": 13000,
            "nvmlSystemGetDriverVersion": "580.1",
            "nvmlDeviceGetCount": self.count,
            "nvmlDeviceGetName": "NVIDIA H200",
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=140 * GIB, used=0, free=140 * GIB),
            "nvmlDeviceGetCudaComputeCapability": (9, 0),
        }
        return (lambda *_: answers[name]) if name in answers else getattr(pynvml, name)

    def nvmlDeviceGetHandleByIndex(self, index):
        if index in self.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return index

    def nvmlDeviceGetUUID(self, handle):
        return f"GPU-{handle}"


@pytest.mark.parametrize(
    ("visible", "found"), [(None, [0, 2]), ("2", [2]), ("2,1,0", [2]), ("GPU-2,GPU-1,GPU-0", [2]), ("GPU-1", [])]
)
def test_a_gpu_that_fell_off_the_bus_is_left_out(monkeypatch, visible, found):
    """And ends the list of those that are named, like any that is not there."""
    monkeypatch.setattr(machine, "pynvml", Driver(3, {1}))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu.index for gpu in machine.nvidia.__wrapped__().gpus] == found


T4 = "0a1b2c3d-0000-1111-2222-333344445555"
A100 = "99999999-8888-7777-6666-555544443333"
SLICES = [f"aaaaaaaa-0000-0000-0000-00000000000{number}" for number in (1, 2)]


class Mixed(Driver):
    """A T4 and, in the next slot, an A100, which may be in MIG mode with two instances. A handle is a UUID."""

    def __init__(self, mig=False):
        super().__init__(2, set())
        self.mig = mig

    def nvmlDeviceGetHandleByIndex(self, index):
        return f"GPU-{(T4, A100)[index]}"

    def nvmlDeviceGetHandleByUUID(self, uuid):
        assert uuid.removeprefix("MIG-") in SLICES
        return uuid

    def nvmlDeviceGetUUID(self, handle):
        return handle

    def nvmlDeviceGetName(self, handle):
        name = "Tesla T4" if T4 in handle else "NVIDIA A100-SXM4-40GB"
        return f"{name} MIG 1g.5gb" if "MIG" in handle else name

    def nvmlDeviceGetMemoryInfo(self, handle):
        total = (16 if T4 in handle else 5 if "MIG" in handle else 40) * GIB
        return SimpleNamespace(total=total, used=0, free=total)

    def nvmlDeviceGetCudaComputeCapability(self, handle):
        assert "MIG" not in handle
        return (7, 5) if T4 in handle else (8, 0)

    def nvmlDeviceGetMigMode(self, handle):
        if T4 in handle:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return [int(self.mig), 0]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle):
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle, place):
        if place >= len(SLICES):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return f"MIG-{SLICES[place]}"

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return [SimpleNamespace(pid=2**31 - 1, usedGpuMemory=GIB)] if "MIG" in handle else []


@pytest.fixture
def cuda(monkeypatch):
    """A machine with these GPUs, whose CUDA sees those with these numbers; it has a list of who has asked it."""
    asked = []

    def of(driver, *seen):
        def run(command, **_):
            asked.append(command)
            return SimpleNamespace(stdout="".join(f"{uuid}\n" for uuid in seen))

        monkeypatch.setattr(machine, "pynvml", driver)
        monkeypatch.setattr(machine.subprocess, "run", run)
        found = machine.nvidia.__wrapped__()
        monkeypatch.setattr(machine, "nvidia", lambda: found)
        return asked

    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    return of


def test_gpus_that_differ_are_in_the_order_of_cuda(cuda, monkeypatch):
    """By default the fastest is CUDA's first, so what is measured on that must not be told of the one in slot 0."""
    assert cuda(Mixed(), A100, T4)
    assert [(gpu.index, gpu.name, gpu.visible) for gpu in machine.gpus()] == [
        (1, "NVIDIA A100-SXM4-40GB", 1),
        (0, "Tesla T4", 0),
    ]
    assert [free for _, free in machine.device_memory()] == [40 * GIB, 16 * GIB]
    found = doctor.judge(but(GPU, nvidia=machine.nvidia()))
    assert [each.explanation.rpartition("; ")[2] for each in found if re.match("GPU [01]", each.name)] == [
        "CUDA's number 0",
        "CUDA's number 1",
    ]


@pytest.mark.parametrize(
    ("variables", "seen", "found"),
    [
        ({"CUDA_VISIBLE_DEVICES": "0"}, [A100], [1]),
        ({"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, [A100], [1]),
        ({"CUDA_VISIBLE_DEVICES": f"GPU-{T4}"}, [T4], [0]),
        ({"CUDA_VISIBLE_DEVICES": ""}, [], []),
        ({"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, None, [0]),
        ({"CUDA_VISIBLE_DEVICES": f"GPU-{A100},0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, None, [1, 0]),
    ],
)
def test_only_cuda_knows_which_gpu_a_number_means(variables, seen, found, cuda, monkeypatch):
    """Unless it counts as the driver's library does; then it is not asked, since that takes a process."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert bool(cuda(Mixed(), *seen or ())) == (seen is not None)
    assert [gpu.index for gpu in machine.gpus()] == found


@pytest.mark.parametrize(("name", "free"), [("Tesla T4", 16), ("NVIDIA A100-SXM4-40GB", 40)])
def test_opencl_has_the_memory_of_the_gpu_that_it_takes(name, free, cuda):
    """It counts GPUs by itself, so that its first may be another."""
    cl = pytest.importorskip("pyopencl", reason="OpenCl asks it whether its device is a GPU")
    cuda(Mixed(), A100, T4)
    one = object.__new__(device.OpenCl)
    one.name, one.queue = name, SimpleNamespace(device=SimpleNamespace(type=cl.device_type.GPU))
    assert one.free_bytes() == free * GIB


def test_a_mig_instance_is_told_from_its_gpu(cuda):
    cuda(Mixed(mig=True), SLICES[1])
    (gpu,) = machine.gpus()
    assert gpu == machine.Gpu(1, "NVIDIA A100-SXM4-40GB MIG 1g.5gb", 5 * GIB, (8, 0), f"MIG-{SLICES[1]}")
    assert gpu.visible == f"MIG-{SLICES[1]}"
    assert machine.device_memory() == [(0, 5 * GIB)]
    assert machine.processes_on_gpus() == [[f"process {2**31 - 1} (unknown here, 1.07 GB)"]]
    assert machine.is_gpu("NVIDIA A100-SXM4-40GB MIG 1g.5gb") and not machine.is_gpu("NVIDIA A100-SXM4-40GB")
    explained = "5 GiB, compute capability 8.0; a MIG instance: CUDA takes one"
    says(but(GPU, nvidia=machine.nvidia()), "GPU 1", "ok", explained)


def test_of_gpus_in_mig_mode_cuda_may_see_none(cuda, monkeypatch):
    """Without an instance, or with CUDA_VISIBLE_DEVICES that names none."""
    cuda(Mixed(mig=True), A100)
    assert machine.gpus() == ()
    says(but(GPU, nvidia=machine.nvidia()), "NVIDIA GPU", "missing", "one in MIG mode needs an instance")
    hidden = but(GPU, nvidia=machine.nvidia(), visible="MIG-0")
    says(hidden, "NVIDIA GPU", "missing", "CUDA_VISIBLE_DEVICES=MIG-0 hides every GPU", "unset CUDA_VISIBLE_DEVICES")


def test_a_driver_that_does_not_answer_shows_no_gpu(cuda, monkeypatch):
    cuda(Mixed(), A100, T4)

    def hang(command, **_):
        raise subprocess.TimeoutExpired(command, 60)

    monkeypatch.setattr(machine.subprocess, "run", hang)
    assert machine._seen_by_cuda(2) == []


class Cuda:
    """libcuda.so.1, as far as it is asked, with two devices."""

    def __init__(self, error=0):
        self.error = error

    def cuInit(self, flags):
        return self.error

    def cuDeviceGetCount(self, count):
        count._obj.value = 2
        return 0

    def cuDeviceGet(self, device, place):
        device._obj.value = 10 + place
        return 0

    def cuDeviceGetUuid(self, number, device):
        number[:] = uuid.UUID((A100, T4)[device.value - 10]).bytes
        return 0


class Newer(Cuda):
    def cuDeviceGetUuid_v2(self, number, device):
        number[:] = uuid.UUID(SLICES[device.value - 10]).bytes
        return 0


@pytest.mark.parametrize(("library", "said"), [(Cuda(), [A100, T4]), (Newer(), SLICES), (Cuda(100), [])])
def test_what_cuda_is_asked(library, said, monkeypatch, capsys):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    exec(machine.COUNTED_BY_CUDA, {})
    assert capsys.readouterr().out.split() == said


@pytest.mark.parametrize(
    ("groups", "files"),
    [
        (
            "0::/job\n",
            {"job/memory.max": "900", "job/memory.current": "600", "job/memory.stat": "anon 1\ninactive_file 9"},
        ),
        ("0::/a/job\n", {"a/job/memory.max": "max", "a/memory.max": "809", "a/memory.current": "500"}),
        (  # in a container: the path is that of the host
            "4:cpu,memory:/docker/1\n0::/\n",
            {
                "memory/memory.limit_in_bytes": "400",
                "memory/memory.usage_in_bytes": "100",
                "memory/memory.stat": "total_inactive_file 9",
            },
        ),
        ("0::/\n", {}),
    ],
    ids=["version 2", "of an outer group", "version 1", "none"],
)
def test_a_container_has_the_memory_of_its_group(monkeypatch, tmp_path, groups, files):
    control_groups(monkeypatch, tmp_path, groups, files)
    found = list(machine._control_groups())
    assert [free for _, free in found] == [309] * bool(files)
    assert (machine.host_memory_free() == 309) == bool(files)
    assert not files or machine.host_memory() == found[0][0] > 309


def control_groups(monkeypatch, folder, groups, files):
    """What Linux says of those that this process is in."""
    (folder / "sys/fs/cgroup").mkdir(parents=True)
    for name, text in (
        {"proc/self/cgroup": groups} | {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    ).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setattr(machine, "Path", lambda path, *more: folder.joinpath(path.lstrip("/"), *more))


@pytest.mark.parametrize(
    ("groups", "files", "said", "cores"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, "1.5 of 16", 1),  # docker --cpus=1.5
        ("0::/\n", {"cpu.max": "max 100000\n"}, "16", 16),
        ("0::/a/job\n", {"a/job/cpu.max": "800000 100000\n", "a/cpu.max": "400000 100000\n"}, "4 of 16", 4),
        ("0::/\n", {"cpu.max": "6400000 100000\n"}, "16", 16),  # more than there are
        ("0::/\n", {"cpu.max": "10000 100000\n"}, "0.1 of 16", 1),
        (
            "4:cpu,cpuacct:/docker/1\n0::/\n",
            {"cpu/cpu.cfs_quota_us": "150000\n", "cpu/cpu.cfs_period_us": "100000\n"},
            "1.5 of 16",
            1,
        ),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, "16", 16),
        ("0::/\n", {}, "16", 16),
        ("", {}, "16", 16),
    ],
)
def test_a_container_has_the_cores_of_its_quota(groups, files, said, cores, monkeypatch, tmp_path):
    control_groups(monkeypatch, tmp_path, groups, files)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: set(range(16)))
    assert (machine.core_count(), machine.cores()) == (said, cores)
    assert machine.processor.__wrapped__().endswith(f", {said} cores")


def test_a_machine_that_hides_how_large_its_caches_are(monkeypatch, tmp_path):
    """As some virtual machines do, whose kernel knows only their levels."""
    for core, known in ((0, True), (1, False)):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{core}/cache/index3"
        folder.mkdir(parents=True)
        (folder / "level").write_text("3\n")
        (folder / "shared_cpu_list").write_text(f"{core}\n")
        if known:
            (folder / "size").write_text("32K\n")
    monkeypatch.setattr(device, "Path", lambda path: tmp_path / path.lstrip("/"))
    for cores, found in (({0}, 2**15), ({1}, None), ({0, 1}, 2**15), ({7}, None)):
        monkeypatch.setattr(device.os, "sched_getaffinity", lambda _, cores=cores: cores)
        assert device.Host().cache_bytes() == found


def test_no_limit_on_threads_reaches_a_recipe(monkeypatch, tmp_path):
    """NumPy would have one core, and its results say that it had all."""
    assert {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"} <= runner.THREADS
    for name in runner.THREADS:
        monkeypatch.setenv(name, "1")
    assert not runner.THREADS & runner.environment(str(tmp_path)).keys()
