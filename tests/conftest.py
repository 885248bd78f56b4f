import re

import pytest

from gpu_cookbook import catalogue, machine


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


def pytest_runtest_logreport(report):
    """Only what this machine lacks may skip a test: anything else ends the run."""
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
    if reason and not re.search(r"needs an NVIDIA GPU|not installed|no OpenCL driver|on PATH", reason):
        pytest.exit(f"{report.nodeid} is skipped for no good reason: {reason}", returncode=1)
