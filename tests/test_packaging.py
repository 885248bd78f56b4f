"""What an installation puts into site-packages, where other people's packages stand beside it; what an sdist has."""

import email
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from cloning import git, require_clone

from gpu_cookbook import catalogue

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT]
    subprocess.run(command, check=True, timeout=600)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The unpacked sdist."""
    folder = tmp_path_factory.mktemp("sdist")
    subprocess.run([sys.executable, "-m", "build", "--sdist", "--outdir", folder, ROOT], check=True, timeout=600)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())


def test_only_gpu_cookbook_is_installed(wheel):
    names = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"gpu_cookbook"}


def test_hugging_faces_kernels_stands_beside_it(wheel, tmp_path):
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path, wheel, "kernels"]
    done = subprocess.run(pip, check=True, capture_output=True, text=True, timeout=600)
    assert "already exists" not in done.stderr
    files = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*.py")}
    assert files == {"gpu_cookbook", "kernels"}
    assert "multiply.cu" not in {path.name for path in (tmp_path / "kernels").iterdir()}


def test_the_wheel_has_every_recipe_kernel_and_schema(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    files = [*ROOT.glob("recipes/*/*.py"), *ROOT.glob("kernels/*.c[ul]")]
    assert len(files) > len(catalogue.recipes())
    assert {f"gpu_cookbook/{file.relative_to(ROOT)}" for file in files} <= names
    schemas = [*ROOT.glob("gpu_cookbook/store/schemas/*.json")]
    assert len(schemas) > 5 and {str(file.relative_to(ROOT)) for file in schemas} <= names


def test_the_metadata_are_fit_for_an_index(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(archive.read(name))
    assert metadata["Author"] == "GPU Cookbook contributors"
    assert metadata["License-Expression"] == "MIT" and metadata["License-File"] == "LICENSE"
    assert metadata["Description-Content-Type"] == "text/markdown"
    page = (ROOT / "gpu_cookbook" / "README.md").read_text(encoding="utf-8")
    assert metadata.get_payload(decode=True).decode().strip() == page.strip()


def test_an_sdist_has_all_that_git_tracks(sdist):
    require_clone()
    files = {str(path.relative_to(sdist)) for path in sdist.rglob("*") if path.is_file()}
    made = {name for name in files if name == "PKG-INFO" or name.startswith("gpu_cookbook.egg-info/")}
    # With what is new, and without what has just been deleted.
    tracked = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    assert files - made == {name for name in tracked if (ROOT / name).is_file()}


NEEDS_A_CLONE = "tests/test_readme.py::test_the_picture_shows_the_stored_results"


def test_the_tests_of_an_sdist_run(sdist):
    """All can be collected; of those that need no framework, one file runs. What needs a clone is skipped."""
    pytest_here = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    for arguments in (["--collect-only", "tests"], ["tests/test_installing.py"], ["-rs", NEEDS_A_CLONE]):
        done = subprocess.run([*pytest_here, *arguments], cwd=sdist, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout
    assert re.search(r"^\d+ skipped in ", done.stdout, re.MULTILINE) and "no clone of it" in done.stdout


def test_the_installed_wheel_lists_and_checks(wheel, tmp_path):
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path, wheel]
    subprocess.run(pip, check=True, timeout=600)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import gpu_cookbook.recipes, gpu_cookbook.cli as cli\n"
        f"assert gpu_cookbook.__file__.startswith({str(tmp_path)!r})\n"
        f"assert list(gpu_cookbook.recipes.__path__)[0].startswith({str(tmp_path)!r})\n"
        "cli.app(['show', 'multiply', 'pyopencl'])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "__kernel void multiply" in done.stdout


def test_the_installed_wheel_may_store_in_the_clone_that_it_was_built_from(wheel, tmp_path):
    require_clone()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path, wheel]
    subprocess.run(pip, check=True, timeout=600)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from gpu_cookbook.store import asv_files as store\n"
        f"assert store.__file__.startswith({str(tmp_path)!r})\n"
        "stored = store.Writer.__new__(store.Writer)\n"
        "stored.store = store.Store()\n"
        "stored._refuse_another_installation()"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
