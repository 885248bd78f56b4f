import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gpu_cookbook import catalogue, machine
from gpu_cookbook.store import commits

ROOT = Path(__file__).parents[1]


def recipes(*keep):
    """Test parameters: every recipe, those that cannot run here marked as skipped with the tool's own reason."""
    return [
        pytest.param(
            recipe,
            id=f"{recipe.workload}-{recipe.technique}",
            marks=[pytest.mark.skip(reason=reason)] if (reason := machine.obstacle(recipe)) else [],
        )
        for recipe in catalogue.recipes()
        if all(test(recipe) for test in keep)
    ]


def git(folder, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    done = subprocess.run(["git", "-C", folder, *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A repository of one commit with these recipes and no results; the current folder is in it."""
    for name in ("recipes", "kernels", "benchmarks", "gpu_cookbook"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
    shutil.copy(ROOT / "asv.conf.json", tmp_path)
    (tmp_path / ".gitignore").write_text("__pycache__/\n.asv/\n")
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message=one")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))  # asv's ~/.asv-machine.json
    commits.changed_since.cache_clear()
    return tmp_path


def pytest_runtest_logreport(report):
    """Only what this machine lacks may skip a test: anything else ends the run."""
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
    if reason and not re.search(r"needs an NVIDIA GPU|not installed|no OpenCL driver|on PATH", reason):
        pytest.exit(f"{report.nodeid} is skipped for no good reason: {reason}", returncode=1)
