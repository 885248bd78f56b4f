"""Under which conditions a cell was measured, and why it has no figures: what asv's files have no place for.

Each is a line of benchmarks/results/conditions.jsonl. asv stores its number, as the value of track_conditions, so that
the two stay together whoever runs the suite.
"""

import fcntl
import hashlib
import json

from gpu_cookbook import catalogue, machine

FILE = "conditions.jsonl"


def record(folder, cell):
    """The number of the line in ``folder`` that says under which conditions this cell ran; added if it is new."""
    line = {
        **{key: cell[key] for key in ("device", "driver", "cuda", "math", "status", "reason")},
        "clock": machine.clock() if machine.is_gpu(cell["device"]) else None,
        "copy_bandwidth_gb_per_s": cell.get("device_copy_bandwidth_gb_per_s"),
        "cache_bytes": cell.get("device_cache_bytes"),
        "versions": versions() if cell["device"] else {},
    }
    text = json.dumps(line, ensure_ascii=False, sort_keys=True)
    number = int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)  # 48 bits: a float64 holds them exactly
    with (folder / FILE).open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        before = file.read()
        if number not in {known for known, _ in _read(before.splitlines())}:
            file.write("\n" if before and not before.endswith("\n") else "")  # a line that was cut off
            file.write(json.dumps({"number": number})[:-1] + ", " + text[1:] + "\n")
    return number


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
