"""Writes a lock for each kind of machine and each environment into this folder: ``make locks``. uv reads metadata, and
installs nothing.

A lock holds what an extra of setup.cfg installs, on every Python that gpu-cookbook supports. If results of such a
machine are stored, it has the versions with which the newest of them were measured: on that Python and newer ones, and
on older ones if the oldest can have them. All others are the newest that fit.
"""

import configparser
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version

from gpu_cookbook import machine
from gpu_cookbook.store import asv_files
from gpu_cookbook.store.commits import StoreError

FOLDER = Path(__file__).parent
OLDEST = "3.11"  # of the Pythons
BESIDE = ("docs", "jax", "polars", "scikit-learn", "test", "warp")  # extras that are only installed beside another one
MEASURED = {"cuda13": "nvidia-h100"}  # extra -> the machine whose results are to be repeated
HEADER = "# Written by 'make locks', for a machine of this kind: pip install -r locks/{extra}.txt -e .\n"


def extras() -> list[str]:
    """Those that are for a kind of machine or for an environment."""
    setup = configparser.ConfigParser()
    setup.read(FOLDER.parent / "setup.cfg", encoding="utf-8")
    return [name for name in setup["options.extras_require"] if name not in BESIDE]


def measured(extra: str) -> tuple[str, dict[str, str]]:
    """The Python, as in "3.12", and {distribution: version} of the newest stored results of the machine that an extra
    is for. Other environments have versions of their own."""
    store = asv_files.Store()
    results = store.load(store.folder / MEASURED[extra])[0] if extra in MEASURED else []
    found = [each for each in results if each.environment == machine.MAIN and each.versions]
    newest_last = sorted(found, key=lambda each: each.stored.order)
    versions = dict(pair.split() for each in newest_last for pair in each.versions.split(", "))
    python = ".".join(versions.pop("Python", OLDEST).split(".")[:2])
    return python, {canonicalize_name(name): Version(version).public for name, version in versions.items()}


def compiled(*arguments: str, lines: str, **options: Any) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "uv", "pip", "compile", *arguments, "--python-version", OLDEST, "--quiet"]
    return subprocess.run(command, cwd=FOLDER.parent, input=lines, stdout=subprocess.PIPE, text=True, **options)


def constraint(name: str, version: str, python: str) -> str:
    """Which version is wanted: on every Python, or from the measured one on if the oldest cannot have it."""
    pin = f"{name}=={version}"
    everywhere = compiled("-", "--no-deps", lines=pin, stderr=subprocess.DEVNULL).returncode == 0
    return pin if everywhere else f"{pin} ; python_version >= '{python}'"


def lock(extra: str) -> str:
    python, versions = measured(extra)
    constraints = "".join(f"{constraint(*each, python)}\n" for each in versions.items())
    arguments = ("setup.cfg", "--extra", extra, "--constraint", "-", "--universal", "--no-header", "--no-annotate")
    done = compiled(*arguments, lines=constraints)
    if done.returncode:
        sys.exit(f"uv finds no versions for {extra} that fit together: it says why above.")
    return HEADER.format(extra=extra) + done.stdout


if __name__ == "__main__":
    if not importlib.util.find_spec("uv"):
        sys.exit("uv is not installed: 'make locks' installs it.")
    try:
        for extra in extras():
            (FOLDER / f"{extra}.txt").write_text(lock(extra), encoding="utf-8")
    except StoreError as error:
        sys.exit(str(error))
