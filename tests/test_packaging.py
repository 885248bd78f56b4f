"""What an installation puts into site-packages, where other people's packages stand beside it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gpu_cookbook import catalogue

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT]
    subprocess.run(command, check=True, timeout=600)
    return next(folder.glob("*.whl"))


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
