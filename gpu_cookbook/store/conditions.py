"""The conditions under which a result was measured, and why it has no metrics: asv's files have no place for them.

Each is a line of benchmarks/results/conditions.jsonl. asv stores the number of the line as the value of
track_conditions, so that the two stay together, whoever runs the suite.
"""

import hashlib
import json
import time
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from gpu_cookbook import catalogue, machine
from gpu_cookbook.results import Metric, Result, Status
from gpu_cookbook.store import door, journal

FILE, KIND = "conditions.jsonl", "conditions"


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
    # Lines from before these were stored have none of them.
    doubts: dict[str, str] = field(default_factory=dict)  # see Result.doubts
    date: str | None = None  # asv's files have only that of the newest result of a benchmark
    cache_bandwidth_gb_per_s: float | None = None
    arithmetic_g_per_s: float | None = None
    empty_kernel_s: float | None = None

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
            cache_bandwidth=self.cache_bandwidth_gb_per_s,
            arithmetic=self.arithmetic_g_per_s,
            empty_kernel=self.empty_kernel_s,
            versions=", ".join(dict.fromkeys(versions)),
            doubts={Metric(name): doubt for name, doubt in self.doubts.items()},
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
            copy_bandwidth_gb_per_s=_rounded(result.copy_bandwidth, 3),
            cache_bytes=result.cache_bytes,
            cache_bandwidth_gb_per_s=_rounded(result.cache_bandwidth, 2),
            arithmetic_g_per_s=_rounded(result.arithmetic, 2),
            empty_kernel_s=_rounded(result.empty_kernel, 2),
            versions=installed_versions() if result.device else {},
            doubts={str(metric): doubt for metric, doubt in result.doubts.items()},
            date=time.strftime("%Y-%m-%d", time.gmtime()),
        )
    )
    text = json.dumps(line, ensure_ascii=False, sort_keys=True)
    number = int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)  # 48 bits: a float64 holds them exactly
    entry = {"number": number} | json.loads(text)

    def is_there(content: bytes) -> bool:
        return any(line["number"] == number for _, line in door.fit_lines(content, KIND)[0])

    journal.append(folder / FILE, entry, unless=is_there)
    return number


def _rounded(number: float | None, digits: int) -> float | None:
    """Results share a line if the device did the same beside them. A share is shown with three digits at most, and the
    ceilings have margins of 1.5 and more."""
    return None if number is None else float(f"{number:.{digits}g}")


def read(folder: Path) -> tuple[dict[float, Conditions], list[str]]:
    """{number: conditions} for every line that can be used, and what is wrong with each other. A result whose line was
    cut off is shown without conditions."""
    names = {part.name for part in fields(Conditions)}
    lines, complaints = door.read_lines(folder / FILE, KIND)
    known = {line["number"]: Conditions(**{name: line[name] for name in names & line.keys()}) for _, line in lines}
    return known, complaints


def installed_versions() -> dict[str, Any]:
    """{module: 'distribution version, …'} of every framework that is installed, and of Python."""
    modules = sorted({package for recipe in catalogue.recipes() for package in recipe.packages})
    return {"python": machine.python_version()} | {
        module: found for module in modules if (found := machine.distributions(module))
    }
