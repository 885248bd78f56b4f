"""Writes a lock for each kind of machine and each environment into this folder: ``make locks``. uv reads metadata, and
installs nothing.

A lock holds what an extra of setup.cfg installs, on every Python that gpu-cookbook supports. If results of such a
machine are stored, it has the versions with which the newest of them were measured; all others are the newest that fit.
"""

import configparser
import subprocess
import sys
from pathlib import Path

from packaging.version import Version

from gpu_cookbook.store import asv_files

FOLDER = Path(__file__).parent
BESIDE = ("docs", "jax", "test", "warp")  # extras that are only installed beside another one
MEASURED = {"cuda13": "nvidia-h200"}  # extra -> the machine whose results are to be repeated
HEADER = "# Written by 'make locks', for a machine of this kind: pip install -r locks/{extra}.txt -e .\n"


def extras() -> list[str]:
    """Those that are for a kind of machine or for an environment."""
    setup = configparser.ConfigParser()
    setup.read(FOLDER.parent / "setup.cfg", encoding="utf-8")
    return [name for name in setup["options.extras_require"] if name not in BESIDE]


def measured(extra: str) -> dict[str, str]:
    """{distribution: version} of the newest stored results of the machine that an extra is for."""
    results, _ = asv_files.Store().load()
    found = [each for each in results if each.origin and each.origin.machine == MEASURED.get(extra) and each.versions]
    newest_last = sorted(found, key=lambda each: (each.origin.date, each.origin.commit))
    pairs = [pair.split() for each in newest_last for pair in each.versions.split(", ")]
    return {name: Version(version).public for name, version in pairs if name != "Python"}


def lock(extra: str) -> str:
    command = [sys.executable, "-m", "uv", "pip", "compile", "setup.cfg", "--extra", extra, "--constraint", "-"]
    command += ["--universal", "--python-version", "3.11", "--no-header", "--no-annotate", "--quiet"]
    constraints = "".join(f"{name}=={version}\n" for name, version in measured(extra).items())
    done = subprocess.run(command, cwd=FOLDER.parent, input=constraints, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"uv finds no versions for {extra} that fit together: it says why above.")
    return HEADER.format(extra=extra) + done.stdout


if __name__ == "__main__":
    for extra in extras():
        (FOLDER / f"{extra}.txt").write_text(lock(extra), encoding="utf-8")
