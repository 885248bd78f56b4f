"""A repository of its own with these recipes, in which results can be stored."""

import os
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def require_clone():
    """Skips a test that needs this repository's own history, in files that come from an sdist."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs the history of this repository, and this is no clone of it")


def gpu_machine():
    """The one whose results the site shows first."""
    return runpy.run_path(str(ROOT / "docs" / "readme.py"))["GPU_MACHINE"]


def git(folder, *arguments, **variables):
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    command = ["git", "-C", folder, *identity, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | variables)
    return done.stdout.strip()


def drawing_only(words):
    """Code for a process that makes the site: it draws the charts that have these words in their title. To draw all
    others, too, would take most of the time, and they have nothing of what the test has changed. Nor have short
    forms and the test of the advice, which tests/test_site.py sees."""
    return f"""
import choosing
from gpu_cookbook import short
from gpu_cookbook.render import svg

def drawn(draw, height, title, text, render=svg.render):
    return render(draw, height, title, text) if {words!r} in title else "<svg></svg>"

svg.render = drawn
short.short = lambda recipe: "# Its short form"
choosing.tables = lambda results: []
"""


def make_repository(folder):
    """One commit with these recipes and no results."""
    for name in ("recipes", "kernels", "benchmarks", "gpu_cookbook"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
    shutil.copy(ROOT / "asv.conf.json", folder)
    (folder / ".gitignore").write_text("__pycache__/\n.asv/\n")
    git(folder, "init", "--quiet", "--initial-branch=main", "--template=")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=one")
    git(folder, "config", "core.trustctime", "false")  # of a file, each link to it changes that
    git(folder, "gc", "--quiet")  # one file instead of hundreds: tests copy all this


def copy_repository(repository, folder):
    """Copies a repository. The hundreds of files that are committed are the same in every copy, which takes a tenth of
    the time: a test changes one with rewrite()."""
    for path in repository.iterdir():
        copy = shutil.copy2 if path.name == ".git" else os.link
        if path.is_dir():
            shutil.copytree(path, folder / path.name, copy_function=copy)
        else:
            copy(path, folder / path.name)


def rewrite(path, text):
    """Changes a file in a copy of a repository, and in no other one."""
    path.unlink()
    path.write_text(text, encoding="utf-8")
