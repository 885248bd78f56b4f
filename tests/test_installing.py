"""setup.cfg's extras install what the recipes' Install lines ask for."""

import configparser
import importlib.metadata
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from gpu_cookbook import catalogue, machine

SETUP = configparser.ConfigParser()
SETUP.read(Path(__file__).parents[1] / "setup.cfg", encoding="utf-8")
EVERYWHERE = SETUP["options"]["install_requires"]  # what every extra is installed beside
EXTRAS = dict(SETUP["options.extras_require"])
WITHOUT_A_GPU = ("CPU", "OpenCL device", "NVIDIA GPU or CPU")


def test_make_knows_the_environments_before_it_builds_one():
    for name, code in (*((name, 0) for name in catalogue.environments()), ("nonsense", 2), ("cpu", 2), ("every", 2)):
        command = ["make", "--silent", "--directory", Path(__file__).parents[1], "extra", f"ENVIRONMENT={name}"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        if code:
            words = f"Unknown environment '{name}'. There are: {' '.join(catalogue.environments())}."
            assert words in done.stderr


def extra(name, extras=EXTRAS):
    """The requirements of an extra, with those of the extras that it includes, as in gpu-cookbook[cuda13]."""
    for line in f"{EVERYWHERE}\n{extras[name]}".split("\n"):
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            if requirement.name == "gpu-cookbook":
                for other in requirement.extras:
                    yield from extra(other, extras)
            else:
                yield requirement


def extras_of(recipe):
    """The extras for CUDA 13 that must install what a recipe needs; two that are installed together as one word."""
    if machine.MAIN in recipe.environments or not recipe.environments:
        yield "cuda13"
        if recipe.runs_on in WITHOUT_A_GPU:
            own = recipe.framework.lower()
            yield f"cpu,{own}" if own in EXTRAS else "cpu"
    yield from (name for name in recipe.environments if name != machine.MAIN)


def faults(recipe, extras=EXTRAS):
    """What a recipe needs and its extras do not install."""
    for name in extras_of(recipe):
        if missing := set(name.split(",")) - set(extras):
            yield f"there is no extra {missing.pop()}"
            continue
        there = [each for one in name.split(",") for each in extra(one, extras)]
        for asked in catalogue.requirements(recipe.install):
            if not any(installs(requirement, asked, name) for requirement in there):
                yield f"{name} does not install {asked}"


def installs(there, asked, name=""):
    """Whether installing one requirement also satisfies another."""
    # PoCL is OpenCL for the CPU. Where there is a GPU, its driver brings OpenCL for it. Without one, JAX needs no CUDA.
    needless = {"pocl"} if name.startswith("cuda") else {"cuda13"}
    same = canonicalize_name(there.name) == canonicalize_name(asked.name)
    return same and asked.extras - needless <= there.extras and implies(there.specifier, asked.specifier)


def implies(tight, loose):
    """Whether every version that fits one specifier also fits the other. The answer changes only at the versions that
    they name, so it is enough to try those, the next one above each, and the lowest of all."""
    named = [specifier.version.removesuffix(".*") for specifier in (*tight, *loose)]
    versions = [Version(text) for version in ("0", *named) for text in (version, f"{version}.0.0.1")]
    return all(loose.contains(version) for version in versions if tight.contains(version))


RECIPES = [pytest.param(recipe, id=f"{recipe.workload}-{recipe.technique}") for recipe in catalogue.recipes()]


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_extras_install_what_a_recipe_needs(recipe):
    assert list(faults(recipe)) == []


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_extra_for_cuda_12_has_the_same_distributions(recipe):
    """But not in the same versions: those of cuda-bindings and PyTorch, for example, are for CUDA 13."""
    there = {canonicalize_name(requirement.name) for requirement in extra("cuda12")}
    if "cuda13" in extras_of(recipe):
        asked = catalogue.requirements(machine.for_cuda(recipe.install, 12))
        assert {canonicalize_name(requirement.name) for requirement in asked} <= there


@pytest.mark.parametrize(
    ("there", "asked", "enough"),
    [
        ("numpy<2.5", "numpy", True),
        ("numpy", "numpy<2.5", False),
        ("numpy>=2,<2.4", "numpy<2.5", True),
        ("numpy<=2.5", "numpy<2.5", False),
        ("torch>=2.11,<2.14", "torch>=2.9", True),
        ("torch>=2.8", "torch>=2.9", False),
        ("numba-cuda[cu13]==0.30.*", "numba_cuda[cu13]>=0.30", True),
        ("numba-cuda==0.30.*", "numba-cuda[cu13]", False),
        ("numba", "numba-cuda", False),
        ("numba==0.60.1", "numba!=0.60.1", False),
    ],
)
def test_one_requirement_satisfies_another(there, asked, enough):
    assert installs(Requirement(there), Requirement(asked)) == enough


def made_up(folder, install, runs_on="NVIDIA GPU", environment=None):
    lines = ["Framework: Unheard", f"Runs on: {runs_on}", f"Install: {install}"]
    lines += [f"Environment: {environment}"] if environment else []
    (folder / "multiply").mkdir(exist_ok=True)
    path = folder / "multiply" / "with_unheard.py"
    path.write_text('"""A recipe.\n\n' + "\n".join(lines) + '\n"""\n', encoding="utf-8")
    return catalogue.read(path)


def test_a_recipe_with_an_unknown_package_is_a_fault(tmp_path):
    assert list(faults(made_up(tmp_path, "pip install numpy unheard"))) == ["cuda13 does not install unheard"]
    assert list(faults(made_up(tmp_path, 'pip install "numpy<2"', "CPU"))) == [
        "cuda13 does not install numpy<2",
        "cpu does not install numpy<2",
    ]


def test_an_environment_is_an_extra_of_its_own(tmp_path):
    recipe = made_up(tmp_path, "pip install unheard cupy-cuda13x", environment="other")
    assert list(faults(recipe)) == ["there is no extra other"]
    alone = ["other does not install cupy-cuda13x"]
    assert list(faults(recipe, EXTRAS | {"other": "unheard"})) == alone
    assert list(faults(recipe, EXTRAS | {"other": "gpu-cookbook[cuda13]\nunheard"})) == []
    both = made_up(tmp_path, "pip install unheard", "CPU", environment="main, other")
    fault = [f"{name} does not install unheard" for name in ("cuda13", "cpu")]
    assert list(faults(both, EXTRAS | {"other": "unheard"})) == fault


@pytest.mark.parametrize(
    "install", ["", "conda install numpy", "pip install", "pip install numpy==", "pip install --pre numpy", "pip 'x"]
)
def test_a_line_that_is_not_pip_install_is_an_error(install):
    with pytest.raises(catalogue.BrokenRecipe, match="Install: "):
        catalogue.requirements(install)


@pytest.mark.parametrize(
    ("install", "for_12"),
    [
        ('pip install "dask-cuda[cu13]" cupy-cuda13x', 'pip install "dask-cuda[cu12]" cupy-cuda12x'),
        ("pip install rmm-cu13", "pip install rmm-cu12"),
        ("pip install pycuda numpy nvidia-cublas", "pip install pycuda numpy nvidia-cublas-cu12"),
        ("pip install numpy", "pip install numpy"),
        ('pip install pycuda "cuda-bindings>=13"', 'pip install pycuda "cuda-bindings==12.*"'),
        ('pip install "jax[cuda13]"', 'pip install "jax[cuda12]"'),
        ("pip install warp-lang", 'pip install "warp-lang<1.18"'),
    ],
)
def test_an_install_line_for_another_cuda(install, for_12):
    assert machine.for_cuda(install, 12) == for_12
    assert machine.for_cuda(install, 13) == install


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_extra_for_cuda_11_installs_what_there_is(recipe):
    """All that the recipes need and that CUDA 11 still has, but for PyTorch and PyCUDA: one has no such build on PyPI,
    and the other needs nvcc. It is in the versions that the Install lines name there."""
    line = machine.for_cuda(recipe.install, 11)
    asked = catalogue.requirements(line) if line and "cuda13" in extras_of(recipe) else []
    if not {"torch", "pycuda"} & {requirement.name for requirement in asked}:
        there = list(extra("cuda11"))
        assert all(any(installs(one, each, "cuda11") for one in there) for each in asked)


def test_jax_needs_no_cuda_where_there_is_no_gpu():
    old = machine.Nvidia("550.54.15", (12, 4), (machine.Gpu(0, "Made up", 2**34, (8, 0)),))
    found = {driver: machine.for_driver('pip install "jax[cuda13]"', driver) for driver in (None, old)}
    assert found == {None: "pip install jax", old: 'pip install "jax[cuda12]"'}


def test_pip_downloads_one_pytorch_for_cuda_12():
    """It is the largest of all packages, and names others exactly: pip would try one version after another."""
    (torch,) = (requirement for requirement in extra("cuda12") if requirement.name == "torch")
    (pin,) = torch.specifier
    assert pin.operator == "==" and "*" not in pin.version


def test_cuda_11_has_its_last_versions():
    assert machine.for_cuda('pip install "cupy-cuda13x[ctk]"', 11) == 'pip install "cupy-cuda11x"'
    core = machine.for_cuda('pip install "cuda-core[cu13]"', 11)
    assert core == 'pip install "cuda-core[cu11]==0.3.*"'
    (asked,) = catalogue.requirements(core)
    assert any(installs(requirement, asked) for requirement in extra("cuda11"))
    none = (
        '"dask-cuda[cu13]" rmm-cu13',
        '"numba-cuda[cu13]" "numpy<2.5"',
        '"jax[cuda13]"',
        "pycuda cuda-pathfinder",
        "warp-lang",
    )
    for name in none:
        assert machine.for_cuda(f"pip install {name}", 11) == ""


@pytest.mark.parametrize("arguments", [[], ["requests"], ["--help"], ["no_such-1.0-py3-none-any.whl"]])
def test_only_a_wheel_is_installed_for_asv(arguments, monkeypatch):
    """pip would take any word for a package, and install that."""
    path = Path(__file__).parents[1] / "benchmarks" / "install.py"
    run = []
    for name in ("call", "check_output"):
        monkeypatch.setattr(subprocess, name, lambda *command, **_: run.append(command) or "cpu")
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    with pytest.raises(SystemExit, match="^Name .*: python benchmarks/install.py "):
        runpy.run_path(str(path), run_name="__main__")
    assert not run


@pytest.mark.parametrize(
    ("installed", "counted"),
    [
        (["cuda-bench", "cuda-core"], "cuda-core 1"),
        (["cuda-bench", "cuda-core", "cuda-bindings"], "cuda-bindings 1, cuda-core 1"),
        (["cuda-bench"], "cuda-bench 1"),  # then it is what a recipe imports
    ],
)
def test_of_a_shared_package_what_no_extra_installs_is_no_version_of_a_result(installed, counted, monkeypatch):
    machine._of_extras()  # from what is installed in fact
    monkeypatch.setattr(machine, "_packages_distributions", lambda: {"cuda": installed})
    monkeypatch.setattr(machine, "distributions", machine.distributions.__wrapped__)
    version = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1" if name.startswith("cuda-") else version(name))
    assert machine.distributions("cuda") == counted
