"""The conditions under which a result was measured, and why it has no metrics: asv's files have no place for them.

Each is a line of benchmarks/results/conditions.jsonl. asv stores the number of the line as the value of
track_conditions, so that the two stay together, whoever runs the suite.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Result, Status
from gpu_cookbook.store import journal

FILE = "conditions.jsonl"


@dataclass(frozen=True)
class Conditions:
    """One line of the file."""

    device: str | None
    driver: str | None
    cuda: str | None
    math: str | None
    status: str
    reason: str | None
    clock: str | None
    copy_bandwidth_gb_per_s: float | None
    cache_bytes: int | None
    versions: dict[str, str] = field(default_factory=dict)  # of every framework installed, by its module

    def apply(self, result: Result) -> Result:
        """The result with its conditions; if it has no metrics, with the reason."""
        recipe = catalogue.find(result.workload, result.technique)
        wanted = ("python", *sorted(recipe.packages if recipe else self.versions))
        versions = (self.versions[module] for module in wanted if module in self.versions)
        result = replace(
            result,
            device=self.device,
            driver=self.driver,
            cuda=self.cuda,
            clock=self.clock,
            math=self.math,
            copy_bandwidth=self.copy_bandwidth_gb_per_s,
            cache_bytes=self.cache_bytes,
            versions=", ".join(dict.fromkeys(versions)),
        )
        return result if self.status == Status.OK else replace(result, status=Status(self.status), reason=self.reason)


def record(folder: Path, result: Result) -> int:
    """The number of the line in ``folder`` that describes the conditions of this result; it is added if it is new."""
    line = asdict(
        Conditions(
            device=result.device,
            driver=result.driver,
            cuda=result.cuda,
            math=result.math,
            status=str(result.status),
            reason=result.reason,
            clock=machine.clock() if machine.is_gpu(result.device) else None,
            copy_bandwidth_gb_per_s=result.copy_bandwidth,
            cache_bytes=result.cache_bytes,
            versions=installed_versions() if result.device else {},
        )
    )
    text = json.dumps(line, ensure_ascii=False, sort_keys=True)
    number = int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)  # 48 bits: a float64 holds them exactly
    entry = {"number": number} | json.loads(text)
    journal.append(folder / FILE, entry, unless=lambda lines: any(line.get("number") == number for line in lines))
    return number


def read(folder: Path) -> dict[float, Conditions]:
    """{number: conditions} for every complete line. A result whose line was cut off is shown without conditions."""
    names = {part.name for part in fields(Conditions)}
    return {
        line["number"]: Conditions(**{name: line[name] for name in names})
        for _, line in journal.read(folder / FILE)
        if line.keys() >= {"number", *names}
    }


def installed_versions() -> dict[str, Any]:
    """{module: 'distribution version, …'} of every framework that is installed, and of Python."""
    modules = sorted({package for recipe in catalogue.recipes() for package in recipe.packages})
    return {"python": machine.python_version()} | {
        module: found for module in modules if (found := machine.distributions(module))
    }
