"""Under which conditions a result was measured, which asv's files have no place for.

Each is a line of benchmarks/results/conditions.jsonl. asv stores its number, as the value of track_conditions: so the
two stay together whoever runs the suite, and a step in that graph says that something around the code has changed.
"""

import fcntl
import hashlib
import json

from gpu_cookbook import catalogue, machine

FILE = "conditions.jsonl"


def record(folder, recipe, cell, reasons=None):
    """The number of the line in ``folder`` that says under which conditions this recipe's cell ran; added if it is new.

    ``reasons``: {size: (status, reason)} of the recipe's cells without a figure.
    """
    device = cell["device"]
    nvidia = machine.nvidia() if device else None
    line = {
        "device": device,
        "driver": nvidia and nvidia.driver,
        "cuda": nvidia and ".".join(map(str, nvidia.cuda)),
        "clock": nvidia and machine.clock(),
        "math": recipe.math or "IEEE",
        "copy_bandwidth_gb_per_s": cell.get("device_copy_bandwidth_gb_per_s"),
        "cache_bytes": cell.get("device_cache_bytes"),
        "versions": versions() if device else {},
        "reasons": {str(size): list(reason) for size, reason in (reasons or {}).items()},
    }
    text = json.dumps(line, ensure_ascii=False, sort_keys=True)
    number = int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)  # 48 bits: a float64 holds them exactly
    with (folder / FILE).open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if number not in _numbers(file):
            file.write(json.dumps({"number": number})[:-1] + ", " + text[1:] + "\n")
    return number


def _numbers(lines):
    return {number for number, _ in _read(lines)}


def _read(lines):
    for line in lines:
        try:
            entry = json.loads(line)
            yield entry.pop("number"), entry
        except (ValueError, KeyError, AttributeError, TypeError):
            continue  # cut off: what refers to it is shown without conditions


def read(folder):
    """{number: conditions} of every line that can be read."""
    try:
        with (folder / FILE).open(encoding="utf-8", errors="replace") as file:
            return dict(_read(file))
    except FileNotFoundError:
        return {}


def versions():
    """{module: 'distribution version, …'} of every framework that is installed, and of Python."""
    modules = sorted({package for recipe in catalogue.recipes() for package in recipe.packages})
    return {"python": machine.python_version()} | {
        module: found for module in modules if (found := machine.distributions(module))
    }
